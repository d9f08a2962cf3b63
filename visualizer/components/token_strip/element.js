/**
 * The token strip: one chip per token with its index and id, one row of chips per sequence.
 *
 * Hovering a chip lights that token in every grid of the page; hovering a grid lights chips here. A chip that is
 * pressed is the query at once, in every picture that has its numbers, and so is each along which the pointer is drawn
 * until it is let go; Python hears of the last one, as {sequence, index, seq}.
 */

/** @import { Host, Mark } from "../types.d.ts" */
/** @import { Query, Sequence, StripHeader, Token } from "./types.d.ts" */

import { bringIntoView, childrenOf, countOf, makeElement, tokenSpan, under } from "../shared/dom.js";
import { Events } from "../shared/events.js";
import { hasModifier } from "../shared/keys.js";
import { must } from "../shared/must.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";

const say = textsOf("token_strip/element");
/** @type {Record<string, number>} */
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };
/** @type {Record<string, number>} */
const ROW_STEPS = { ArrowUp: -1, ArrowDown: 1 };
const FADED = 28; // how far a row fades out on a side, as in the style sheet

/** @extends {Picture<StripHeader>} */
class TokenStrip extends Picture {
  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "token_strip");
    this.frame = makeElement("div", "token-strip");
    this.events = new Events(host);
    /** @type {Map<string, HTMLElement>} */ this.chips = new Map();
    /** @type {Map<string, HTMLElement>} */ this.rows = new Map();
    /** @type {Map<HTMLElement, string>} */ this.lit = new Map(); // the mark of each chip that has one
    /** @type {Map<HTMLElement, HTMLElement | null>} */
    this.stops = new Map(); // the chip of each row that the Tab key leads to
    /** @type {Query | null} */ this.selected = null;
    /** @type {HTMLElement | null} */ this.selectedChip = null;
    this.version = "";
    /** @type {{ chip: HTMLElement, before: Query | null } | null} */ this.drawn = null;
    this.hasDrawn = false;
    this.frame.onpointerover = (event) => hoverChip(this, event);
    this.frame.onpointerleave = () => this.leave();
    this.frame.onclick = (event) => {
      if (!this.hasDrawn) selectChip(this, under(event, ".chip"));
      this.hasDrawn = false;
    };
    this.frame.onkeydown = (event) => pressKey(this, event);
    this.frame.onpointerdown = (event) => beginDrawing(this, event);
    this.frame.onpointermove = (event) => drawAlong(this, event);
    this.frame.onpointerup = () => endDrawing(this);
    this.frame.onpointercancel = () => giveUpDrawing(this);
    this.frame.addEventListener("focusin", (event) => hoverChip(this, event));
    this.frame.addEventListener("focusout", ({ relatedTarget }) => (relatedTarget instanceof Node && this.frame.contains(relatedTarget)) || this.leave());
    root.prepend(this.frame);
  }

  /** Take over what Python sent, unless the person has chosen again since. */
  receive() {
    const { sequences, selected, seq } = this.data;
    const version = JSON.stringify(sequences);
    if (version !== this.version) build(this, sequences);
    this.version = version;
    if (this.events.areKnown(seq)) {
      if (this.drawn) this.drawn.before = selected;
      else this.selected = selected;
    }
    showSelected(this);
  }

  draw() {
    arrange(this);
  }

  /** Light the chips that any part of the page has marked. @param {Mark[]} marks */
  onHover(marks) {
    const lit = new Map();
    for (const { sequence, index, role } of marks) {
      const chip = this.chips.get(chipName(sequence, index));
      if (chip) lit.set(chip, (lit.get(chip) ?? role) === role ? role : "both");
    }
    for (const chip of this.lit.keys()) if (!lit.has(chip)) delete chip.dataset.mark;
    for (const [chip, mark] of lit) if (this.lit.get(chip) !== mark) chip.dataset.mark = mark;
    this.lit = lit;
  }
}

/** One chip's name in the map of chips. @param {string} sequence @param {number} index */
function chipName(sequence, index) {
  return `${sequence}:${index}`;
}

/** @param {HTMLElement} chip */
function nameOf(chip) {
  const { sequence, index } = queryOf(chip);
  return chipName(sequence, index);
}

