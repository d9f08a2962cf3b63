/** Bars as marks, one for each of some columns. */

/** @import { Pen, Theme } from "../types.d.ts" */

const WIDEST_BAR = 28;

/** The place of a bar: wide ones apart from their neighbours, thin ones close.
 *  @param {number} index @param {number} column */
export function barPlace(index, column) {
  const width = Math.min(WIDEST_BAR, column >= 4 ? column * 0.72 : Math.max(1, column - 0.5));
  return { left: index * column + (column - width) / 2, width };
}

/** The line from which bars grow.
 *  @param {Pen} context @param {number} left @param {number} y @param {number} width @param {Theme} theme */
export function drawBaseline(context, left, y, width, theme) {
  context.fillStyle = theme.roles.neutral;
  context.globalAlpha = 0.5;
  context.fillRect(left, y, width, 1);
  context.globalAlpha = 1;
}

/** A bar of `size` pixels up from the height `zero`, or down where `size` is negative.
 *  @param {Pen} context @param {{ left: number, width: number }} place @param {number} zero @param {number} size
 *  @param {string} color */
export function drawBar(context, { left, width }, zero, size, color) {
  context.fillStyle = color;
  context.fillRect(left, size < 0 ? zero : zero - size, width, Math.abs(size));
}
