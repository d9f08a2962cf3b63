/** The hatch of what is blocked, as a mark. */

/** @import { Box, Pen, Theme } from "../types.d.ts" */

import { contextOf } from "./pen.js";
import { drawnBy } from "./svg_pen.js";

/** The hatch of blocked cells over a box in CSS pixels, its stripes sharp at any ratio of device pixels.
 *  @param {Pen} context @param {Box} box @param {Theme} theme @param {number} pixelRatio */
export function drawHatch(context, { left, top, width, height }, theme, pixelRatio) {
  const pattern = tiled(context, hatchTile(theme, pixelRatio), theme.hatch_ground);
  if (typeof pattern !== "string") pattern.setTransform(new DOMMatrix().scale(1 / pixelRatio));
  context.fillStyle = pattern;
  context.fillRect(left, top, width, height);
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
export function patternCanvas(flags, rows, columns, width, height, tile, plain) {
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
export function makeTile(size, draw) {
  const tile = new OffscreenCanvas(size, size);
  draw(contextOf(tile));
  return drawnBy(tile, draw);
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

/** One tile of diagonal stripes on the hatch's ground. @param {Theme} theme @param {number} pixelRatio */
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