/** A token as a chip: its text, then its index and id. @param {string} sequence @param {Token} token */
function buildChip(sequence, { index, label, id, padding, special }) {
  const hasId = id !== null;
  const more = `${hasId ? say("id", { id }) : ""}${padding ? say("padding") : ""}`;
  const numbers = makeElement("div", "numbers", {}, [
    makeElement("span", "index", {}, [String(index)]),
    ...(hasId ? [makeElement("span", "id", {}, [`#${id}`])] : []),
  ]);
  const attributes = {
    role: "option",
    tabindex: "-1",
    "aria-selected": "false",
    "data-sequence": sequence,
    "data-index": index,
    "aria-label": say("token", { index, label, more }),
  };
  const chip = makeElement("div", "chip", attributes, [tokenSpan(label), numbers]);
  chip.classList.toggle("padding", padding);
  chip.classList.toggle("special", special);
  return chip;
}

/** A sequence as a titled row of chips. @param {TokenStrip} strip @param {Sequence} sequence */
function buildSequence(strip, { name, title, tokens }) {
  const count = countOf(tokens.length, "token");
  const heading = makeElement("div", "heading", {}, [
    makeElement("span", "title", {}, [title]),
    makeElement("span", "count", {}, [count]),
  ]);
  const row = makeElement("div", "chips", { role: "listbox", "aria-label": say("keys", { title, count }) });
  for (const token of tokens) {
    const chip = buildChip(name, token);
    strip.chips.set(chipName(name, token.index), chip);
    row.append(chip);
  }
  row.onscroll = () => showMore(row);
  strip.rows.set(name, row);
  return makeElement("div", "sequence", {}, [heading, row]);
}

/** Build all chips anew; what is pressed goes on at its place. @param {TokenStrip} strip @param {Sequence[]} sequences */
function build(strip, sequences) {
  strip.chips.clear();
  strip.rows.clear();
  strip.lit = new Map();
  strip.stops = new Map();
  strip.selectedChip = null;
  strip.frame.replaceChildren(...sequences.map((sequence) => buildSequence(strip, sequence)));
  const chip = strip.drawn && strip.chips.get(nameOf(strip.drawn.chip));
  strip.drawn = strip.drawn && chip ? { ...strip.drawn, chip } : null;
}

/** Light the token under the pointer or under the focus, here and on the page.
 *  @param {TokenStrip} strip @param {Event} event */
function hoverChip(strip, event) {
  if (strip.drawn) return;
  const chip = under(event, ".chip");
  const marks = chip ? [{ ...queryOf(chip), role: "token" }] : [];
  strip.onHover(marks);
  strip.publish(marks);
}

/** Make a chip the query because the person asked for it by a key or a finger, and tell Python.
 *  @param {TokenStrip} strip @param {HTMLElement | null} chip */
function selectChip(strip, chip) {
  if (!chip) return;
  const query = queryOf(chip);
  focusChip(strip, chip);
  makeQuery(strip, query, "token");
  strip.events.send("select", query);
}

/**
 * A finger scrolls the row; a mouse or a pen chooses and may be drawn along it. Nothing is scrolled before it is let go:
 * another chip would come below it.
 * @param {TokenStrip} strip @param {PointerEvent} event
 */
function beginDrawing(strip, event) {
  const chip = under(event, ".chip");
  strip.drawn = null;
  strip.hasDrawn = false;
  if (!chip || !event.isPrimary || event.button !== 0 || event.pointerType === "touch") return;
  strip.drawn = { chip, before: strip.selected };
  strip.frame.setPointerCapture(event.pointerId); // the pointer may leave the row, and the chip the page
  makeQuery(strip, queryOf(chip), "token"); // as it is lit while it is pointed at
}

/** @param {TokenStrip} strip @param {PointerEvent} event */
function drawAlong(strip, event) {
  const { drawn } = strip;
  if (!drawn) return;
  const chip = chipAt(rowOf(drawn.chip), event.clientX);
  if (chip === drawn.chip) return;
  drawn.chip = chip;
  focusChip(strip, chip);
  makeQuery(strip, queryOf(chip));
}

/** @param {TokenStrip} strip */
function endDrawing(strip) {
  const { drawn } = strip;
  strip.drawn = null;
  strip.hasDrawn = Boolean(drawn); // the click that follows is none
  if (!drawn) return;
  bringIntoView(rowOf(drawn.chip), drawn.chip, FADED);
  strip.events.send("select", queryOf(drawn.chip));
}

/** @param {TokenStrip} strip */
function giveUpDrawing(strip) {
  const { drawn } = strip;
  strip.drawn = null;
  if (drawn) makeQuery(strip, drawn.before);
}

/** Have a token as the query, here and in the pictures that have its numbers; `role` is how it is lit.
 *  @param {TokenStrip} strip @param {Query | null} query */
function makeQuery(strip, query, role = "query") {
  strip.selected = query;
  showSelected(strip);
  const marks = query ? [{ ...query, role, isChosen: true }] : [];
  strip.onHover(marks);
  strip.publish(marks);
}

