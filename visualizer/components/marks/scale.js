/** The way from numbers to colours. */

/** @import { PaletteName, Scale, Theme } from "../types.d.ts" */

import { colorTable, pixelOf } from "../shared/theme.js";

const MANY_TOKENS = 48;

/**
 * The way from numbers to pixels.
 * bounds: [low, high]; curve: "linear", or "root" to lift small numbers.
 * @param {Theme} theme @param {PaletteName} palette @param {number[]} bounds
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

/** The scale of attention weights: to 1, or to the largest weight where all weights are small.
 *  @param {Theme} theme @param {number} largest @param {string} curve */
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
 * @param {number} value @param {Scale} scale
 * @returns {number}
 */
export function pixelFor(value, scale) {
  if (value === Infinity || value === -Infinity) return scale.infinite;
  if (value !== value) return scale.notANumber;
  const last = scale.table.length - 1;
  const step = scale.perStep ? (value - scale.low) * scale.perStep : last / 2;
  return scale.table[step <= 0 ? 0 : step >= last ? last : (step + 0.5) | 0];
}

/** Black or white, whichever reads better on a canvas pixel. @param {number} pixel */
export function inkOn(pixel) {
  const luminance = 0.299 * (pixel & 255) + 0.587 * ((pixel >> 8) & 255) + 0.114 * ((pixel >> 16) & 255);
  return luminance > 150 ? "#14161c" : "#ffffff";
}
