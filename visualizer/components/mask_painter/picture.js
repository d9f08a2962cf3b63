/** @import { Geometry, Pen, Scale, Theme } from "../types.d.ts" */
/** @import { CellLook, Shown, Size } from "./types.d.ts" */

import { cellNumber, paintPixels, STEPS_BACK } from "../marks/cells.js";
import { contextOf, sizedContext } from "../marks/pen.js";
import { edgesOf, outlineCells } from "../marks/rule.js";
import { inkOn, pixelFor, usualCurve, weightScale } from "../marks/scale.js";
import { LABEL_FONT_SIZE } from "../shared/grid_layout.js";
import { Hatches } from "./reasons.js";

const PLAIN = 1 << 15; // the kind of an open cell without a weight; that of one with a weight is 0
const OTHER_CELLS = 0.72; // how much of the page's background covers the cells that a finding is not about

/** The kind of every cell: the bits of what blocks it; of open cells, whether the weight shown is theirs.
 *  @param {Pick<Shown, "bits" | "weights" | "answered">} shown */
export function kindsOf({ bits, weights, answered }) {
  const kinds = bits.slice();
  for (let i = 0; i < kinds.length; i++) if (!kinds[i] && (!weights || answered[i])) kinds[i] = PLAIN;
  return kinds;
}

/** The cells on their canvas. Only rows that differ from what is on the canvas are drawn again. */
export class CellPicture {
  /** @type {Pen} */ context;
  /** @type {{ rows: Float64Array, columns: Float64Array }} */ edges;
  /** @type {Hatches} */ hatches;
  /** @type {Size} */ size;
  /** @type {CellLook} */ look;
  /** @type {OffscreenCanvas | null} */ weights;
  isReweighed = false;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {Uint16Array | null} */ this.kinds = null;
  }

  /** Begin anew, for a grid of {rows, columns}.
   *  @param {Size} size @param {CellLook} look */
  arrange(size, look) {
    const { geometry, theme, pixelRatio, reasons, weights, scale } = look;
    const { width, height } = devicePixels(geometry, pixelRatio);
    this.context = sizedContext(this.canvas, width, height);
    this.context.imageSmoothingEnabled = false;
    this.context.font = `${LABEL_FONT_SIZE * pixelRatio}px ${theme.font}`;
    this.context.textAlign = "center";
    this.context.textBaseline = "middle";
    this.size = size;
    this.look = look;
    this.hatches = new Hatches(reasons, theme, Math.min(geometry.cellWidth, geometry.cellHeight), pixelRatio);
    this.edges = { rows: edgesOf(size.rows, height), columns: edgesOf(size.columns, width) };
    this.weights = weights && scale && weightsCanvas(weights, size, scale);
    this.kinds = null;
  }

  /** Take other weights; they are drawn by the next `show`. @param {Float32Array} weights @param {Scale} scale */
  reweigh(weights, scale) {
    this.look = { ...this.look, weights, scale };
    this.weights = weightsCanvas(weights, this.size, scale);
    this.isReweighed = true;
  }

  /** @param {Uint16Array} kinds */
  show(kinds) {
    for (let row = 0; row < this.size.rows; row++) {
      if (this.isReweighed || !this.kinds || this.rowDiffers(row, kinds)) this.drawRow(row, kinds);
    }
    this.kinds = kinds;
    this.isReweighed = false;
  }

  /** @param {number} row @param {Uint16Array} kinds */
  rowDiffers(row, kinds) {
    const { columns } = this.size;
    for (let i = row * columns; i < (row + 1) * columns; i++) if (kinds[i] !== this.kinds?.[i]) return true;
    return false;
  }

  /** @param {number} row @param {Uint16Array} kinds */
  drawRow(row, kinds) {
    const { context, edges: { rows, columns: across }, size: { columns } } = this;
    context.clearRect(0, rows[row], across[columns], rows[row + 1] - rows[row]);
    const first = row * columns;
    for (let start = 0, end; start < columns; start = end) {
      const kind = kinds[first + start];
      for (end = start + 1; end < columns && kinds[first + end] === kind; ) end++;
      if (kind !== PLAIN) this.drawRun(row, start, end, kind);
    }
  }

  /** @param {number} row @param {number} start @param {number} end @param {number} kind */
  drawRun(row, start, end, kind) {
    const { context, edges: { rows, columns } } = this;
    const [left, top] = [columns[start], rows[row]];
    const [width, height] = [columns[end] - left, rows[row + 1] - top];
    if (kind === 0 && this.weights) {
      context.drawImage(this.weights, start, row, end - start, 1, left, top, width, height);
      if (this.look.geometry.numbers) this.drawNumbers(row, start, end);
    } else {
      context.fillStyle = this.hatches.patternOf(kind, context);
      context.fillRect(left, top, width, height);
    }
  }

  /** @param {number} row @param {number} start @param {number} end */
  drawNumbers(row, start, end) {
    const { context, edges: { rows, columns }, size } = this;
    const { weights, scale, pixelRatio } = this.look;
    if (!weights || !scale) return;
    for (let column = start; column < end; column++) {
      const weight = weights[row * size.columns + column];
      const text = cellNumber(weight);
      context.fillStyle = inkOn(pixelFor(weight, scale));
      context.globalAlpha = text === "0.00" ? STEPS_BACK : 1;
      const [x, y] = [(columns[column] + columns[column + 1]) / 2, (rows[row] + rows[row + 1]) / 2];
      context.fillText(text, x, y + 0.5 * pixelRatio);
    }
    context.globalAlpha = 1;
  }
}

/** The weights, one pixel a cell. @param {Float32Array} weights @param {Size} size @param {Scale} scale */
function weightsCanvas(weights, { rows, columns }, scale) {
  const canvas = new OffscreenCanvas(columns, rows);
  const context = contextOf(canvas);
  const image = context.createImageData(columns, rows);
  paintPixels(new Uint32Array(image.data.buffer), weights, null, scale);
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The scale of the largest of some weights.
 *  @param {Theme} theme @param {Float32Array} weights @param {number} columns */
export function scaleOf(theme, weights, columns) {
  let largest = 0;
  for (const weight of weights) if (weight > largest) largest = weight;
  return weightScale(theme, largest, usualCurve(columns));
}

/** {width, height} of a plot in device pixels. @param {Geometry} geometry @param {number} pixelRatio */
export function devicePixels({ plotWidth, plotHeight }, pixelRatio) {
  /** @param {number} length */
  const whole = (length) => Math.max(1, Math.round(length * pixelRatio));
  return { width: whole(plotWidth), height: whole(plotHeight) };
}

/** Cover all other cells with the background, and draw a line around those of a finding. Sizes are device pixels.
 *  @param {Pen} context @param {Uint8Array} cells @param {Size} size
 *  @param {{ width: number, height: number }} plot @param {Theme} theme */
export function drawFound(context, cells, { rows, columns }, { width, height }, theme) {
  const [across, down] = [edgesOf(columns, width), edgesOf(rows, height)];
  context.globalAlpha = OTHER_CELLS;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, height);
  context.globalAlpha = 1;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [left, top] = [across[column], down[row]];
      if (cells[row * columns + column]) context.clearRect(left, top, across[column + 1] - left, down[row + 1] - top);
    }
  }
  outlineCells(context, cells, across, down, { color: theme.text, line: across[1] < 6 ? 1 : 2 });
}
