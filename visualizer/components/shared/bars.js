/** Bars on a canvas, one for each of some columns. */

/** @import { Box, Pen, Theme } from "../types.d.ts" */

import { hatchTile, tiled } from "./matrix_pixels.js";

const WIDEST_BAR = 28;

/** The place of a bar: wide ones apart from their neighbours, thin ones close.
 *  @param {number} index @param {number} column */
export function barPlace(index, column) {
  const width = Math.min(WIDEST_BAR, column >= 4 ? column * 0.72 : Math.max(1, column - 0.5));
  return { left: index * column + (column - width) / 2, width };
}

/** A bar of `size` pixels up from the height `zero`, or down where `size` is negative.
 *  @param {Pen} context @param {{ left: number, width: number }} place @param {number} zero @param {number} size
 *  @param {string} color */
export function drawBar(context, { left, width }, zero, size, color) {
  context.fillStyle = color;
  context.fillRect(left, size < 0 ? zero : zero - size, width, Math.abs(size));
}

/** The hatch of blocked cells over a box in CSS pixels, its stripes sharp at any ratio of device pixels.
 *  @param {Pen} context @param {Box} box @param {Theme} theme @param {number} pixelRatio */
export function drawHatch(context, { left, top, width, height }, theme, pixelRatio) {
  const pattern = tiled(context, hatchTile(theme, pixelRatio), theme.hatch_ground);
  if (typeof pattern !== "string") pattern.setTransform(new DOMMatrix().scale(1 / pixelRatio));
  context.fillStyle = pattern;
  context.fillRect(left, top, width, height);
}
