/** Canvases and the text on them. */

/** @import { Pen } from "../types.d.ts" */

import { textsOf } from "../shared/texts.js";
import { SvgPen } from "./svg_pen.js";

const say = textsOf("marks/pen");

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
 * @param {Canvas} canvas @param {CanvasRenderingContext2DSettings} [settings]
 * @returns {Canvas extends OffscreenCanvas ? OffscreenCanvasRenderingContext2D : Pen}
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

/** An empty drawing context of a canvas with this size in device pixels.
 *  @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
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
