/** @import { Matrix, Numbers, PaletteName, Pen, Scale, Steps, Theme } from "../types.d.ts" */

import { contextOf } from "./canvas.js";
import { drawnBy } from "./svg_pen.js";
import { colorTable, pixelOf } from "./theme.js";

/** @typedef {Pick<Matrix, "rows" | "columns" | "blocked" | "steps"> & { values?: Float32Array }} Cells a matrix without its axes */

const MANY_TOKENS = 48;

/**
 * The way from numbers to pixels.
 * bounds: [low, high]; curve: "linear", or "root" to lift small numbers.
 * @param {Theme} theme
 * @param {PaletteName} palette
 * @param {number[]} bounds
 * @returns {Scale}
 */
export function makeScale(theme, palette, bounds, curve = "linear") {
  const [low, high] = bounds;
  const table = colorTable(theme, palette, curve);
  return {
    theme,
    palette,
    low,
    high,
    curve,
    table,
    // A matrix of one single number has no range: it is drawn at the middle of its scale.
    perStep: high > low ? (table.length - 1) / (high - low) : 0,
    notANumber: pixelOf(theme.not_a_number),
    infinite: pixelOf(theme.infinite),
  };
}

/**
 * The scale of attention weights: to 1, or to the largest weight where all weights are small.
 * @param {Theme} theme
 * @param {number} largest
 * @param {string} curve
 */
export function weightScale(theme, largest, curve) {
  return makeScale(theme, "sequential", [0, largest > 0.5 ? 1 : largest || 1], curve);
}

/** Among many tokens single weights are so small that the root curve is the better start.
 *  @param {number} columns */
export function usualCurve(columns) {
  return columns >= MANY_TOKENS ? "root" : "linear";
}

/**
 * The pixel of one number.
 * @param {number} value
 * @param {Scale} scale
 * @returns {number}
 */
export function pixelFor(value, scale) {
  if (value === Infinity || value === -Infinity) return scale.infinite;
  if (value !== value) return scale.notANumber;
  const last = scale.table.length - 1;
  const step = scale.perStep ? (value - scale.low) * scale.perStep : last / 2;
  return scale.table[step <= 0 ? 0 : step >= last ? last : (step + 0.5) | 0];
}

/**
 * Write the pixel of every number; a blocked cell stays transparent, so that the hatch below it shows.
 * @param {Uint32Array} pixels
 * @param {ArrayLike<number>} values
 * @param {ArrayLike<number> | null} blocked
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
 * @param {Uint32Array} pixels
 * @param {Steps} steps
 * @param {ArrayLike<number> | null} blocked
 * @param {Scale} scale
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
 * @param {Uint32Array} pixels
 * @param {number} stride
 * @param {{left: number, top: number, size: number}} square
 * @param {Matrix} matrix
 * @param {Scale} scale
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
 * @param {HTMLCanvasElement} canvas
 * @param {Matrix} matrix
 * @param {Scale} scale
 * @param {number} maxWidth
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

const hatchCache = new WeakMap();

/**
 * The hatch of all blocked cells as a canvas of `width` by `height` device pixels, or null when nothing is blocked.
 * Heads share a mask, so the last size drawn is kept with the mask.
 * @param {Uint8Array | null} blocked @param {number} rows @param {number} columns @param {number} width
 * @param {number} height @param {Theme} theme @param {number} pixelRatio
 */
export function hatchCanvas(blocked, rows, columns, width, height, theme, pixelRatio) {
  if (!blocked || !blocked.some(Boolean)) return null;
  const cached = hatchCache.get(blocked);
  const cacheKey = `${width} ${height} ${theme.name}`;
  if (cached?.cacheKey === cacheKey) return cached.canvas;
  const canvas = patternCanvas(blocked, rows, columns, width, height, hatchTile(theme, pixelRatio), theme.hatch_ground);
  hatchCache.set(blocked, { cacheKey, canvas });
  return canvas;
}

/** A tile, or its plain colour, over the cells with a flag, as a canvas of `width` by `height` device pixels.
 *  @param {Uint8Array} flags @param {number} rows @param {number} columns @param {number} width
 *  @param {number} height @param {OffscreenCanvas} tile @param {string} plain */
