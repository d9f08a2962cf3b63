/** @import { Cell } from "../types.d.ts" */
/** @import { Reason, Shown } from "./types.d.ts" */

import { countOf, makeElement } from "../shared/dom.js";
import { formatNumber } from "../shared/payload.js";
import { nameOf } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { positionParts, tooltipLine } from "../shared/tooltip.js";
import { lineIsBlocked } from "./cells.js";
import { namesOf, reasonsOf, reasonVariable } from "./reasons.js";

const say = textsOf("mask_painter/sentences");
const DESCRIBED_ROWS = 24;

/** The note about a cell; `shown` is what `shownOf` returns. @param {Shown} shown @param {Cell} place */
export function cellLines(shown, place) {
  const lines = [cellLine(shown, place)];
  if (shown.emptyRows?.[place.row]) lines.push(tooltipLine("tooltip-warning", say("empty_row")));
  return lines;
}

/**
 * "query 3 sat may not see key 5 mat: causal; also padding", or "query 3 sat sees key 1 cat: weight 0.4123". A blocked
 * key that keeps a weight all the same, since the model is broken, has it said too.
 * @param {Shown} shown @param {Cell} place
 */
export function cellLine(shown, { row, column }) {
  const { rowAxis, columnAxis } = shown.axes;
  const i = row * shown.size.columns + column;
  const reasons = reasonsOf(shown.bits[i], shown.reasons);
  const end = reasons.length ? [...reasonParts(reasons), ...leakParts(shown, i)] : weightParts(shown, i);
  const [query, key] = [positionParts(rowAxis, row), positionParts(columnAxis, column)];
  const verb = reasons.length ? say("blocked") : say("sees");
  return tooltipLine("tooltip-cell", ...query, verb, ...key, ...(end.length ? [": ", ...end] : []));
}

/** @param {Shown} shown @param {number} i */
function weightParts({ weights, dtype, answered, isPending }, i) {
  if (!weights) return [];
  if (answered[i]) return [say("no_weight_yet")];
  const weight = formatNumber(weights[i], dtype);
  return [isPending ? say("weight_before", { weight }) : say("weight", { weight })];
}

/** @param {Shown} shown @param {number} i */
function leakParts({ weights, dtype, answered, isPending }, i) {
  const isKnown = weights && answered[i] && !isPending;
  return isKnown && weights[i] !== 0 ? [say("leak", { weight: formatNumber(weights[i], dtype) })] : [];
}

/** "causal; also padding, painted" as nodes, each underlined in its colour. @param {Reason[]} reasons */
function reasonParts(reasons) {
  return reasons.flatMap((reason, index) => {
    const node = makeElement("span", "tooltip-reason", {}, [reason.label]);
    node.style.setProperty("--reason", reasonVariable(reason));
    return [["", say("also"), ", "][Math.min(index, 2)], node];
  });
}

/** The note about a whole row or column, and what a click on its label does while cells are painted.
 *  @param {Shown} shown @param {Cell} place @param {boolean} isPainting */
export function labelLines({ axes, size, bits }, place, isPainting) {
  const isRow = place.row >= 0;
  const parts = isRow ? positionParts(axes.rowAxis, place.row) : positionParts(axes.columnAxis, place.column);
  const verb = lineIsBlocked(bits, size.columns, place) ? say("free") : say("block");
  const note = tooltipLine("tooltip-note", say("click", { verb, line: isRow ? say("row") : say("column") }));
  return [tooltipLine("tooltip-position", ...parts), ...(isPainting ? [note] : [])];
}

/** That other masks still block cells which a stroke was to free; "" where none does.
 *  @param {Uint8Array} refused @param {number} columns @param {Reason[]} reasons */
export function refusedText(refused, columns, reasons) {
  const cells = Array.from(refused.keys()).filter((i) => refused[i]);
  if (cells.length === 0) return "";
  const names = reasonsOf(cells.reduce((bits, i) => bits | refused[i], 0), reasons);
  const [first] = cells;
  const verb = names.length === 1 ? say("one_blocks") : say("block");
  const still = `${namesOf(names)} ${say("still", { verb })} `;
  if (cells.length > 1) return still + say("of_these", { count: cells.length.toLocaleString("en") });
  const why = names.map(({ name }) => WHY_BLOCKED[name]).join(say("and"));
  return still + say("one_cell", { query: Math.floor(first / columns), key: first % columns, why });
}

/** @type {Record<string, string>} */
const WHY_BLOCKED = {
  causal: say("causal"),
  padding: say("padding"),
  sliding_window: say("sliding_window"),
  prefix: say("prefix"),
  strided: say("strided"),
};

/** "1 query has no key left". @param {number} count */
export function emptyText(count) {
  return count === 1 ? say("empty_query") : say("empty_queries", { count });
}

/** "12 of 81 cells blocked". @param {number} blocked @param {number} all */
export function totalText(blocked, all) {
  return say("total", { blocked: blocked.toLocaleString("en"), cells: countOf(all, "cell") });
}

/** The text alternative: how much is blocked and by what, then what each query may not see, while that is short.
 *  @param {Shown} shown @param {string} summary */
export function describePainting({ axes, size, bits, counts, reasons, findings }, summary) {
  const rows = [];
  for (let row = 0; row < size.rows && rows.length <= DESCRIBED_ROWS; row++) {
    const keys = blockedKeysText(bits, size.columns, row, reasons);
    if (keys) rows.push(`${nameOf(axes.rowAxis, row)}${say("blocked")}${keys}`);
  }
  const blocking = reasons.flatMap(({ label }, i) => (counts[i] ? [say("blocks", { label, cells: countOf(counts[i], "cell") })] : []));
  const found = findings.map(({ severity, title }) => `${severity}: ${title}`);
  const shown = rows.length > DESCRIBED_ROWS ? [] : rows;
  return [say("mask", { rows: size.rows, columns: size.columns, summary }), ...blocking, ...found, ...shown].join("; ");
}

/** The same, one text for each query. @param {Shown} shown */
export function rowsOfPainting({ axes, size, bits, reasons }) {
  return Array.from({ length: size.rows }, (_, row) => {
    const blocked = blockedKeysText(bits, size.columns, row, reasons);
    return `${nameOf(axes.rowAxis, row)}${blocked ? `${say("blocked")}${blocked}` : say("sees_all")}`;
  });
}

/** The keys that a row may not see, in words: "key 2 (padding), keys 4 to 8 (causal, padding)".
 *  @param {ArrayLike<number>} bits @param {number} columns @param {number} row @param {Reason[]} reasons */
function blockedKeysText(bits, columns, row, reasons) {
  /** @type {{ start: number, end: number, cell: number }[]} */
  const runs = [];
  for (let column = 0; column < columns; column++) {
    const cell = bits[row * columns + column];
    const last = runs.at(-1);
    if (cell && last?.end === column - 1 && last.cell === cell) last.end = column;
    else if (cell) runs.push({ start: column, end: column, cell });
  }
  /** @param {{ start: number, end: number }} run */
  const keys = ({ start, end }) => (start === end ? say("key", { key: start }) : say("keys", { start, end }));
  return runs.map((run) => `${keys(run)} (${namesOf(reasonsOf(run.cell, reasons))})`).join(", ");
}
