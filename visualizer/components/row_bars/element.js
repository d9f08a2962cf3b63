/**
 * One row of weights under many ways of masking: a line per way, a chart per number type.
 *
 * Pointing at a bar (or walking with the arrow keys) shows its number, and lights its key in all charts and on the
 * page. The whole table is one stop of the Tab key.
 */

/** @import { Host, Mark, Matrix, Point } from "../types.d.ts" */
/** @import { BarCell, BarPlace, BarRow, BarsHeader, Remark } from "./types.d.ts" */

import { makeElement, setText, under } from "../shared/dom.js";
import { hasModifier } from "../shared/keys.js";
import { flagsOf, floats, formatNumber } from "../shared/payload.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { Reading } from "../shared/reading.js";
import { describeRows, lineText, nameOf, NO_KEY_LEFT } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { positionParts, tooltipLine } from "../shared/tooltip.js";
import { zoomOf } from "../shared/zoom.js";
import { drawChart, largestNumber } from "./chart.js";
import { arrangeTable, makeKeyLabels } from "./layout.js";

const say = textsOf("row_bars/element");
const CHART_HEIGHT = 46;
const SMALL_HEIGHT = 18;
/** @type {Float32Array} */
const NONE = new Float32Array();

/** @typedef {"large" | "small"} Size */

