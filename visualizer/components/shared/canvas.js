/** Canvases and the text on them. */

/** @import { Pen } from "../types.d.ts" */

import { charactersOf } from "./dom.js";
import { SvgPen } from "./svg_pen.js";
import { textsOf } from "./texts.js";

const say = textsOf("shared/canvas");

/** @type {OffscreenCanvasRenderingContext2D | undefined} */
let measuring;

const svgPens = new WeakMap();

/** The pen that has drawn on a canvas in lines and letters; none where it was drawn in pixels.
 *  @param {HTMLCanvasElement} canvas */
export function svgPenOf(canvas) {
  return svgPens.get(canvas);
}

/** A pen that writes SVG, for a canvas in a picture that is to be saved so. @param {HTMLCanvasElement} canvas */
function makeSvgPen(canvas) {
  if (!svgPens.has(canvas)) svgPens.set(canvas, new SvgPen(canvas, textContext));
  return svgPens.get(canvas);
}

/**
 * A pen for a canvas.
 * @template {HTMLCanvasElement | OffscreenCanvas} Canvas
 * @param {Canvas} canvas
 * @param {CanvasRenderingContext2DSettings} [settings]
 * @returns {Canvas extends OffscreenCanvas ? OffscreenCanvasRenderingContext2D : CanvasRenderingContext2D}
 */
export function contextOf(canvas, settings) {
  if ("closest" in canvas && canvas.closest("[data-in-lines]")) return makeSvgPen(canvas);
  const context = canvas.getContext("2d", settings);
  if (!context) throw new Error(say("no_canvas"));
  return /** @type {any} */ (context);
}

/** A context that measures text in a font. @param {string} font */
export function textContext(font) {
  measuring ??= contextOf(new OffscreenCanvas(1, 1));
  measuring.font = font;
  measuring.textBaseline = "alphabetic";
  return measuring;
}

/** Place and size an absolutely positioned element in CSS pixels; null leaves a coordinate alone.
 *  @param {HTMLElement} element @param {number | null} left @param {number | null} top @param {number} width
 *  @param {number} height */
export function setBox(element, left, top, width, height) {
  if (left !== null) element.style.left = `${left}px`;
  if (top !== null) element.style.top = `${top}px`;
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
}

/**
 * An empty drawing context of a canvas with this size in device pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function sizedContext(canvas, width, height) {
  const context = contextOf(canvas);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  } else {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
  }
  return context;
}

/** Text that reads upwards from a point.
 *  @param {Pen} context @param {string} text @param {number} x @param {number} y */
export function drawUpwards(context, text, x, y) {
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(text, 0, 0.5);
  context.restore();
}

/** A text cut to a width, with "…" when it is longer; whole characters are kept.
 *  @param {Pen} context @param {string} text @param {number} width */
export function shortened(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const characters = charactersOf(text);
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > width) characters.pop();
  return `${characters.join("")}…`;
}

/** The places where each row or column begins, in device pixels, and where the last one ends.
 *  @param {number} count @param {number} length */
export function edgesOf(count, length) {
  return Float64Array.from({ length: count + 1 }, (_, i) => Math.round((i * length) / count));
}

/** Draw a line inside the edge of some cells, one flag each; neighbours share one. `across` and `down` are edges.
 *  @param {Pen} context @param {ArrayLike<number>} cells @param {Float64Array} across @param {Float64Array} down
 *  @param {{ color: string, line: number }} look */
export function outlineCells(context, cells, across, down, { color, line }) {
  const [rows, columns] = [down.length - 1, across.length - 1];
  /** @param {number} row @param {number} column */
  const has = (row, column) => row >= 0 && column >= 0 && row < rows && column < columns && cells[row * columns + column];
  context.fillStyle = color;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      if (!has(row, column)) continue;
      const [left, top, right, bottom] = [across[column], down[row], across[column + 1], down[row + 1]];
      if (!has(row - 1, column)) context.fillRect(left, top, right - left, line);
      if (!has(row + 1, column)) context.fillRect(left, bottom - line, right - left, line);
      if (!has(row, column - 1)) context.fillRect(left, top, line, bottom - top);
      if (!has(row, column + 1)) context.fillRect(right - line, top, line, bottom - top);
    }
  }
}
