/** The places on an axis. */

/** @import { Axis } from "../types.d.ts" */

/**
 * The number that a place is counted as: its index, unless some of a longer axis are drawn.
 * @param {Axis} axis
 * @param {number} index
 */
export function countedAs(axis, index) {
  return axis.numbers?.[index] ?? index;
}

/**
 * The label of a place; "" where that is its number.
 * @param {Axis} axis
 * @param {number} index
 */
export function labelBeside(axis, index) {
  const label = axis.labels[index] ?? "";
  return label === String(countedAs(axis, index)) ? "" : label;
}
