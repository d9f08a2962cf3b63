/** Cells as marks: numbers as pixels, and what stands over them. */

/** @import { Cells, Geometry, Matrix, Numbers, Pen, Scale, Steps, Theme } from "../types.d.ts" */

import { labelFont } from "../shared/grid_layout.js";
import { shortNumber, wholeNumber, withMinusSign } from "../shared/payload.js";
import { NO_KEY_LEFT } from "../shared/rows.js";
import { makeTile, patternCanvas } from "./hatch.js";
import { contextOf } from "./pen.js";
import { inkOn, pixelFor } from "./scale.js";
import { drawPlate } from "./text.js";

/**
 * Write the pixel of every number; a blocked cell stays transparent, so that the hatch below it shows.
 * @param {Uint32Array} pixels @param {ArrayLike<number>} values @param {ArrayLike<number> | null} blocked
 * @param {Scale} scale
 */
export function paintPixels(pixels, values, blocked, scale) {
  const { table, low, perStep } = scale;
  const last = table.length - 1;
  for (let i = 0; i < pixels.length; i++) {
    if (blocked && blocked[i]) {
      pixels[i] = 0;
      continue;
    }
    const step = (values[i] - low) * perStep + 0.5;
    // Only an ordinary number inside the bounds passes both comparisons.
    pixels[i] = step >= 0 && step < last && perStep ? table[step | 0] : pixelFor(values[i], scale);
  }
}

/**
 * The same for numbers that came in steps, none of which is decoded: each step has one pixel.
 * @param {Uint32Array} pixels @param {Steps} steps @param {ArrayLike<number> | null} blocked @param {Scale} scale
 */
function paintSteps(pixels, steps, blocked, scale) {
  const { data } = steps;
  const table = pixelsOfSteps(steps, scale);
  if (blocked) for (let i = 0; i < pixels.length; i++) pixels[i] = blocked[i] ? 0 : table[data[i]];
  else for (let i = 0; i < pixels.length; i++) pixels[i] = table[data[i]];
}

/** @type {{ count: number, unit: number, power: number, table: Uint32Array, low: number, perStep: number, pixels: Uint32Array } | undefined} */
let stepTable;

/** The pixel of every step there is; kept, since all heads of a layer have the same.
 *  @param {Steps} steps @param {Scale} scale */
function pixelsOfSteps({ data, scale: unit, power }, scale) {
  const { table, low, perStep } = scale;
  const count = 2 ** (8 * data.BYTES_PER_ELEMENT);
  const known = stepTable;
  const isOfSame = known?.count === count && known.unit === unit && known.power === power;
  if (isOfSame && known.table === table && known.low === low && known.perStep === perStep) return known.pixels;
  const pixels = new Uint32Array(count);
  paintPixels(pixels, Float32Array.from(pixels, (_, step) => step ** power * unit), null, scale);
  stepTable = { count, unit, power, table, low, perStep, pixels };
  return pixels;
}

/** The numbers of a matrix without decoding equal steps: `numbers * unit` are its values. @param {Matrix} matrix */
export function storedNumbers(matrix) {
  const { steps = null } = matrix;
  return steps?.power === 1 ? { numbers: steps.data, unit: steps.scale } : { numbers: matrix.values, unit: 1 };
}

/**
 * A matrix made smaller by keeping the number of largest size under each pixel: thin diagonals and single strong
 * cells survive. A pixel is blocked only when everything under it is.
 * @param {Cells} matrix @param {number} outRows @param {number} outColumns
 * @returns {Cells}
 */
export function poolMatrix(matrix, outRows, outColumns) {
  const { blocked, rows, columns, steps } = matrix; // the values of steps are made when they are asked for
  const size = { rows: outRows, columns: outColumns };
  const outBlocked = new Uint8Array(outRows * outColumns).fill(1);
  const columnOf = Uint16Array.from({ length: columns }, (_, column) => (column * outColumns) / columns);
  const startOf = Uint32Array.from({ length: rows }, (_, row) => Math.floor((row * outRows) / rows) * outColumns);
  if (steps) {
    const data = new /** @type {any} */ (steps.data).constructor(outRows * outColumns);
    poolSteps(steps.data, blocked, startOf, columnOf, data, outBlocked);
    return { steps: { ...steps, data }, blocked: outBlocked, ...size };
  }
  const largest = new Float32Array(outRows * outColumns);
  poolNumbers(matrix.values ?? NO_NUMBERS, blocked, startOf, columnOf, largest, outBlocked);
  return { values: largest, blocked: outBlocked, ...size };
}

/** Steps are none below zero: the largest one is kept.
 *  @param {Numbers} data @param {Uint8Array | null} blocked @param {Uint32Array} startOf
 *  @param {Uint16Array} columnOf @param {Numbers} largest @param {Uint8Array} outBlocked */
