/** The places on an axis. */

/** @import { Axis, Mark } from "../types.d.ts" */

/** The number that a place is counted as: its index, unless some of a longer axis are drawn.
 *  @param {Axis} axis @param {number} index */
export function countedAs(axis, index) {
  return axis.numbers?.[index] ?? index;
}

/** The label of a place; "" where that is its number. @param {Axis} axis @param {number} index */
export function labelBeside(axis, index) {
  const label = axis.labels[index] ?? "";
  return label === String(countedAs(axis, index)) ? "" : label;
}

/**
 * The marks that hovering one cell publishes: its row's and its column's token, where the axes are tokens.
 * @param {Axis} rowAxis @param {Axis} columnAxis @param {number} row @param {number} column
 * @returns {Mark[]}
 */
export function marksOfCell(rowAxis, columnAxis, row, column) {
  const marks = [];
  if (rowAxis.sequence) marks.push({ sequence: rowAxis.sequence, index: row, role: markRole(rowAxis, "query") });
  if (columnAxis.sequence) {
    marks.push({ sequence: columnAxis.sequence, index: column, role: markRole(columnAxis, "key") });
  }
  return marks;
}

/** The role of an axis' marks: what its name says, else what its side says.
 *  @param {Axis} axis @param {string} sideRole */
function markRole(axis, sideRole) {
  return axis.name === "query" || axis.name === "key" ? axis.name : sideRole;
}

/**
 * The position on an axis that marks light, -1 for none.
 * @param {Axis} axis @param {string} sideRole @param {Mark[]} marks
 * @returns {number}
 */
export function litPosition(axis, sideRole, marks) {
  if (!axis.sequence) return -1;
  const role = markRole(axis, sideRole);
  const mark = marks.find((one) => one.sequence === axis.sequence && (one.role === "token" || one.role === role));
  return mark ? mark.index : -1;
}
