/** The marks: a Uint8Array, row by row, 1 where a cell is marked; never changed, only made anew. */

/** @import { Cell } from "../types.d.ts" */

/** The cells with one place marked alone in its row, or with the row empty where it was marked already.
 *  @param {Uint8Array} cells @param {number} columns @param {Cell} place */
export function withOneInRow(cells, columns, { row, column }) {
  const found = cells.slice();
  const isMarked = cells[row * columns + column];
  found.fill(0, row * columns, (row + 1) * columns);
  if (!isMarked) found[row * columns + column] = 1;
  return found;
}

/** The number of rows that have a mark. @param {Uint8Array} cells @param {number} columns */
export function countRows(cells, columns) {
  let count = 0;
  for (let start = 0; start < cells.length; start += columns) {
    if (cells.subarray(start, start + columns).some(Boolean)) count += 1;
  }
  return count;
}
