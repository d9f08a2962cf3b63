/** @import { Axis, Mark, Pen } from "../types.d.ts" */
/** @import { Lines, LinesHeader, LinesPicture, Place, Side } from "./types.d.ts" */

import { sizedContext } from "../marks/pen.js";
import { makeSlider } from "../shared/controls.js";
import { childrenOf, clamp, countOf, makeElement, oncePerFrame, setBox, setText, tokenSpan, under } from "../shared/dom.js";
import { Reading } from "../shared/reading.js";
import { describeRows, NO_KEY_LEFT } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { headColor, headDashes } from "../shared/theme.js";
import { pixelRatioOf } from "../shared/zoom.js";

const say = textsOf("attention_heads/lines");
const ROW_HEIGHTS = { least: 20, most: 34, all: 420 }; // a token's, and that of few tokens together
const MOST_LINES = 1200; // in the resting picture
const OPACITY_STEPS = 16;
const WEIGHT_BINS = 4096;
const THRESHOLDS = [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]; // the least weight that is drawn
/** @type {Side[]} */
const SIDES = ["query", "key"];
const LINE = { width: 1.6, apart: 3 }; // lines of several heads between the same tokens run side by side

/** Two columns of tokens, query left and key right, joined by lines: opacity by weight, colour by head. */
export class LinesView {
  /** @type {ReturnType<typeof strongestLines>} */ resting;
  /** @type {Place | null} */ pinned;
  /** @type {LinesPicture} */ picture;
  rowHeight = 0;

  /** host: {hover(marks), threshold(weight), pin(text)}: the person points at tokens, sets the least weight, pins.
   *  @param {{ hover: (marks: Mark[]) => void, threshold: (weight: number) => void, pin: (pinned: string) => void }} host */
  constructor(host) {
    this.host = host;
    /** @type {Place | null} */ this.pointed = null;
    this.note = makeElement("div", "lines-note", { "aria-live": "polite" });
    this.canvas = makeElement("canvas", "lines-canvas", { role: "img" });
    this.columns = { query: this.makeColumn("query"), key: this.makeColumn("key") };
    this.middle = makeElement("div", "lines-middle", {}, [this.canvas]);
    this.inner = makeElement("div", "lines-inner", {}, [this.columns.query, this.middle, this.columns.key]);
    this.scroller = makeElement("div", "lines-scroller", {}, [this.inner]);
    this.threshold = makeThreshold((weight) => host.threshold(weight));
    this.heading = makeElement("div", "lines-heading", {}, [
      makeElement("span", "lines-side position-query", { "aria-hidden": "true" }, ["query"]),
      this.threshold.element,
      makeElement("span", "lines-side position-key", { "aria-hidden": "true" }, ["key"]),
    ]);
    this.reading = new Reading();
    this.element = makeElement("div", "lines", {}, [this.heading, this.scroller, this.note, this.reading.element]);
    this.paintSoon = oncePerFrame(() => this.paint());
    this.scroller.addEventListener("scroll", this.paintSoon, { passive: true });
  }

  destroy() {
    this.paintSoon.cancel();
    this.reading.forget();
  }

  /** @param {Side} side */
  makeColumn(side) {
    const column = makeElement("div", `lines-column lines-${side}`, { role: "listbox", "aria-label": say("side", { side }) });
    /** @param {Event} event @returns {Place | null} */
    const at = (event) => {
      const token = under(event, "[data-index]");
      return token ? { side, index: Number(token.dataset.index) } : null;
    };
    column.addEventListener("pointermove", (event) => this.point(at(event)));
    column.addEventListener("pointerleave", () => this.point(null));
    column.addEventListener("click", (event) => this.pin(at(event)));
    column.addEventListener("focusin", (event) => under(event, ":focus-visible") && this.point(at(event)));
    column.addEventListener("focusout", () => this.point(null));
    column.addEventListener("keydown", (event) => this.onKey(event, at(event)));
    return column;
  }

