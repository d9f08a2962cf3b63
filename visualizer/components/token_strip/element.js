/**
 * The token strip: one chip per token with its index and id, one row of chips per sequence.
 *
 * Hovering a chip lights that token in every grid of the page; hovering a grid lights chips here. Choosing a chip
 * makes it the query at once; Python hears of it as {sequence, index, seq}. While the pointer is drawn along the chips,
 * each is the query in turn, in every picture that has its numbers; Python hears of the last one.
 */

import { bringIntoView, makeElement, tokenSpan } from "../shared/dom.js";
import { Events } from "../shared/events.js";
import { hasModifier } from "../shared/keys.js";
import { Picture, startPicture } from "../shared/picture.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };
const ROW_STEPS = { ArrowUp: -1, ArrowDown: 1 };
const FADED = 28; // how far a row fades out on a side, as in the style sheet

class TokenStrip extends Picture {
  constructor(root, host) {
    super(root, host, "token_strip");
    this.frame = makeElement("div", "token-strip");
    this.events = new Events(host);
    this.chips = new Map();
    this.rows = new Map();
    this.lit = new Map(); // the mark of each chip that has one
    this.selected = null;
    this.version = "";
    this.drawn = null;
    this.hasDrawn = false;
    this.frame.onpointerover = (event) => hoverChip(this, event);
    this.frame.onpointerleave = () => this.leave();
    this.frame.onclick = (event) => {
      if (!this.hasDrawn) selectChip(this, event.target.closest(".chip"));
      this.hasDrawn = false;
    };
    this.frame.onkeydown = (event) => pressKey(this, event);
    this.frame.onpointerdown = (event) => beginDrawing(this, event);
    this.frame.onpointermove = (event) => drawAlong(this, event);
    this.frame.onpointerup = () => endDrawing(this);
    this.frame.onpointercancel = () => giveUpDrawing(this);
    this.frame.addEventListener("focusin", (event) => hoverChip(this, event));
    this.frame.addEventListener("focusout", () => this.leave());
    root.prepend(this.frame);
  }

  /** Take over what Python sent, unless the person has chosen again since. */
  receive() {
    const { sequences, selected, seq } = this.data;
    const version = JSON.stringify(sequences);
    if (version !== this.version) build(this, sequences);
    this.version = version;
    if (this.events.areKnown(seq) && !this.drawn?.hasMoved) this.selected = selected;
    showSelected(this);
  }

  draw() {
    arrange(this);
  }