/** @extends {Picture<BarsHeader>} */
class RowBars extends Picture {
  isSaved = true;
  column = 0;
  keys = 0;
  columns = 0;
  weights = NONE;
  fullyBlocked = NONE;
  /** @type {Uint8Array | null} */ blocked = null;
  /** @type {Float32Array | null} */ reference = null;
  top = 0;
  smallTop = 0;
  words = "";
  /** @type {number | null} */ lit = null;
  /** @type {HTMLElement[]} */ strips = [];

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "row_bars");
    /** @type {{ plot: HTMLElement, canvas: HTMLCanvasElement, small: HTMLCanvasElement }[]} */ this.cells = [];
    this.cursor = { cell: 0, index: 0 };
    this.live = makeElement("div", "visually-hidden", { "aria-live": "polite" });
    this.legend = makeElement("div", "row-bars-legend");
    this.table = makeElement("div", "row-bars", { role: "table" });
    this.reading = new Reading();
    root.prepend(this.legend, this.table, this.live, this.reading.element);
    this.endings.push(() => this.reading.forget());
    this.listen();
  }

  listen() {
    const { table } = this;
    table.addEventListener("pointermove", (event) => this.onPointer(event));
    table.addEventListener("pointerdown", (event) => this.onPress(event));
    table.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && this.leave());
    table.addEventListener("keydown", (event) => this.onKey(event));
    table.addEventListener("focusin", (event) => under(event, ":focus-visible") && this.showCursor());
    table.addEventListener("focusout", () => this.leave());
  }

  receive() {
    this.readNumbers();
    this.hear([]);
    this.build();
  }

  readNumbers() {
    const { weights, fully_blocked: fullyBlocked, blocked, reference } = this.data.arrays;
    this.keys = this.data.keys.labels.length;
    this.columns = this.data.columns.length;
    this.weights = floats(weights);
    this.fullyBlocked = floats(fullyBlocked);
    this.blocked = flagsOf(blocked);
    this.reference = reference ? floats(reference) : null;
    this.top = largestNumber([...this.weights, ...(this.reference ?? [])]);
    this.smallTop = largestNumber(this.fullyBlocked);
  }

  /** Both series of a cell; in a fully blocked row every key is blocked. @param {number} cell */
  seriesOf(cell) {
    /** @param {Float32Array} numbers @param {number} place */
    const part = (numbers, place) => numbers.subarray(place * this.keys, (place + 1) * this.keys);
    const large = {
      values: part(this.weights, cell),
      isBlocked: (/** @type {number} */ index) => Boolean(this.blocked?.[index]),
      reference: this.reference && part(this.reference, cell % this.columns),
      top: this.top,
    };
    const small = {
      values: part(this.fullyBlocked, cell),
      isBlocked: () => true,
      reference: null,
      top: this.smallTop,
    };
    return { large, small };
  }

  /** Make the table anew, unless its words are those of before. */
  build() {
    const { columns, keys, rows } = this.data;
    const words = JSON.stringify([columns, keys, rows]);
    if (words !== this.words) {
      this.words = words;
      this.cells = [];
      this.cursor = { cell: 0, index: 0 };
      this.strips = columns.map((title) => this.makeColumnHeader(title));
      const head = makeElement("div", "head", { role: "row" }, [
        makeElement("div", "corner", { role: "columnheader" }, [say("corner")]),
        ...this.strips,
      ]);
      this.table.style.setProperty("--columns", String(columns.length));
      this.table.replaceChildren(head, ...rows.map((row) => this.makeRow(row)));
      this.cells[0].plot.tabIndex = 0;
    }
    this.table.setAttribute("aria-label", say("table", { ways: rows.length, columns: columns.join(", ") }));
    this.cells.forEach((cell, index) => cell.canvas.setAttribute("aria-label", this.describe(index)));
    this.reading.writeSoon(say("weights"), () => this.cells.map((_, index) => this.inWords(index)));
    this.showLegend();
  }

  /** The weights of one way of masking, in one type of number. @param {number} cell */
  inWords(cell) {
    const { keys, columns, rows } = this.data;
    const labels = [`${rows[Math.floor(cell / this.columns)].title}, ${columns[cell % this.columns]}`];
    const { values } = this.seriesOf(cell).large;
    const rowAxis = { name: "", labels, sequence: null };
    const places = { rows: 1, columns: this.keys, rowAxis, columnAxis: keys };
    /** @type {Matrix} */
    const row = { values, ...places, blocked: this.blocked, emptyRows: null, dtype: "f4" };
    return describeRows(row)[0].trim();
  }

  /** @param {string} title */
  makeColumnHeader(title) {
    return makeElement("div", "column", { role: "columnheader" }, [makeElement("span", "column-title", {}, [title])]);
  }

  /** @param {BarRow} row */
  makeRow(row) {
    const name = makeElement("div", "name", { role: "rowheader" }, [
      makeElement("div", "title", {}, [row.title]),
      makeElement("code", "code", {}, piecesOfCode(row.code)),
      makeElement("div", "note", {}, [row.note]),
    ]);
    const cells = row.cells.map((cell, column) => this.makeCell(row, cell, column));
    return makeElement("div", "line", { role: "row" }, [name, ...cells]);
  }

  /** @param {BarRow} row @param {BarCell} cell @param {number} column */
  makeCell(row, { remarks, outcome }, column) {
    const canvas = makeElement("canvas", "", { role: "img" });
    const small = makeElement("canvas", "small", { "aria-hidden": "true" });
    const empty = makeElement("div", "empty", {}, say.parts("empty", { outcome: remarkSpan(outcome) }));
    const plot = makeElement("div", "plot", {
      tabindex: "-1",
      role: "application",
      "aria-label": say("keys", { row: row.title, column: this.data.columns[column] }),
      "data-cell": this.cells.length,
    });
    const words = makeElement("div", "remarks", {}, remarks.map(remarkSpan));
    plot.append(litBars(canvas), words, empty, litBars(small));
    this.cells.push({ plot, canvas, small });
    const type = makeElement("div", "type", { "aria-hidden": "true" }, [this.data.columns[column]]);
    return makeElement("div", "cell", { role: "cell" }, [type, plot]);
  }

  showLegend() {
    /** @param {string} className @param {string} text */
    const entry = (className, text) =>
      makeElement("span", "entry", {}, [makeElement("span", className, { "aria-hidden": "true" }), text]);
    const entries = [entry("swatch-blocked", say("blocked")), entry("swatch-leak", say("leak"))];
    if (this.reference) entries.push(entry("swatch-reference", say("reference")));
    const sizes = say("heights", { top: formatNumber(this.top), small: formatNumber(this.smallTop) });
    this.legend.replaceChildren(...entries, makeElement("span", "entry", {}, [sizes]));
  }

  /** A chart in words. @param {number} cell */
  describe(cell) {
    const row = this.data.rows[Math.floor(cell / this.columns)];
    const { remarks, outcome } = row.cells[cell % this.columns];
    const { values, isBlocked } = this.seriesOf(cell).large;
    const unusual = values.filter((value) => Number.isNaN(value)).length;
    const blocked = values.filter((_, index) => isBlocked(index)).length;
    const largest = values.indexOf(Math.max(...values));
    const range = unusual
      ? say("nans", { count: unusual, weights: values.length })
      : say("largest", { weight: formatNumber(values[largest]), key: nameOf(this.data.keys, largest) });
    const name = `${row.title}, ${this.data.columns[cell % this.columns]}`;
    const said = remarks.map(({ text }) => text).join(", ");
    return say("chart", { name, range, blocked, keys: values.length, said, outcome: outcome.text });
  }

  draw() {
    const { name, column } = arrangeTable(this.width, this.columns, this.keys);
    this.column = column;
    this.table.dataset.layout = name;
    this.table.style.setProperty("--key-width", `${column}px`);
    this.strips.forEach((strip) => {
      strip.querySelector(".labels")?.remove();
      strip.append(makeKeyLabels(this.data.keys.labels, column));
    });
    this.cells.forEach(({ canvas, small }, index) => {
      const series = this.seriesOf(index);
      drawChart(canvas, series.large, { column, height: CHART_HEIGHT, theme: this.theme });
      drawChart(small, series.small, { column, height: SMALL_HEIGHT, theme: this.theme });
    });
  }

  /** @param {MouseEvent} event */
  onPointer(event) {
    const target = this.barAt(event);
    if (!target) return this.leave();
    const inSmall = event.clientY >= this.cells[target.cell].small.getBoundingClientRect().top - 4;
    this.point(target, inSmall ? "small" : "large", { x: event.clientX, y: event.clientY });
  }

  /** A touch has no pointer that could hover, so a press shows the bar too. @param {MouseEvent} event */
  onPress(event) {
    this.onPointer(event);
    const target = this.barAt(event);
    if (target) this.setCursor(target);
  }

  /** The chart and the key under the pointer, null beside the bars. @param {MouseEvent} event */
  barAt(event) {
    const plot = under(event, ".plot");
    if (!plot) return null;
    const index = Math.floor((event.clientX - plot.getBoundingClientRect().left) / zoomOf(plot) / this.column);
    return index >= 0 && index < this.keys ? { cell: Number(plot.dataset.cell), index } : null;
  }

  /** Show the number of a bar and light its key. @param {BarPlace} place @param {Size} size @param {Point} at */
  point({ cell, index }, size, at) {
    const lines = this.describeBar(cell, index, size);
    const { sequence } = this.data.keys;
    this.light(index);
    this.pointAt(lines, at, sequence ? [{ sequence, index, role: "key" }] : []);
    return lines;
  }

  /** The tooltip's words: the chart, then key, number and whether it is blocked.
   *  @param {number} cell @param {number} index @param {Size} size */
  describeBar(cell, index, size) {
    const { values, isBlocked, reference } = this.seriesOf(cell)[size];
    const row = this.data.rows[Math.floor(cell / this.columns)];
    const chart = `${row.title} · ${this.data.columns[cell % this.columns]}`;
    const number = makeElement("b", "", {}, [formatNumber(values[index])]);
    const blocked = isBlocked(index);
    const parts = [...positionParts(this.data.keys, index), ...say.parts("weight", { number }), blocked ? say("is_blocked") : ""];
    const lines = [
      tooltipLine("tooltip-head", size === "small" ? `${chart} · ${NO_KEY_LEFT}` : chart),
      tooltipLine("tooltip-value", ...parts),
    ];
    if (blocked && values[index] > 0) lines.push(tooltipLine("tooltip-warning", say("warning")));
    if (reference && !blocked && formatNumber(reference[index]) !== formatNumber(values[index])) {
      lines.push(tooltipLine("tooltip-note", say("should_be", { weight: formatNumber(reference[index]) })));
    }
    return lines;
  }

  /** Light a key in every chart; null for none. @param {number | null} index */
  light(index) {
    if (index === this.lit) return;
    this.lit = index;
    this.table.classList.toggle("lit", index !== null);
    if (index !== null) this.table.style.setProperty("--lit", String(index));
  }

  /** @param {Mark[]} marks */
  onHover(marks) {
    const { sequence } = this.data.keys;
    const mark = marks.find((one) => sequence && one.sequence === sequence && one.role !== "query" && one.index < this.keys);
    this.light(mark ? mark.index : null);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (hasModifier(event) || !under(event, ".plot")) return;
    if (event.key === "Escape") this.leave();
    else {
      const target = this.afterKey(event.key);
      if (!target) return;
      this.setCursor(target);
      this.cells[target.cell].plot.focus();
      this.showCursor();
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** The target of a key: over the keys and on into the next chart, or to the chart below and above.
   *  @param {string} key */
  afterKey(key) {
    const { cell, index } = this.cursor;
    const last = this.keys - 1;
    const down = this.table.dataset.layout === "stacked" ? 1 : this.columns;
    /** @type {Record<string, BarPlace>} */
    const moves = {
      ArrowLeft: index > 0 ? { cell, index: index - 1 } : { cell: cell - 1, index: last },
      ArrowRight: index < last ? { cell, index: index + 1 } : { cell: cell + 1, index: 0 },
      ArrowUp: { cell: cell - down, index },
      ArrowDown: { cell: cell + down, index },
      Home: { cell, index: 0 },
      End: { cell, index: last },
    };
    const target = moves[key];
    if (!target) return null;
    return this.cells[target.cell] ? target : this.cursor;
  }

  /** Let the keyboard go on from here. @param {BarPlace} target */
  setCursor(target) {
    this.cells[this.cursor.cell].plot.tabIndex = -1;
    this.cells[target.cell].plot.tabIndex = 0;
    this.cursor = target;
  }

  /** Show the bar that the keyboard is at, and let it be read out. */
  showCursor() {
    const { cell, index } = this.cursor;
    const box = this.cells[cell].canvas.getBoundingClientRect();
    const zoom = zoomOf(this.cells[cell].canvas);
    const point = { x: box.left + (index + 1) * this.column * zoom, y: box.top + CHART_HEIGHT * zoom };
    const lines = this.point(this.cursor, "large", point);
    setText(this.live, lines.map(lineText).join(", "));
  }
}

/** A line of code in pieces that are not broken: lines end after spaces and between calls. @param {string} code */
function piecesOfCode(code) {
  return code.split(/(?<= )|(?<=\))(?=\.)/).map((piece) => makeElement("span", "piece", {}, [piece]));
}

/** A chart with the light that falls on one of its keys. @param {HTMLCanvasElement} canvas */
function litBars(canvas) {
  return makeElement("div", "bars", {}, [canvas, makeElement("div", "light")]);
}

/** A remark as text, in the colour of a warning where it is one. @param {Remark} remark */
function remarkSpan({ text, warning }) {
  return makeElement("span", warning ? "remark warning" : "remark", {}, [text]);
}

export const render = rendererOf(RowBars);