  /** Show lines. @param {LinesHeader} picture */
  show(picture) {
    this.picture = { ...picture, emptyRows: rowsWithoutKeyInAll(picture.heads, picture.rows) };
    this.threshold.set(picture.threshold);
    this.fillColumn(this.columns.query, picture.rowAxis, this.picture.emptyRows);
    this.fillColumn(this.columns.key, picture.columnAxis, null);
    const tokens = Math.max(picture.rows, picture.columns);
    this.rowHeight = clamp(Math.floor(ROW_HEIGHTS.all / tokens), ROW_HEIGHTS.least, ROW_HEIGHTS.most);
    this.inner.style.setProperty("--row-height", `${this.rowHeight}px`);
    this.inner.style.height = `${this.rowHeight * tokens}px`;
    this.pinned = this.placeOf(picture.pinned);
    this.resting = strongestLines(picture);
    this.canvas.setAttribute("aria-label", `${picture.title}: ${this.resting.text}`);
    this.reading.writeSoon(say("reading"), () =>
      picture.heads.flatMap((one) => describeRows({ ...picture, ...one }).map((row) => say("row", { head: one.head, row }))));
    this.paint();
  }

  /** @param {Side} side */
  lengthOf(side) {
    return side === "query" ? this.picture.rows : this.picture.columns;
  }

  /** @param {HTMLElement} column @param {Axis} axis @param {ArrayLike<number> | null} emptyRows */
  fillColumn(column, axis, emptyRows) {
    while (column.children.length > axis.labels.length) column.lastChild?.remove();
    axis.labels.forEach((label, index) => {
      const token = childrenOf(column)[index] ?? column.appendChild(makeLineToken(index));
      const [, name, note] = childrenOf(token);
      setText(name, label);
      token.title = `\u2068${label}\u2069`;
      token.classList.toggle("lines-empty", Boolean(emptyRows?.[index]));
      setText(note, emptyRows?.[index] ? NO_KEY_LEFT : "");
    });
  }

  /** @param {Place | null} place */
  point(place) {
    if (place?.side === this.pointed?.side && place?.index === this.pointed?.index) return;
    this.pointed = place;
    const { rowAxis, columnAxis } = this.picture;
    const axis = place?.side === "key" ? columnAxis : rowAxis;
    this.host.hover(place && axis.sequence ? [{ sequence: axis.sequence, index: place.index, role: place.side }] : []);
    this.paintSoon();
  }

  /** Keep a token's lines until it is pressed again. @param {Place | null} place */
  pin(place) {
    if (!place) return;
    const again = this.pinned?.side === place.side && this.pinned?.index === place.index;
    this.host.pin(again ? "" : `${place.side[0]}${place.index}`);
  }

  /** The place of a text such as "q8" or "k3"; null where there is none. @param {string} text */
  placeOf(text) {
    const [, letter, index] = /^([qk])(\d+)$/.exec(text) ?? [];
    /** @type {Side} */
    const side = letter === "q" ? "query" : "key";
    return letter && Number(index) < this.lengthOf(side) ? { side, index: Number(index) } : null;
  }

  /** Light the token that another component points at. @param {number} queryIndex @param {number} keyIndex */
  lightFromOutside(queryIndex, keyIndex) {
    this.pointed = queryIndex >= 0 ? { side: "query", index: queryIndex } : null;
    if (queryIndex < 0 && keyIndex >= 0) this.pointed = { side: "key", index: keyIndex };
    this.paintSoon();
  }