  /** Light the chips that any part of the page has marked. */
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

/** One chip's name in the map of chips. */
function chipName(sequence, index) {
  return `${sequence}:${index}`;
}

/** A token as a chip: its text, then its index and id. */
function buildChip(sequence, { index, label, id, padding, special }) {
  const hasId = id !== null;
  const numbers = makeElement("div", "numbers", {}, [
    makeElement("span", "index", {}, [String(index)]),
    ...(hasId ? [makeElement("span", "id", {}, [`#${id}`])] : []),
  ]);
  const attributes = {
    role: "option",
    tabindex: "-1",
    "data-sequence": sequence,
    "data-index": index,
    "aria-label": `token ${index}: ${label}${hasId ? `, id ${id}` : ""}${padding ? ", padding" : ""}`,
  };
  const chip = makeElement("div", "chip", attributes, [tokenSpan(label), numbers]);
  chip.classList.toggle("padding", padding);
  chip.classList.toggle("special", special);
  return chip;
}

/** A sequence as a titled row of chips. */
function buildSequence(strip, { name, title, tokens }) {
  const count = tokens.length === 1 ? "1 token" : `${tokens.length} tokens`;
  const heading = makeElement("div", "heading", {}, [
    makeElement("span", "title", {}, [title]),
    makeElement("span", "count", {}, [count]),
  ]);
  const label = `${title}: ${count}. Arrow keys move, Enter makes a token the query.`;
  const row = makeElement("div", "chips", { role: "listbox", "aria-label": label });
  for (const token of tokens) {
    const chip = buildChip(name, token);
    strip.chips.set(chipName(name, token.index), chip);
    row.append(chip);
  }
  row.onscroll = () => showMore(row);
  strip.rows.set(name, row);
  return makeElement("div", "sequence", {}, [heading, row]);
}

/** Build all chips anew. */
function build(strip, sequences) {
  strip.chips.clear();
  strip.rows.clear();
  strip.lit = new Map();
  strip.drawn = null;
  strip.frame.replaceChildren(...sequences.map((sequence) => buildSequence(strip, sequence)));
}

/** Light the token under the pointer or under the focus, here and on the page. */
function hoverChip(strip, event) {
  if (strip.drawn?.hasMoved) return;
  const chip = event.target.closest(".chip");
  const marks = chip ? [{ sequence: chip.dataset.sequence, index: Number(chip.dataset.index), role: "token" }] : [];
  strip.onHover(marks);
  strip.publish(marks);
}

/** Make a chip the query because the person asked for it, and tell Python. */
function selectChip(strip, chip) {
  if (!chip) return;
  focusChip(strip, chip);
  strip.selected = queryOf(chip);
  showSelected(strip);
  strip.events.send("select", strip.selected);
}

/** A finger scrolls the row; a mouse or a pen may be about to be drawn along it. */
function beginDrawing(strip, event) {
  const chip = event.target.closest(".chip");
  const canDraw = chip && event.isPrimary && event.button === 0 && event.pointerType !== "touch";
  strip.drawn = canDraw ? { chip, before: strip.selected, hasMoved: false } : null;
  strip.hasDrawn = false;
  if (canDraw) chip.setPointerCapture(event.pointerId); // the pointer may leave the row
}

function drawAlong(strip, event) {
  const { drawn } = strip;
  if (!drawn) return;
  const chip = chipAt(drawn.chip.parentElement, event.clientX);
  if (chip === drawn.chip) return;
  drawn.hasMoved = true;
  drawn.chip = chip;
  focusChip(strip, chip);
  makeQuery(strip, queryOf(chip));
}

function endDrawing(strip) {
  const { drawn } = strip;
  strip.drawn = null;
  strip.hasDrawn = Boolean(drawn?.hasMoved); // the click that follows is none
  if (drawn?.hasMoved) strip.events.send("select", strip.selected);
}

function giveUpDrawing(strip) {
  const { drawn } = strip;
  strip.drawn = null;
  if (drawn?.hasMoved) makeQuery(strip, drawn.before);
}

/** Have a token as the query, here and in the pictures that have its numbers. */
function makeQuery(strip, query) {
  strip.selected = query;
  showSelected(strip);
  const marks = query ? [{ ...query, role: "query", isChosen: true }] : [];
  strip.onHover(marks);
  strip.publish(marks);
}

function queryOf(chip) {
  return { sequence: chip.dataset.sequence, index: Number(chip.dataset.index) };
}

/** The chip of a row at a place of the window, or the nearest. */
function chipAt(row, x) {
  const chips = row.children;
  let [low, high] = [0, chips.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (chips[middle].getBoundingClientRect().left <= x) low = middle;
    else high = middle - 1;
  }
  return chips[low];
}

/** Mark the selected chip; in every row one chip can be reached with the Tab key. */
function showSelected(strip) {
  const { selected } = strip;
  for (const [name, row] of strip.rows) {
    for (const chip of row.children) {
      const isSelected = selected?.sequence === name && selected.index === Number(chip.dataset.index);
      chip.classList.toggle("selected", isSelected);
      chip.setAttribute("aria-selected", String(isSelected));
      chip.tabIndex = isSelected ? 0 : -1;
    }
    if (!row.querySelector('[tabindex="0"]')) row.firstElementChild?.setAttribute("tabindex", "0");
  }
}

/** After a change of width or of tokens: the selected chip of every row in view. */
function arrange(strip) {
  for (const row of strip.rows.values()) {
    const selected = row.querySelector(".selected");
    if (selected) bringIntoView(row, selected, FADED);
    showMore(row);
  }
}

/** Fade a row out on the side where more of it is. */
function showMore(row) {
  row.classList.toggle("more-before", row.scrollLeft > 2);
  row.classList.toggle("more-after", row.scrollWidth - row.clientWidth - row.scrollLeft > 2);
}

/** Move the focus to a chip, keeping the page where it is. */
function focusChip(strip, chip) {
  const row = chip.parentElement;
  for (const other of row.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  chip.tabIndex = 0;
  chip.focus({ preventScroll: true });
  bringIntoView(row, chip, FADED);
}

/** Arrow keys, Home and End move between chips; Enter and Space choose. */
function pressKey(strip, event) {
  const chip = event.target.closest(".chip");
  if (!chip || hasModifier(event)) return;
  if (event.key === "Enter" || event.key === " ") selectChip(strip, chip);
  else {
    const target = chipAfterKey(strip, chip, event.key);
    if (!target) return;
    focusChip(strip, target);
  }
  event.preventDefault();
}

/** The chip that a key leads to, null when the key means nothing here. */
function chipAfterKey(strip, chip, key) {
  const all = [...chip.parentElement.children];
  if (key === "Home") return all[0];
  if (key === "End") return all.at(-1);
  if (key in ROW_STEPS) return chipInRow(strip, chip, ROW_STEPS[key]);
  if (key in STEPS) return all[all.indexOf(chip) + STEPS[key]] ?? chip;
  return null;
}

/** The chip nearest to this one in the row above (-1) or below (1), the chip itself where there is none. */
function chipInRow(strip, chip, step) {
  const rows = [...strip.rows.values()];
  const row = rows[rows.indexOf(chip.parentElement) + step];
  if (!row) return chip;
  const middle = (one) => one.getBoundingClientRect().left + one.offsetWidth / 2;
  const distance = (other) => Math.abs(middle(other) - middle(chip));
  return [...row.children].reduce((a, b) => (distance(b) < distance(a) ? b : a));
}

/** Draw the picture in `root`. */
export function render(root, bytes, host) {
  return startPicture(TokenStrip, root, bytes, host);
}