function poolSteps(data, blocked, startOf, columnOf, largest, outBlocked) {
  const columns = columnOf.length;
  for (let row = 0, i = 0; row < startOf.length; row++) {
    const start = startOf[row];
    for (let column = 0; column < columns; column++, i++) {
      if (blocked && blocked[i]) continue;
      const out = start + columnOf[column];
      const step = data[i];
      if (step >= largest[out]) {
        largest[out] = step;
        outBlocked[out] = 0;
      }
    }
  }
}

/** @param {Float32Array} values @param {Uint8Array | null} blocked @param {Uint32Array} startOf
 *  @param {Uint16Array} columnOf @param {Float32Array} largest @param {Uint8Array} outBlocked */
function poolNumbers(values, blocked, startOf, columnOf, largest, outBlocked) {
  const columns = columnOf.length;
  for (let row = 0, i = 0; row < startOf.length; row++) {
    const start = startOf[row];
    for (let column = 0; column < columns; column++, i++) {
      if (blocked && blocked[i]) continue;
      const out = start + columnOf[column];
      const value = values[i];
      if (outBlocked[out] || !(Math.abs(value) <= Math.abs(largest[out]))) {
        largest[out] = value;
        outBlocked[out] = 0;
      }
    }
  }
}

const NO_NUMBERS = new Float32Array();

const poolCache = new WeakMap();

/** The matrix in at most so many rows and columns.
 *  @param {Cells} matrix @param {number} rows @param {number} columns */
function inSize(matrix, rows, columns) {
  if (rows >= matrix.rows && columns >= matrix.columns) return matrix;
  const pooled = matrix.steps ? pooledSteps(matrix, matrix.steps, rows, columns) : poolMatrix(matrix, rows, columns);
  poolCache.set(matrix, pooled);
  return pooled;
}

const SIZES_KEPT = 2; // a panel's and that of the small picture

const stepsCache = new WeakMap();

/** Steps came so and never change: how they were made smaller last is kept with the bytes that they came in.
 *  @param {Cells} matrix @param {Steps} steps @param {number} rows @param {number} columns */
function pooledSteps(matrix, steps, rows, columns) {
  const { buffer, byteOffset } = steps.data;
  if (!stepsCache.has(buffer)) stepsCache.set(buffer, new Map());
  const ofBuffer = stepsCache.get(buffer);
  const kept = ofBuffer.get(byteOffset) ?? [];
  /** @param {{ pooled: Cells, of: Uint8Array | null }} one */
  const isThis = ({ pooled, of }) => of === matrix.blocked && pooled.rows === rows && pooled.columns === columns;
  const known = kept.find(isThis);
  if (known) return known.pooled;
  const pooled = poolMatrix(matrix, rows, columns);
  ofBuffer.set(byteOffset, [{ pooled, of: matrix.blocked }, ...kept].slice(0, SIZES_KEPT));
  return pooled;
}

/** Make a matrix ready to be drawn as large as a canvas is.
 *  @param {Matrix} matrix @param {HTMLCanvasElement} canvas */
export function makeReady(matrix, canvas) {
  if (matrix.steps) inSize(matrix, Math.min(matrix.rows, canvas.height), Math.min(matrix.columns, canvas.width));
}

/** The same as it has just been drawn, where it was drawn in this size.
 *  @param {Cells} matrix @param {number} rows @param {number} columns */
function asDrawn(matrix, rows, columns) {
  const pooled = poolCache.get(matrix);
  return pooled?.rows === rows && pooled.columns === columns ? pooled : inSize(matrix, rows, columns);
}

/** Write the pixels of a matrix, one a cell.
 *  @param {Uint32Array} pixels @param {Cells} matrix @param {Scale} scale */
function paintMatrix(pixels, matrix, scale) {
  if (matrix.steps) paintSteps(pixels, matrix.steps, matrix.blocked, scale);
  else paintPixels(pixels, matrix.values ?? NO_NUMBERS, matrix.blocked, scale);
}

/**
 * Draw a matrix as a square into a larger picture, whose rows have `stride` pixels: a cell has several pixels, or a pixel
 * several cells.
 * @param {Uint32Array} pixels @param {number} stride @param {{left: number, top: number, size: number}} square
 * @param {Matrix} matrix @param {Scale} scale
 */
export function paintSquare(pixels, stride, { left, top, size }, matrix, scale) {
  const [rows, columns] = [Math.min(matrix.rows, size), Math.min(matrix.columns, size)];
  const small = new Uint32Array(rows * columns);
  paintMatrix(small, inSize(matrix, rows, columns), scale);
  const across = Uint16Array.from({ length: size }, (_, x) => (x * columns) / size);
  for (let y = 0; y < size; y++) {
    const first = Math.floor((y * rows) / size) * columns;
    const start = (top + y) * stride + left;
    for (let x = 0; x < size; x++) pixels[start + x] = small[first + across[x]];
  }
}

