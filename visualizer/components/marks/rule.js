/** Lines as marks: around cells, and between them. */

/** @import { Geometry, Matrix, Pen, Theme } from "../types.d.ts" */

/** Quiet lines between cells.
 *  @param {Pen} context @param {{ rows: number, columns: number }} size @param {Geometry} geometry @param {Theme} theme
 *  @param {number} strength */
export function drawRules(context, { rows, columns }, { left, top, plotWidth, plotHeight }, theme, strength) {
  context.fillStyle = theme.text;
  context.globalAlpha = strength;
  for (let i = 1; i < columns; i++) context.fillRect(left + Math.round((i * plotWidth) / columns), top, 1, plotHeight);
  for (let i = 1; i < rows; i++) context.fillRect(left, top + Math.round((i * plotHeight) / rows), plotWidth, 1);
  context.globalAlpha = 1;
}

/** The places where each row or column begins, in device pixels, and where the last one ends.
 *  @param {number} count @param {number} length */
export function edgesOf(count, length) {
  return Float64Array.from({ length: count + 1 }, (_, i) => Math.round((i * length) / count));
}

/** Draw a line inside the edge of some cells, one flag each; neighbours share one. `across` and `down` are edges.
 *  @param {Pen} context @param {ArrayLike<number>} cells @param {Float64Array} across @param {Float64Array} down
 *  @param {{ color: string, line: number }} look */
export function outlineCells(context, cells, across, down, { color, line }) {
  const [rows, columns] = [down.length - 1, across.length - 1];
  /** @param {number} row @param {number} column */
  const has = (row, column) => row >= 0 && column >= 0 && row < rows && column < columns && cells[row * columns + column];
  context.fillStyle = color;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      if (!has(row, column)) continue;
      const [left, top, right, bottom] = [across[column], down[row], across[column + 1], down[row + 1]];
      if (!has(row - 1, column)) context.fillRect(left, top, right - left, line);
      if (!has(row + 1, column)) context.fillRect(left, bottom - line, right - left, line);
      if (!has(row, column - 1)) context.fillRect(left, top, line, bottom - top);
      if (!has(row, column + 1)) context.fillRect(right - line, top, line, bottom - top);
    }
  }
}

/** Draw a line around the marked cells, on one of the background that parts it from dark cells.
 *  @param {Pen} context @param {Matrix} matrix @param {number} width @param {number} height @param {Theme} theme */
export function drawMarked(context, matrix, width, height, theme) {
  const { marked, rows, columns } = matrix;
  if (!marked) return;
  const [across, down] = [edgesOf(columns, width), edgesOf(rows, height)];
  const line = across[1] < 6 ? 1 : Math.min(4, Math.floor(across[1] / 8));
  outlineCells(context, marked, across, down, { color: theme.background, line: line * 2 });
  outlineCells(context, marked, across, down, { color: theme.warning, line });
}
