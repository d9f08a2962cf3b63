/** A matrix in words: cell by cell for who points at it, row by row for who does not see it. */

/** @import { Axis, Matrix, TooltipLine } from "../types.d.ts" */

import { countedAs, labelBeside } from "./axis.js";
import { makeElement } from "./dom.js";
import { cellText, formatNumber } from "./payload.js";
import { textsOf } from "./texts.js";
import { blockedText, cellPositionLine, tooltipLine } from "./tooltip.js";

const say = textsOf("shared/rows");
const MOST_ROWS = 32; // rows in words; of a longer matrix the others are counted
const WHOLE_ROW = 12; // up to so many columns every number of a row is said
const MOST_NUMBERS = 3; // of a longer row, those furthest from zero

/** The words for a query whose every key is blocked. */
export const NO_KEY_LEFT = say("no_key_left");

/**
 * One text for each row, such as "query 2 sat: the 0.1, cat 0.9, sat blocked".
 * @param {Matrix} matrix
 * @returns {string[]}
 */
export function describeRows(matrix) {
  const { rows, columns, rowAxis, emptyRows } = matrix;
  const inWords = columns <= WHOLE_ROW ? everyNumber : largestNumbers;
  const texts = [];
  for (let row = 0; row < Math.min(rows, MOST_ROWS); row++) {
    const said = emptyRows?.[row] ? NO_KEY_LEFT : inWords(matrix, row);
    texts.push(`${nameOf(rowAxis, row)}: ${said}`);
  }
  if (rows > MOST_ROWS) texts.push(say("more_by_keys", { rows: rows - MOST_ROWS }));
  return texts;
}

/** The place of the largest number of each row, "query 1 cat: key 0 the 0.9000; ..."; a row without a key has none.
 *  @param {Matrix} matrix */
export function strongestKeys({ values, rows, columns, rowAxis, columnAxis, blocked, dtype }) {
  const said = [];
  for (let row = 0; row < Math.min(rows, MOST_ROWS); row++) {
    let best = -1;
    for (let column = 0; column < columns; column++) {
      const i = row * columns + column;
      if (!blocked?.[i] && (best < 0 || values[i] > values[row * columns + best])) best = column;
    }
    const found = best < 0 ? NO_KEY_LEFT : `${nameOf(columnAxis, best)} ${formatNumber(values[row * columns + best], dtype)}`;
    said.push(`${nameOf(rowAxis, row)}: ${found}`);
  }
  if (rows > MOST_ROWS) said.push(say("more", { rows: rows - MOST_ROWS }));
  return said.join("; ");
}

/** @param {Matrix} matrix @param {number} row */
function everyNumber({ values, columns, columnAxis, blocked, dtype }, row) {
  const said = Array.from({ length: columns }, (_, column) => {
    const i = row * columns + column;
    return `${labelOf(columnAxis, column)} ${blocked?.[i] ? say("blocked") : formatNumber(values[i], dtype)}`;
  });
  return said.join(", ");
}

/** @param {Matrix} matrix @param {number} row */
function largestNumbers({ values, columns, columnAxis, blocked, dtype }, row) {
  const start = row * columns;
  /** @type {{ column: number, size: number }[]} */
  const first = [];
  let open = 0;
  for (let column = 0; column < columns; column++) {
    if (blocked?.[start + column]) continue;
    open += 1;
    const size = Math.abs(values[start + column]) || 0;
    if (first.length === MOST_NUMBERS && size <= first[MOST_NUMBERS - 1].size) continue;
    const place = first.findIndex((one) => size > one.size);
    first.splice(place < 0 ? first.length : place, 0, { column, size });
    if (first.length > MOST_NUMBERS) first.pop();
  }
  const said = first.map(({ column }) =>
    say("number_at", { number: formatNumber(values[start + column], dtype), place: nameOf(columnAxis, column) }));
  const hidden = columns - open;
  const rest = open - first.length;
  if (rest) said.push(say("nearer", { count: rest }));
  if (hidden) said.push(say("count_blocked", { count: hidden }));
  return said.join(", ");
}

/** "query 2 sat"; a label equal to its index is not repeated. @param {Axis} axis @param {number} index */
export function nameOf(axis, index) {
  const label = labelBeside(axis, index);
  const place = `${axis.name} ${countedAs(axis, index)}`;
  return label === "" ? place : `${place} ${label}`;
}

/** @param {Axis} axis @param {number} index */
function labelOf(axis, index) {
  return labelBeside(axis, index) || `${axis.name} ${countedAs(axis, index)}`;
}

/**
 * A tooltip's words about a cell: its place, its number, and what blocks it.
 * @param {Matrix} matrix @param {string} valueName @param {number} row @param {number} column
 * @returns {TooltipLine[]}
 */
export function describeCell(matrix, valueName, row, column) {
  const { columns, rowAxis, columnAxis, blocked, blockedBy, emptyRows } = matrix;
  const i = row * columns + column;
  const number = makeElement("b", "", {}, [cellText(matrix, i)]);
  const lines = [
    cellPositionLine(rowAxis, columnAxis, row, column),
    tooltipLine("tooltip-value", `${valueName} `, number),
  ];
  if (blocked?.[i]) lines.push(tooltipLine("tooltip-note", blockedText(blocked[i], blockedBy ?? [])));
  if (emptyRows?.[row]) lines.push(tooltipLine("tooltip-warning", say("empty_row")));
  return lines;
}

/** A tooltip line as plain text. @param {TooltipLine} line */
export function lineText({ parts }) {
  return parts.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
}

/** The text alternative of a matrix: name, size, range and what is blocked.
 *  @param {string} name @param {Matrix} matrix */
export function describeMatrix(name, matrix) {
  const { rows, columns, rowAxis, columnAxis, blocked } = matrix;
  const { data: values, scale, power } = matrix.steps ?? { data: matrix.values, scale: 1, power: 1 };
  let low = Infinity;
  let high = -Infinity;
  let blockedCount = 0;
  let unusual = 0;
  let bits = 0;
  for (let i = 0; i < values.length; i++) {
    if (blocked && blocked[i]) {
      blockedCount += 1;
      bits |= blocked[i];
    } else if (values[i] - values[i] !== 0) unusual += 1;
    else {
      if (values[i] < low) low = values[i];
      if (values[i] > high) high = values[i];
    }
  }
  const said = [say("size", { name, rows, columns, row: rowAxis.name, column: columnAxis.name })];
  const [from, to] = [low, high].map((number) => formatNumber(number ** power * scale));
  said.push(low <= high ? say("range", { from, to }) : say("no_range"));
  const blockedBy = blockedText(bits, matrix.blockedBy ?? []);
  if (blockedCount) said.push(say("cells_blocked", { count: blockedCount, cells: values.length, blockedBy }));
  if (unusual) said.push(say("not_finite", { count: unusual }));
  return said.join(", ");
}