/** @param {HTMLElement} chip */
function queryOf(chip) {
  return { sequence: chip.dataset.sequence ?? "", index: Number(chip.dataset.index) };
}

/** @param {HTMLElement} chip */
function rowOf(chip) {
  return must(chip.parentElement, "no row");
}

/** The chip of a row at a place of the window, or the nearest. @param {HTMLElement} row @param {number} x */
function chipAt(row, x) {
  const chips = childrenOf(row);
  let [low, high] = [0, chips.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (chips[middle].getBoundingClientRect().left <= x) low = middle;
    else high = middle - 1;
  }
  return chips[low];
}

/** Mark the selected chip; in every row one chip can be reached with the Tab key. @param {TokenStrip} strip */
function showSelected(strip) {
  const { selected } = strip;
  const chip = (selected && strip.chips.get(chipName(selected.sequence, selected.index))) ?? null;
  if (chip !== strip.selectedChip) {
    markSelected(strip.selectedChip, false);
    markSelected(chip, true);
    strip.selectedChip = chip;
  }
  for (const row of strip.rows.values()) leadTab(strip, row, chip?.parentElement === row ? chip : childrenOf(row)[0]);
}

/** @param {HTMLElement | null} chip @param {boolean} isSelected */
function markSelected(chip, isSelected) {
  chip?.classList.toggle("selected", isSelected);
  chip?.setAttribute("aria-selected", String(isSelected));
}

/** Have the Tab key lead to a chip of a row, and to no other one.
 *  @param {TokenStrip} strip @param {HTMLElement} row @param {HTMLElement | null} chip */
function leadTab(strip, row, chip) {
  const before = strip.stops.get(row);
  if (before === chip) return;
  before?.setAttribute("tabindex", "-1");
  chip?.setAttribute("tabindex", "0");
  strip.stops.set(row, chip);
}

/** After a change of width or of tokens: the selected chip of every row in view. @param {TokenStrip} strip */
function arrange(strip) {
  for (const row of strip.rows.values()) {
    const selected = row.querySelector(".selected");
    if (selected) bringIntoView(row, selected, FADED);
    showMore(row);
  }
}

/** Fade a row out on the side where more of it is. @param {HTMLElement} row */
function showMore(row) {
  row.classList.toggle("more-before", row.scrollLeft > 2);
  row.classList.toggle("more-after", row.scrollWidth - row.clientWidth - row.scrollLeft > 2);
}

/** Move the focus to a chip, keeping the page where it is. What changes looks comes last: the page is laid out once.
 *  @param {TokenStrip} strip @param {HTMLElement} chip */
function focusChip(strip, chip) {
  const row = rowOf(chip);
  chip.focus({ preventScroll: true });
  bringIntoView(row, chip, FADED);
  leadTab(strip, row, chip);
}

/** Arrow keys, Home and End move between chips; Enter and Space choose.
 *  @param {TokenStrip} strip @param {KeyboardEvent} event */
function pressKey(strip, event) {
  const chip = under(event, ".chip");
  if (!chip || hasModifier(event)) return;
  if (event.key === "Enter" || event.key === " ") selectChip(strip, chip);
  else {
    const target = chipAfterKey(strip, chip, event.key);
    if (!target) return;
    focusChip(strip, target);
  }
  event.preventDefault();
}

/** The chip that a key leads to, null when the key means nothing here.
 *  @param {TokenStrip} strip @param {HTMLElement} chip @param {string} key */
function chipAfterKey(strip, chip, key) {
  const all = [...childrenOf(rowOf(chip))];
  if (key === "Home") return all[0];
  if (key === "End") return all.at(-1);
  if (key in ROW_STEPS) return chipInRow(strip, chip, ROW_STEPS[key]);
  if (key in STEPS) return all[all.indexOf(chip) + STEPS[key]] ?? chip;
  return null;
}

/** The chip nearest to this one in the row above (-1) or below (1), the chip itself where there is none.
 *  @param {TokenStrip} strip @param {HTMLElement} chip @param {number} step */
function chipInRow(strip, chip, step) {
  const rows = [...strip.rows.values()];
  const row = rows[rows.indexOf(rowOf(chip)) + step];
  if (!row) return chip;
  /** @param {HTMLElement} one */
  const middle = (one) => one.getBoundingClientRect().left + one.offsetWidth / 2;
  /** @param {HTMLElement} other */
  const distance = (other) => Math.abs(middle(other) - middle(chip));
  return [...childrenOf(row)].reduce((a, b) => (distance(b) < distance(a) ? b : a));
}

export const render = rendererOf(TokenStrip);