/**
 * Draw a matrix one pixel a cell, or smaller where it has more cells than `maxWidth` by `maxHeight` device pixels.
 * @param {HTMLCanvasElement} canvas @param {Matrix} matrix @param {Scale} scale @param {number} maxWidth
 * @param {number} maxHeight
 */
export function drawMatrix(canvas, matrix, scale, maxWidth, maxHeight) {
  const columns = Math.max(1, Math.min(matrix.columns, Math.round(maxWidth)));
  const rows = Math.max(1, Math.min(matrix.rows, Math.round(maxHeight)));
  const source = inSize(matrix, rows, columns);
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns;
    canvas.height = rows;
  }
  const context = contextOf(canvas);
  const image = context.createImageData(columns, rows);
  paintMatrix(new Uint32Array(image.data.buffer), source, scale);
  context.putImageData(image, 0, 0);
}

const FAINT = 0.04; // of the largest: below, a number has hardly a colour, and needs no sign

/**
 * Level lines over the numbers below zero as a canvas of `width` by `height` device pixels: with them the sign does
 * not depend on seeing colours. Null where no number is clearly below zero.
 * @param {Matrix} matrix @param {Scale} scale
 * @param {number} width @param {number} height @param {number} pixelRatio
 */
export function signCanvas(matrix, scale, width, height, pixelRatio) {
  const rows = Math.min(matrix.rows, height);
  const columns = Math.min(matrix.columns, width);
  const source = asDrawn(matrix, rows, columns);
  const limit = scale.low * FAINT;
  const { values = NO_NUMBERS, blocked } = source;
  const isBelow = new Uint8Array(values.length);
  for (let i = 0; i < values.length; i++) isBelow[i] = values[i] < limit && !blocked?.[i] ? 1 : 0;
  if (!isBelow.includes(1)) return null;
  return patternCanvas(isBelow, rows, columns, width, height, signTile(scale.theme, pixelRatio), "transparent");
}

/** One tile of level lines in the colour of the background. @param {Theme} theme @param {number} pixelRatio */
function signTile(theme, pixelRatio) {
  const size = Math.max(3, Math.round(4 * pixelRatio));
  return makeTile(size, (context) => {
    context.fillStyle = theme.background;
    context.globalAlpha = 0.75;
    context.fillRect(0, 0, size, Math.max(1, Math.round(1.2 * pixelRatio)));
  });
}

/** A number as it stands in a cell: two decimals where they fit. @param {number} value */
export function cellNumber(value) {
  const size = Math.abs(value);
  return size < 10 ? withMinusSign(value.toFixed(2)).replace(/^−(?=0\.00$)/, "") : shortNumber(value);
}

/** The strength of a number that rounds to zero: no stronger than can be read (4.5 to 1 on the background). */
export const STEPS_BACK = 0.6;

/** Write every number into its cell.
 *  @param {Pen} context @param {Matrix} matrix @param {Geometry} geometry @param {Scale} scale */
export function drawNumbers(context, matrix, { left, top, cellWidth, cellHeight }, scale) {
  context.font = labelFont(scale.theme.font);
  context.textAlign = "center";
  context.textBaseline = "middle";
  const textOf = matrix.values.every(Number.isInteger) ? wholeNumber : cellNumber;
  for (let row = 0, i = 0; row < matrix.rows; row++) {
    for (let column = 0; column < matrix.columns; column++, i++) {
      if (matrix.blocked?.[i]) continue;
      context.fillStyle = inkOn(pixelFor(matrix.values[i], scale));
      const [x, y] = [left + (column + 0.5) * cellWidth, top + (row + 0.5) * cellHeight + 0.5];
      const text = textOf(matrix.values[i]);
      // Cells that round to zero step back, so that the eye finds the others.
      context.globalAlpha = Number(text) === 0 ? STEPS_BACK : 1;
      context.fillText(text, x, y);
    }
  }
  context.globalAlpha = 1;
}

/** Mark the rows whose every key is blocked: in words where there is room, else by a bar at the edge.
 *  @param {Pen} context @param {Pick<Matrix, "rows" | "emptyRows">} matrix @param {Geometry} geometry @param {Theme} theme */
export function drawEmptyRows(context, matrix, { left, top, cellHeight, plotWidth, labelled }, theme) {
  context.fillStyle = theme.warning;
  context.font = `600 ${labelFont(theme.font)}`;
  const text = NO_KEY_LEFT;
  const inWords = labelled && cellHeight >= 12 && context.measureText(text).width + 8 <= plotWidth;
  for (let row = 0; row < matrix.rows; row++) {
    if (!matrix.emptyRows?.[row]) continue;
    const y = top + row * cellHeight;
    if (inWords) drawPlate(context, text, left + plotWidth / 2, y + cellHeight / 2, theme);
    else context.fillRect(left, y, 3, Math.max(1, cellHeight));
  }
}
