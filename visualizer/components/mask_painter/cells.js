/*
 * Cells are a Uint8Array of size * size, row by row, 1 where a query is blocked from a key. They are never changed:
 * every function here returns new ones. A place is {row, column}.
 */

/** Cells from one bit each, the first in the highest bit, as NumPy packs them. */
function unpackBits(bytes, count) {
  return Uint8Array.from({ length: count }, (_, i) => (bytes[i >> 3] >> (7 - (i & 7))) & 1);
}

/** One bit per cell, the first in the highest bit. */
function packBits(cells) {
  const bytes = new Uint8Array((cells.length + 7) >> 3);
  for (let i = 0; i < cells.length; i++) if (cells[i]) bytes[i >> 3] |= 128 >> (i & 7);
  return bytes;
}

/** Bytes as base64 text. */
function toBase64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Whether both are blocked at the same places. */
function sameCells(first, second) {
  return first.length === second.length && first.every((cell, i) => cell === second[i]);
}

/** The cells with a straight line between two places set to `value`, without gaps. */
function withLine(cells, size, from, to, value) {
  const painted = cells.slice();
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.column - from.column), 1);
  for (let step = 0; step <= steps; step++) {
    const row = Math.round(from.row + ((to.row - from.row) * step) / steps);
    const column = Math.round(from.column + ((to.column - from.column) * step) / steps);
    painted[row * size + column] = value;
  }
  return painted;
}

/** The cells with the rectangle between two opposite corners set to `value`. */
function withRectangle(cells, size, corner, opposite, value) {
  const painted = cells.slice();
  const left = Math.min(corner.column, opposite.column);
  const right = Math.max(corner.column, opposite.column);
  const bottom = Math.max(corner.row, opposite.row);
  for (let row = Math.min(corner.row, opposite.row); row <= bottom; row++) {
    painted.fill(value, row * size + left, row * size + right + 1);
  }
  return painted;
}

/** The first and the last place of a whole row, or with `row` -1 of a whole column. */
function endsOfLine({ row, column }, size) {
  return row < 0
    ? [{ row: 0, column }, { row: size - 1, column }]
    : [{ row, column: 0 }, { row, column: size - 1 }];
}

/** Whether every cell of a row, or with `row` -1 of a column, is blocked. */
function lineIsBlocked(cells, size, { row, column }) {
  if (row >= 0) return cells.subarray(row * size, (row + 1) * size).every(Boolean);
  for (let i = column; i < cells.length; i += size) if (!cells[i]) return false;
  return true;
}

/** The cells with a whole row or column blocked, or freed when all of it is blocked already. */
function withLineToggled(cells, size, line) {
  return withRectangle(cells, size, ...endsOfLine(line, size), lineIsBlocked(cells, size, line) ? 0 : 1);
}

/** Open cells where there were blocked ones, and the reverse. */
function invertedCells(cells) {
  return cells.map((cell) => 1 - cell);
}

/** Cells blocked wherever `isOpen(row, column)` is false. */
function cellsOpenWhere(size, isOpen) {
  return Uint8Array.from({ length: size * size }, (_, i) => (isOpen(Math.floor(i / size), i % size) ? 0 : 1));
}

/** Every cell open. */
function openCells(size) {
  return new Uint8Array(size * size);
}

/** How far the preset band reaches on both sides of the diagonal. */
function bandReach(size) {
  return Math.max(1, Math.round(Math.sqrt(size) / 2));
}

/** How many tokens a block of the preset has. */
function blockSize(size) {
  return Math.max(1, Math.round(Math.sqrt(size)));
}

/** Each query keeps the keys up to its own place. */
function lowerTriangle(size) {
  return cellsOpenWhere(size, (row, column) => column <= row);
}

/** Each query keeps the keys near its own place. */
function band(size) {
  const reach = bandReach(size);
  return cellsOpenWhere(size, (row, column) => Math.abs(row - column) <= reach);
}

/** Each query keeps the keys of its own block. */
function blockDiagonal(size) {
  const block = blockSize(size);
  return cellsOpenWhere(size, (row, column) => Math.floor(row / block) === Math.floor(column / block));
}

/** How many cells are blocked. */
function countBlocked(cells) {
  let count = 0;
  for (const cell of cells) count += cell;
  return count;
}

/** Blocked cells with an open one beside them: the outline of what is painted, and all of a thin line. */
function outlineOf(cells, size) {
  const outline = new Uint8Array(cells.length);
  for (let row = 0, i = 0; row < size; row++) {
    for (let column = 0; column < size; column++, i++) {
      if (!cells[i]) continue;
      const inside =
        (row === 0 || cells[i - size]) &&
        (row === size - 1 || cells[i + size]) &&
        (column === 0 || cells[i - 1]) &&
        (column === size - 1 || cells[i + 1]);
      outline[i] = inside ? 0 : 1;
    }
  }
  return outline;
}

/** The blocked keys of a row in words: "keys 0, 4 to 8"; "" when none is. */
function blockedKeysText(cells, size, row) {
  const runs = [];
  for (let column = 0; column < size; column++) {
    if (!cells[row * size + column]) continue;
    const last = runs.at(-1);
    if (last?.end === column - 1) last.end = column;
    else runs.push({ start: column, end: column });
  }
  if (runs.length === 0) return "";
  const parts = runs.map(({ start, end }) => (start === end ? String(start) : `${start} to ${end}`));
  return `${runs.length > 1 || runs[0].end > runs[0].start ? "keys" : "key"} ${parts.join(", ")}`;
}