function patternCanvas(flags, rows, columns, width, height, tile, plain) {
  const canvas = new OffscreenCanvas(width, height);
  const context = contextOf(canvas);
  context.imageSmoothingEnabled = false;
  context.drawImage(maskCanvas(flags, rows, columns), 0, 0, width, height);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = tiled(context, tile, plain);
  context.fillRect(0, 0, width, height);
  return drawnBy(canvas, (pen) => {
    pen.fillStyle = pen.createPattern(tile);
    pen.beginPath();
    for (const [row, from, to] of runsOf(flags, rows, columns)) {
      const [left, top] = [(from * width) / columns, (row * height) / rows];
      pen.rect(left, top, ((to - from) * width) / columns, height / rows);
    }
    pen.fill();
  });
}

/** A tile over and over; its plain colour where the browser has lost what was drawn on it, which it may at any time.
 *  @param {Pen} context @param {OffscreenCanvas} tile @param {string} plain */
export function tiled(context, tile, plain) {
  try {
    return context.createPattern(tile, "repeat") ?? plain;
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    HATCHES.clear(); // the next drawing begins with new ones
    return plain;
  }
}

/** The runs of cells with a flag: row, first column, and the column after the last.
 *  @param {Uint8Array} flags @param {number} rows @param {number} columns */
function* runsOf(flags, rows, columns) {
  for (let row = 0; row < rows; row++) {
    for (let from = 0, to = 0; from < columns; from = to + 1) {
      for (to = from; to < columns && flags[row * columns + to]; ) to += 1;
      if (to > from) yield [row, from, to];
    }
  }
}

/** A square tile, which a pen that writes SVG draws again in lines.
 *  @param {number} size @param {(pen: Pen) => void} draw */
function makeTile(size, draw) {
  const tile = new OffscreenCanvas(size, size);
  draw(contextOf(tile));
  return drawnBy(tile, draw);
}

const FAINT = 0.04; // of the largest: below, a number has hardly a colour, and needs no sign

/**
 * Level lines over the numbers below zero as a canvas of `width` by `height` device pixels: with them the sign does
 * not depend on seeing colours. Null where no number is clearly below zero.
 * @param {Matrix} matrix
 * @param {Scale} scale
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

/** An opaque pixel for each blocked cell.
 *  @param {Uint8Array} blocked @param {number} rows @param {number} columns */
function maskCanvas(blocked, rows, columns) {
  const canvas = new OffscreenCanvas(columns, rows);
  const context = contextOf(canvas);
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i++) if (blocked[i]) pixels[i] = 0xff000000;
  context.putImageData(image, 0, 0);
  return canvas;
}

const HATCHES = new Map(); // tiles by their colours and size: bars ask for one for each blocked cell

/**
 * One tile of diagonal stripes on the hatch's ground.
 * @param {Theme} theme
 * @param {number} pixelRatio
 */
export function hatchTile(theme, pixelRatio) {
  const name = `${theme.hatch_ground} ${theme.hatch} ${pixelRatio}`;
  if (!HATCHES.has(name)) HATCHES.set(name, makeHatch(theme, pixelRatio));
  return HATCHES.get(name);
}

/** @param {Theme} theme @param {number} pixelRatio */
function makeHatch(theme, pixelRatio) {
  const size = Math.round(6 * pixelRatio);
  return makeTile(size, (context) => {
    context.fillStyle = theme.hatch_ground;
    context.fillRect(0, 0, size, size);
    context.strokeStyle = theme.hatch;
    context.lineWidth = 1.1 * pixelRatio;
    // Three strokes, so that the stripe continues across the corners of neighbouring tiles.
    for (const shift of [-size, 0, size]) {
      context.beginPath();
      context.moveTo(shift, size);
      context.lineTo(shift + size, 0);
      context.stroke();
    }
  });
}

/** Black or white, whichever reads better on a canvas pixel. @param {number} pixel */
export function inkOn(pixel) {
  const luminance = 0.299 * (pixel & 255) + 0.587 * ((pixel >> 8) & 255) + 0.114 * ((pixel >> 16) & 255);
  return luminance > 150 ? "#14161c" : "#ffffff";
}
