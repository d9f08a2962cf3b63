import { sizedContext } from "../shared/canvas.js";
import { clamp } from "../shared/dom.js";
import { cellNumber } from "../shared/grid.js";
import { LABEL_FONT_SIZE } from "../shared/grid_layout.js";
import { inkOn, paintPixels, pixelFor, usualCurve, weightScale } from "../shared/matrix_pixels.js";
import { Hatches } from "./reasons.js";

const PLAIN = 1 << 15; // the kind of an open cell without a weight; that of one with a weight is 0
const OTHER_CELLS = 0.72; // how much of the page's background covers the cells that a finding is not about

/** The kind of every cell: the bits of what blocks it; of open cells, whether the weight shown is theirs. */
export function kindsOf({ bits, weights, answered }) {
  if (!weights) return bits.map((cell) => cell || PLAIN);
  return bits.map((cell, i) => cell || (answered[i] ? PLAIN : 0));
}

/** The cells on their canvas. Only rows that differ from what is on the canvas are drawn again. */
export class CellPicture {
  constructor(canvas) {
    this.canvas = canvas;
    this.kinds = null;
  }

  /** Begin anew, for a grid of `size` rows and columns. look: {geometry, theme, pixelRatio, reasons, weights, scale}. */
  arrange(size, look) {
    const { geometry, theme, pixelRatio, reasons, weights, scale } = look;
    const side = Math.max(1, Math.round(geometry.plotWidth * pixelRatio));
    this.context = sizedContext(this.canvas, side, side);
    this.context.imageSmoothingEnabled = false;
    this.context.font = `${LABEL_FONT_SIZE * pixelRatio}px ${theme.font}`;
    this.context.textAlign = "center";
    this.context.textBaseline = "middle";
    this.size = size;
    this.look = look;
    this.hatches = new Hatches(reasons, theme, geometry.cellWidth, pixelRatio);
    this.edges = edgesOf(size, side);
    this.weights = weights && weightsCanvas(weights, size, scale);
    this.kinds = null;
  }

  /** Take other weights; they are drawn by the next `show`. */
  reweigh(weights, scale) {
    this.look = { ...this.look, weights, scale };
    this.weights = weightsCanvas(weights, this.size, scale);
    this.isReweighed = true;
  }

  show(kinds) {
    for (let row = 0; row < this.size; row++) {
      if (this.isReweighed || !this.kinds || this.rowDiffers(row, kinds)) this.drawRow(row, kinds);
    }
    this.kinds = kinds;
    this.isReweighed = false;
  }

  rowDiffers(row, kinds) {
    for (let i = row * this.size; i < (row + 1) * this.size; i++) if (kinds[i] !== this.kinds[i]) return true;
    return false;
  }

  drawRow(row, kinds) {
    const { context, edges, size } = this;
    context.clearRect(0, edges[row], edges[size], edges[row + 1] - edges[row]);
    const first = row * size;
    for (let start = 0, end; start < size; start = end) {
      const kind = kinds[first + start];
      for (end = start + 1; end < size && kinds[first + end] === kind; ) end++;
      if (kind !== PLAIN) this.drawRun(row, start, end, kind);
    }
  }

  drawRun(row, start, end, kind) {
    const { context, edges } = this;
    const [left, top] = [edges[start], edges[row]];
    const [width, height] = [edges[end] - left, edges[row + 1] - top];
    if (kind === 0) {
      context.drawImage(this.weights, start, row, end - start, 1, left, top, width, height);
      if (this.look.geometry.numbers) this.drawNumbers(row, start, end);
    } else {
      context.fillStyle = this.hatches.patternOf(kind, context);
      context.fillRect(left, top, width, height);
    }
  }

  drawNumbers(row, start, end) {
    const { context, edges, size } = this;
    const { weights, scale, pixelRatio } = this.look;
    for (let column = start; column < end; column++) {
      const weight = weights[row * size + column];
      const text = cellNumber(weight);
      context.fillStyle = inkOn(pixelFor(weight, scale));
      context.globalAlpha = text === "0.00" ? 0.35 : 1;
      const [x, y] = [(edges[column] + edges[column + 1]) / 2, (edges[row] + edges[row + 1]) / 2];
      context.fillText(text, x, y + 0.5 * pixelRatio);
    }
    context.globalAlpha = 1;
  }
}

/** The weights, one pixel a cell. */
function weightsCanvas(weights, size, scale) {
  const canvas = new OffscreenCanvas(size, size);
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  paintPixels(new Uint32Array(image.data.buffer), weights, null, scale);
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The scale of the largest of some weights. */
export function scaleOf(theme, weights, size) {
  let largest = 0;
  for (const weight of weights) if (weight > largest) largest = weight;
  return weightScale(theme, largest, usualCurve(size));
}

/** Quiet lines between the cells, the quieter the closer they stand. */
export function drawLines(context, size, { left, top, plotWidth, cellWidth }, theme) {
  context.fillStyle = theme.text;
  context.globalAlpha = clamp(cellWidth / 150, 0.05, 0.13);
  for (let i = 1; i < size; i++) {
    const at = Math.round((i * plotWidth) / size);
    context.fillRect(left + at, top, 1, plotWidth);
    context.fillRect(left, top + at, plotWidth, 1);
  }
  context.globalAlpha = 1;
}

/** Where each row or column begins, in device pixels, and where the last one ends. */
function edgesOf(size, side) {
  return Float64Array.from({ length: size + 1 }, (_, i) => Math.round((i * side) / size));
}

/** Cover all other cells with the background, and draw a line around those of a finding. Sizes are device pixels. */
export function drawFound(context, cells, size, side, theme) {
  const edges = edgesOf(size, side);
  context.globalAlpha = OTHER_CELLS;
  context.fillStyle = theme.background;
  context.fillRect(0, 0, side, side);
  context.globalAlpha = 1;
  context.fillStyle = theme.text;
  const isFound = (row, column) => row >= 0 && column >= 0 && row < size && column < size && cells[row * size + column];
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      if (!isFound(row, column)) continue;
      const [left, top, right, bottom] = [edges[column], edges[row], edges[column + 1], edges[row + 1]];
      const line = right - left < 6 ? 1 : 2;
      context.clearRect(left, top, right - left, bottom - top);
      if (!isFound(row - 1, column)) context.fillRect(left, top, right - left, line);
      if (!isFound(row + 1, column)) context.fillRect(left, bottom - line, right - left, line);
      if (!isFound(row, column - 1)) context.fillRect(left, top, line, bottom - top);
      if (!isFound(row, column + 1)) context.fillRect(right - line, top, line, bottom - top);
    }
  }
}
