/** A small bar chart on a canvas: one bar per key, hatched where the key is blocked. */

/** @import { Pen, Theme } from "../types.d.ts" */
/** @import { Series } from "./types.d.ts" */

import { barPlace, drawBar, drawBaseline } from "../marks/bar.js";
import { drawHatch } from "../marks/hatch.js";
import { sizedContext } from "../marks/pen.js";
import { drawPlate } from "../marks/text.js";
import { setBox } from "../shared/dom.js";
import { pixelRatioOf } from "../shared/zoom.js";

const LOWEST_BAR = 1; // pixels of a bar above zero, however small
const LOWEST_LEAK = 3; // the same where there should be none

/** Draw a series in `column` pixels a key and `height` pixels.
 *  @param {HTMLCanvasElement} canvas @param {Series} series
 *  @param {{ column: number, height: number, theme: Theme }} look */
export function drawChart(canvas, series, { column, height, theme }) {
  const ratio = pixelRatioOf(canvas);
  const width = column * series.values.length;
  const context = sizedContext(canvas, Math.max(1, Math.round(width * ratio)), Math.round(height * ratio));
  setBox(canvas, null, null, width, height);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (let index = 0; index < series.values.length; index += 1) {
    if (!series.isBlocked(index)) continue;
    drawHatch(context, { left: index * column, top: 0, width: column, height }, theme, ratio);
  }
  drawBaseline(context, 0, height - 1, width, theme);
  for (let index = 0; index < series.values.length; index += 1) {
    drawWeight(context, series, index, column, height, theme);
    drawReference(context, series, index, column, height, theme);
  }
  for (const run of runsOfNaN(series.values)) drawNaN(context, run, column, height, theme);
}

/** One bar: purple, or the colour of a warning where a blocked key has weight.
 *  @param {Pen} context @param {Series} series @param {number} index @param {number} column @param {number} height
 *  @param {Theme} theme */
function drawWeight(context, { values, isBlocked, top }, index, column, height, theme) {
  const value = values[index];
  if (!(value > 0)) return;
  const leaks = isBlocked(index);
  const size = Math.max(leaks ? LOWEST_LEAK : LOWEST_BAR, Math.min(1, value / top) * (height - 1));
  drawBar(context, barPlace(index, column), height, size, leaks ? theme.warning : theme.roles.weights);
}

/** A line at the weight as it should be, where the bar of an allowed key is visibly another.
 *  @param {Pen} context @param {Series} series @param {number} index @param {number} column @param {number} height
 *  @param {Theme} theme */
function drawReference(context, { values, isBlocked, reference, top }, index, column, height, theme) {
  if (!reference || isBlocked(index)) return;
  const away = (Math.abs(values[index] - reference[index]) / top) * (height - 1);
  if (!(away >= 1.5)) return;
  const { left, width } = barPlace(index, column);
  context.fillStyle = theme.text;
  context.fillRect(left - 0.5, height - 1 - (reference[index] / top) * (height - 2), width + 1, 1.5);
}

/** [{first, count}] of neighbouring keys whose weight is not a number. @param {Float32Array} values */
function runsOfNaN(values) {
  /** @type {{ first: number, count: number }[]} */
  const runs = [];
  values.forEach((value, index) => {
    if (!Number.isNaN(value)) return;
    const last = runs.at(-1);
    if (last && last.first + last.count === index) last.count += 1;
    else runs.push({ first: index, count: 1 });
  });
  return runs;
}

/** The word NaN over keys whose weight is not a number; only the colour where it does not fit.
 *  @param {Pen} context @param {{ first: number, count: number }} run @param {number} column @param {number} height
 *  @param {Theme} theme */
function drawNaN(context, { first, count }, column, height, theme) {
  const width = count * column;
  context.fillStyle = theme.not_a_number;
  context.globalAlpha = 0.16;
  context.fillRect(first * column, 0, width, height);
  context.globalAlpha = 1;
  context.font = `600 ${Math.min(13, height)}px ${theme.font}`;
  const middle = (first + count / 2) * column;
  const fits = context.measureText("NaN").width + 4 <= width;
  if (fits) drawPlate(context, "NaN", middle, height / 2, theme, theme.not_a_number, Math.min(height, 18));
}

/** The largest number of an array that is one, at least a little above zero. @param {Iterable<number>} values */
export function largestNumber(values) {
  let largest = 1e-9;
  for (const value of values) if (value > largest) largest = value;
  return largest;
}
