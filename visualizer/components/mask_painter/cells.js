/*
 * Cells are a Uint8Array of rows * columns, row by row, 1 where a query is blocked from a key. They are never changed:
 * every function here returns new ones.
 */

/** @import { Cell } from "../types.d.ts" */

import { toBase64 } from "../shared/payload.js";

/** Cells from one bit each, the first in the highest bit, as NumPy packs them.
 *  @param {Uint8Array} bytes @param {number} count */
export function unpackBits(bytes, count) {
  return Uint8Array.from({ length: count }, (_, i) => (bytes[i >> 3] >> (7 - (i & 7))) & 1);
}

/** One bit per cell, the first in the highest bit. @param {Uint8Array} cells */
export function packBits(cells) {
  const bytes = new Uint8Array((cells.length + 7) >> 3);
  for (let i = 0; i < cells.length; i++) if (cells[i]) bytes[i >> 3] |= 128 >> (i & 7);
  return bytes;
}

const DEFLATED = 1 << 15;
const OBLONG = 1 << 14;
const LONGEST_PLAIN = 4_096; // bytes; more is deflated, so that it fits into an address

/** Cells as a link has them: the sizes, then one bit each, in base64 for addresses.
 *  @param {{cells: Uint8Array, rows: number, columns: number}} painted */
export async function cellsText({ cells, rows, columns }) {
  const plain = packBits(cells);
  const isDeflated = plain.length > LONGEST_PLAIN;
  const bytes = isDeflated ? await deflated(plain) : plain;
  const first = rows | (rows === columns ? 0 : OBLONG) | (isDeflated ? DEFLATED : 0);
  const sizes = rows === columns ? [first] : [first, columns];
  const header = sizes.flatMap((size) => [size >> 8, size & 255]);
  const text = toBase64(Uint8Array.from([...header, ...bytes]));
  return `~${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function deflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** True if both are blocked at the same places.
 *  @param {ArrayLike<number>} first @param {ArrayLike<number>} second */
export function sameCells(first, second) {
  if (first === second) return true;
  if (first.length !== second.length) return false;
  for (let i = 0; i < first.length; i++) if (first[i] !== second[i]) return false;
  return true;
}

/** The cells with a straight line between two places set to `value`, without gaps.
 *  @param {Uint8Array} cells @param {number} columns @param {Cell} from @param {Cell} to @param {number} value */
export function withLine(cells, columns, from, to, value) {
  const painted = cells.slice();
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.column - from.column), 1);
  for (let step = 0; step <= steps; step++) {
    const row = Math.round(from.row + ((to.row - from.row) * step) / steps);
    const column = Math.round(from.column + ((to.column - from.column) * step) / steps);
    painted[row * columns + column] = value;
  }
  return painted;
}

/** The cells with the rectangle between two opposite corners set to `value`.
 *  @param {Uint8Array} cells @param {number} columns @param {Cell} corner @param {Cell} opposite
 *  @param {number} value */
export function withRectangle(cells, columns, corner, opposite, value) {
  const painted = cells.slice();
  const left = Math.min(corner.column, opposite.column);
  const right = Math.max(corner.column, opposite.column);
  const bottom = Math.max(corner.row, opposite.row);
  for (let row = Math.min(corner.row, opposite.row); row <= bottom; row++) {
    painted.fill(value, row * columns + left, row * columns + right + 1);
  }
  return painted;
}

/** The first and the last place of a whole row, or with `row` -1 of a whole column.
 *  @param {Cell} line @param {number} rows @param {number} columns */
export function endsOfLine({ row, column }, rows, columns) {
  return row < 0
    ? [{ row: 0, column }, { row: rows - 1, column }]
    : [{ row, column: 0 }, { row, column: columns - 1 }];
}

/** True if every cell of a row, or with `row` -1 of a column, is blocked.
 *  @param {Uint8Array | Uint16Array} cells @param {number} columns @param {Cell} line */
export function lineIsBlocked(cells, columns, { row, column }) {
  if (row >= 0) return cells.subarray(row * columns, (row + 1) * columns).every(Boolean);
  for (let i = column; i < cells.length; i += columns) if (!cells[i]) return false;
  return true;
}

/** Open cells where there were blocked ones, and the reverse. @param {Uint8Array} cells */
export function invertedCells(cells) {
  return cells.map((cell) => 1 - cell);
}

/** So many cells, all open. @param {number} count */
export function openCells(count) {
  return new Uint8Array(count);
}

/** The number of blocked cells. @param {Uint8Array} cells */
export function countBlocked(cells) {
  let count = 0;
  for (const cell of cells) count += cell;
  return count;
}

/** The cells with all that are `touched` set to `value`.
 *  @param {Uint8Array} cells @param {Uint8Array} touched @param {number} value */
export function withTouched(cells, touched, value) {
  const painted = cells.slice();
  for (let i = 0; i < painted.length; i++) if (touched[i]) painted[i] = value;
  return painted;
}
