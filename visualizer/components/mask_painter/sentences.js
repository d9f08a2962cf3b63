import { countOf, makeElement } from "../shared/dom.js";
import { formatNumber } from "../shared/payload.js";
import { nameOf } from "../shared/rows.js";
import { positionParts, tooltipLine } from "../shared/tooltip.js";
import { lineIsBlocked } from "./cells.js";
import { namesOf, reasonsOf, reasonVariable } from "./reasons.js";

const DESCRIBED_ROWS = 24;

/** What the note says about a cell; `shown` is what `shownOf` returns. */
export function cellLines(shown, place) {
  const lines = [cellLine(shown, place)];
  if (shown.emptyRows?.[place.row]) lines.push(tooltipLine("tooltip-warning", "every key is blocked: no key left"));
  return lines;
}

/**
 * "query 3 sat may not see key 5 mat: causal; also padding", or "query 3 sat sees key 1 cat: weight 0.4123". A blocked
 * key that keeps a weight all the same, since the model is broken, has it said too.
 */
export function cellLine(shown, { row, column }) {
  const { rowAxis, columnAxis } = shown.axes;
  const i = row * shown.size.columns + column;
  const reasons = reasonsOf(shown.bits[i], shown.reasons);
  const end = reasons.length ? [...reasonParts(reasons), ...leakParts(shown, i)] : weightParts(shown, i);
  const [query, key] = [positionParts(rowAxis, row), positionParts(columnAxis, column)];
  const verb = reasons.length ? " may not see " : " sees ";
  return tooltipLine("tooltip-cell", ...query, verb, ...key, ...(end.length ? [": ", ...end] : []));
}

function weightParts({ weights, dtype, answered, isPending }, i) {
  if (!weights) return [];
  if (answered[i]) return ["its weight is not computed yet"];
  return [`weight ${formatNumber(weights[i], dtype)}${isPending ? " before this change" : ""}`];
}

function leakParts({ weights, dtype, answered, isPending }, i) {
  const isKnown = weights && answered[i] && !isPending;
  return isKnown && weights[i] !== 0 ? [`; yet its weight is ${formatNumber(weights[i], dtype)}`] : [];
}

/** "causal; also padding, painted" as nodes, each underlined in its colour. */
function reasonParts(reasons) {
  return reasons.flatMap((reason, index) => {
    const node = makeElement("span", "tooltip-reason", {}, [reason.label]);
    node.style.setProperty("--reason", reasonVariable(reason));
    return [["", "; also ", ", "][Math.min(index, 2)], node];
  });
}

/** What the note says about a whole row or column, and what a click on its label does while cells are painted. */
export function labelLines({ axes, size, bits }, place, isPainting) {
  const isRow = place.row >= 0;
  const parts = isRow ? positionParts(axes.rowAxis, place.row) : positionParts(axes.columnAxis, place.column);
  const verb = lineIsBlocked(bits, size.columns, place) ? "free" : "block";
  const note = tooltipLine("tooltip-note", `click to ${verb} the whole ${isRow ? "row" : "column"}`);
  return [tooltipLine("tooltip-position", ...parts), ...(isPainting ? [note] : [])];
}

/** That other masks still block cells which a stroke was to free; "" where none does. */
export function refusedText(refused, columns, reasons) {
  const cells = Array.from(refused.keys()).filter((i) => refused[i]);
  if (cells.length === 0) return "";
  const names = reasonsOf(cells.reduce((bits, i) => bits | refused[i], 0), reasons);
  const [first] = cells;
  const place = `query ${Math.floor(first / columns)}, key ${first % columns}`;
  const which = cells.length === 1 ? place : `${cells.length.toLocaleString("en")} of these cells`;
  const verb = names.length === 1 ? "blocks" : "block";
  const why = cells.length === 1 ? `, since ${names.map(({ name }) => WHY_BLOCKED[name]).join(", and ")}` : "";
  return `${namesOf(names)} still ${verb} ${which}${why}`;
}

const WHY_BLOCKED = {
  causal: "the key comes later",
  padding: "the key is padding",
  sliding_window: "the key is outside the window",
  prefix: "the key comes later and is not in the prefix",
  strided: "the key is not a whole number of strides away",
};

/** "1 query has no key left". */
export function emptyText(count) {
  return count === 1 ? "1 query has no key left" : `${count} queries have no key left`;
}

/** "12 of 81 cells blocked". */
export function totalText(blocked, all) {
  return `${blocked.toLocaleString("en")} of ${countOf(all, "cell")} blocked`;
}

/** The text alternative: how much is blocked and by what, then what each query may not see, while that is short. */
export function describePainting({ axes, size, bits, counts, reasons, findings }, summary) {
  const rows = [];
  for (let row = 0; row < size.rows && rows.length <= DESCRIBED_ROWS; row++) {
    const keys = blockedKeysText(bits, size.columns, row, reasons);
    if (keys) rows.push(`query ${row} ${axes.rowAxis.labels[row]} may not see ${keys}`);
  }
  const blocking = reasons.flatMap(({ label }, i) => (counts[i] ? [`${label} blocks ${countOf(counts[i], "cell")}`] : []));
  const found = findings.map(({ severity, title }) => `${severity}: ${title}`);
  const shown = rows.length > DESCRIBED_ROWS ? [] : rows;
  return [`mask, ${size.rows} queries by ${size.columns} keys: ${summary}`, ...blocking, ...found, ...shown].join("; ");
}

/** The same, one text for each query. */
export function rowsOfPainting({ axes, size, bits, reasons }) {
  return Array.from({ length: size.rows }, (_, row) => {
    const blocked = blockedKeysText(bits, size.columns, row, reasons);
    return `${nameOf(axes.rowAxis, row)} ${blocked ? `may not see ${blocked}` : "sees every key"}`;
  });
}

/** The keys that a row may not see, in words: "key 2 (padding), keys 4 to 8 (causal, padding)". */
function blockedKeysText(bits, columns, row, reasons) {
  const runs = [];
  for (let column = 0; column < columns; column++) {
    const cell = bits[row * columns + column];
    const last = runs.at(-1);
    if (cell && last?.end === column - 1 && last.cell === cell) last.end = column;
    else if (cell) runs.push({ start: column, end: column, cell });
  }
  const keys = ({ start, end }) => (start === end ? `key ${start}` : `keys ${start} to ${end}`);
  return runs.map((run) => `${keys(run)} (${namesOf(reasonsOf(run.cell, reasons))})`).join(", ");
}