  /** @param {KeyboardEvent} event @param {Place | null} place */
  onKey(event, place) {
    if (!place) return;
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const sideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (step) this.focusToken(place.side, place.index + step);
    else if (sideways) this.focusToken(place.side === "query" ? "key" : "query", place.index);
    else if (event.key === "Enter" || event.key === " ") this.pin(place);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {Side} side @param {number} index */
  focusToken(side, index) {
    const tokens = childrenOf(this.columns[side]);
    tokens[clamp(index, 0, tokens.length - 1)].focus();
  }

  /** Draw the part that is scrolled into view, and tint the tokens at the other end of the lines. */
  paint() {
    const width = this.middle.clientWidth;
    if (!this.picture || !width) return;
    const height = Math.min(this.scroller.clientHeight, this.inner.clientHeight);
    const ratio = pixelRatioOf(this.canvas);
    const scrollTop = this.scroller.scrollTop;
    const context = sizedContext(this.canvas, Math.round(width * ratio), Math.round(height * ratio));
    setBox(this.canvas, null, null, width, height);
    context.setTransform(ratio, 0, 0, ratio, 0, -scrollTop * ratio);
    const place = this.pointed ?? this.pinned;
    const lines = place ? linesOfToken(this.picture, place) : this.resting;
    drawLines(context, lines, this.picture, width, this.rowHeight);
    this.tint(place);
    setText(this.note, lines.text);
  }

  /** @param {Place | null} place */
  tint(place) {
    const strengths = place ? strengthsFrom(this.picture, place) : null;
    for (const side of SIDES) {
      const tokens = childrenOf(this.columns[side]);
      for (let index = 0; index < tokens.length; index++) {
        const here = place?.side === side && place.index === index;
        markToken(tokens[index], {
          here,
          pinned: this.pinned?.side === side && this.pinned.index === index,
          selected: side === "query" && index === this.picture.selectedQuery,
          strength: strengths && place?.side !== side ? strengths[index] : 0,
        });
      }
    }
  }
}

/** @param {number} index */
function makeLineToken(index) {
  return makeElement("div", "lines-token", { "data-index": index, tabindex: index ? "-1" : "0", role: "option" }, [
    makeElement("span", "lines-index", {}, [String(index)]),
    tokenSpan(""),
    makeElement("span", "lines-empty-note"),
  ]);
}

/** A slider for the least weight that is drawn; `onChange(weight)` is called for what a person does.
 *  @param {(weight: number) => void} onChange */
function makeThreshold(onChange) {
  const slider = makeSlider("lines-slider", say("threshold"), (step) => onChange(THRESHOLDS[step]));
  slider.max = String(THRESHOLDS.length - 1);
  const text = makeElement("output", "lines-least");
  /** @param {number} weight */
  const set = (weight) => {
    slider.value = String(THRESHOLDS.findLastIndex((least) => least <= weight));
    slider.setAttribute("aria-valuetext", weight ? say("at_least_in_words", { weight }) : say("all"));
    setText(text, weight ? say("at_least", { weight }) : say("all"));
  };
  return { element: makeElement("label", "lines-threshold", {}, [slider, text]), set };
}

/** Show a token as pointed at, pinned, selected, or tinted; a token that already looks so is left alone.
 *  @param {HTMLElement} token @param {{ here: boolean, pinned: boolean, selected: boolean, strength: number }} look */
function markToken(token, { here, pinned, selected, strength }) {
  const look = `${here} ${pinned} ${selected} ${strength.toFixed(3)}`;
  if (token.dataset.look === look) return;
  token.dataset.look = look;
  token.classList.toggle("lines-here", here);
  token.classList.toggle("lines-pinned", pinned);
  token.classList.toggle("lines-selected", selected);
  token.setAttribute("aria-selected", String(pinned));
  token.style.setProperty("--strength", strength.toFixed(3));
}

/** The largest weight over the heads between one token and each token of the other column.
 *  @param {LinesPicture} picture @param {Place} place */
function strengthsFrom({ heads, rows, columns }, { side, index }) {
  const strengths = new Float32Array(side === "query" ? columns : rows);
  for (const { values } of heads) {
    for (let other = 0; other < strengths.length; other++) {
      const weight = side === "query" ? values[index * columns + other] : values[other * columns + index];
      if (weight > strengths[other]) strengths[other] = weight;
    }
  }
  return strengths;
}

/** The lines of one token: {list: [{head, row, column, weight}], text}.
 *  @param {LinesPicture} picture @param {Place} place */
export function linesOfToken(picture, { side, index }) {
  const { heads, rows, columns, rowAxis, columnAxis, emptyRows, threshold } = picture;
  /** @type {Lines["list"]} */
  const list = [];
  const others = side === "query" ? columns : rows;
  heads.forEach(({ values }, order) => {
    for (let other = 0; other < others; other++) {
      const [row, column] = side === "query" ? [index, other] : [other, index];
      const weight = values[row * columns + column];
      if (weight > 0 && weight >= threshold) list.push({ order, row, column, weight });
    }
  });
  const label = (side === "query" ? rowAxis : columnAxis).labels[index];
  const empty = side === "query" && emptyRows?.[index] ? say("blocked") : "";
  const text = `${side} ${index} \u2068${label}\u2069: ${countOf(list.length, "line")}${ofWeight(threshold)}${empty}`;
  return { list, text };
}

/** One flag per row: whether no head shown leaves it a key; null when that is true of none.
 *  @param {LinesHeader["heads"]} heads @param {number} rows */
function rowsWithoutKeyInAll(heads, rows) {
  const flags = Uint8Array.from({ length: rows }, (_, row) => (heads.every(({ emptyRows }) => emptyRows?.[row]) ? 1 : 0));
  return heads.length && flags.some(Boolean) ? flags : null;
}

/** " of weight 0.01 and more", "" where nothing is left out. @param {number} threshold */
function ofWeight(threshold) {
  return threshold ? say("of_weight", { threshold }) : "";
}

/** The strongest lines of all heads together, at most MOST_LINES, and how many there are.
 *  @param {Pick<LinesHeader, "heads" | "rows" | "columns" | "threshold">} picture */
export function strongestLines({ heads, rows, columns, threshold }) {
  const { histogram, total } = weightHistogram(heads, threshold);
  let bin = histogram.length - 1;
  let room = MOST_LINES;
  while (bin > 0 && histogram[bin] <= room) room -= histogram[bin--];
  // The weights in the last bin are too many for the room left: an even sample is drawn.
  const stride = Math.max(1, Math.ceil(histogram[bin] / Math.max(room, 1)));
  const lowest = room > 0 ? bin : bin + 1;
  let inLastBin = 0;
  /** @type {Lines["list"]} */
  const list = [];
  heads.forEach(({ values, blocked }, order) => {
    for (let i = 0; i < rows * columns; i++) {
      const weight = values[i];
      if (weight === 0 || weight < threshold || blocked?.[i]) continue;
      const itsBin = weightBin(weight);
      if (itsBin < lowest || (itsBin === bin && inLastBin++ % stride !== 0)) continue;
      list.push({ order, row: Math.floor(i / columns), column: i % columns, weight });
    }
  });
  const many = list.length < total ? say("strongest", { count: list.length.toLocaleString("en") }) : "";
  return { list, text: heads.length ? `${many}${countOf(total, "line")}${ofWeight(threshold)}` : say("no_head") };
}

/** The bin of a weight from 0 to 1. @param {number} weight */
function weightBin(weight) {
  return Math.min(WEIGHT_BINS - 1, Math.floor(weight * WEIGHT_BINS));
}

/** The number of lines in each bin of weights, and in all.
 *  @param {LinesHeader["heads"]} heads @param {number} threshold */
function weightHistogram(heads, threshold) {
  const histogram = new Uint32Array(WEIGHT_BINS);
  let total = 0;
  for (const { values, blocked } of heads) {
    for (let i = 0; i < values.length; i++) {
      if (values[i] === 0 || values[i] < threshold || blocked?.[i]) continue;
      histogram[weightBin(values[i])] += 1;
      total += 1;
    }
  }
  return { histogram, total };
}

/** Draw lines in a few strokes: one for each head and step of opacity.
 *  @param {Pen} context @param {Lines} lines @param {LinesPicture} picture @param {number} width
 *  @param {number} rowHeight */
function drawLines(context, { list }, { heads, theme, largest }, width, rowHeight) {
  const apart = Math.min(LINE.apart, (rowHeight - 4) / heads.length);
  /** @param {Lines["list"][number]} line */
  const stepOf = ({ weight }) => Math.min(OPACITY_STEPS - 1, Math.floor((weight / largest) * OPACITY_STEPS));
  context.lineWidth = Math.min(LINE.width, Math.max(apart * 0.8, 0.8));
  const strokes = Map.groupBy(list, (line) => line.order * OPACITY_STEPS + stepOf(line));
  for (const [stroke, lines] of [...strokes].sort(([one], [other]) => one - other)) {
    const order = Math.floor(stroke / OPACITY_STEPS);
    const shift = (order - (heads.length - 1) / 2) * apart;
    context.strokeStyle = headColor(theme, heads[order].head);
    context.setLineDash(headDashes(theme, heads[order].head));
    context.globalAlpha = ((stroke % OPACITY_STEPS) + 0.5) / OPACITY_STEPS;
    context.beginPath();
    for (const { row, column } of lines) {
      const from = (row + 0.5) * rowHeight + shift;
      const to = (column + 0.5) * rowHeight + shift;
      context.moveTo(0, from);
      context.bezierCurveTo(width * 0.4, from, width * 0.6, to, width, to);
    }
    context.stroke();
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}
