/**
 * The token strip: one chip per token with its index and id, one row of chips per sequence.
 *
 * Hovering a chip lights that token in every grid of the page; hovering a grid lights chips here. Choosing a chip
 * makes it the query at once; Python hears of it as {sequence, index, seq}.
 */

const HOVER_ORIGIN = "token_strip";
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

/** The state of one mounted strip. */
function createStrip(root) {
  const frame = makeElement("div", "token-strip");
  root.append(frame);
  const strip = {
    root,
    frame,
    chips: new Map(),
    rows: new Map(),
    lit: [],
    selected: null,
    seq: 0,
    version: "",
    send: () => {},
  };
  frame.onpointerover = hoverChip;
  frame.onpointerleave = () => publishHover([], HOVER_ORIGIN);
  frame.onclick = (event) => selectChip(strip, event.target.closest(".chip"));
  frame.onkeydown = (event) => pressKey(strip, event);
  frame.addEventListener("focusin", hoverChip);
  frame.addEventListener("focusout", () => publishHover([], HOVER_ORIGIN));
  strip.destroy = subscribeHover(({ marks }) => lightChips(strip, marks));
  return strip;
}

/** One chip's name in the map of chips. */
function chipName(sequence, index) {
  return `${sequence}:${index}`;
}

/** A token as a chip: its text, then its index and id. */
function buildChip(sequence, { index, label, id, padding, special }) {
  const numbers = makeElement("div", "numbers", {}, [
    makeElement("span", "index", {}, [String(index)]),
    makeElement("span", "id", {}, [`#${id}`]),
  ]);
  const attributes = {
    role: "option",
    tabindex: "-1",
    "data-sequence": sequence,
    "data-index": index,
    "aria-label": `token ${index}: ${label}, id ${id}${padding ? ", padding" : ""}`,
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
  strip.rows.set(name, row);
  return makeElement("div", "sequence", {}, [heading, row]);
}

/** Build all chips anew. */
function build(strip, sequences) {
  strip.chips.clear();
  strip.rows.clear();
  strip.lit = [];
  strip.frame.replaceChildren(...sequences.map((sequence) => buildSequence(strip, sequence)));
}

/** Publish the token under the pointer or under the focus. */
function hoverChip(event) {
  const chip = event.target.closest(".chip");
  const marks = chip ? [{ sequence: chip.dataset.sequence, index: Number(chip.dataset.index), role: "token" }] : [];
  publishHover(marks, HOVER_ORIGIN);
}

/** Light the chips that any part of the page has marked. */
function lightChips(strip, marks) {
  for (const chip of strip.lit) delete chip.dataset.mark;
  strip.lit = [];
  for (const { sequence, index, role } of marks) {
    const chip = strip.chips.get(chipName(sequence, index));
    if (!chip) continue;
    chip.dataset.mark = chip.dataset.mark && chip.dataset.mark !== role ? "both" : role;
    strip.lit.push(chip);
  }
}

/** Make a chip the query because the person asked for it, and tell Python. */
function selectChip(strip, chip) {
  if (!chip) return;
  const { sequence } = chip.dataset;
  const index = Number(chip.dataset.index);
  focusChip(strip, chip);
  strip.selected = { sequence, index };
  strip.seq += 1;
  showSelected(strip);
  strip.send({ sequence, index, seq: strip.seq });
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
      if (isSelected) bringIntoView(row, chip);
    }
    if (!row.querySelector('[tabindex="0"]')) row.firstElementChild?.setAttribute("tabindex", "0");
  }
}

/** Scroll a row, and nothing else, until the chip is inside it. */
function bringIntoView(row, chip) {
  const outer = row.getBoundingClientRect();
  const inner = chip.getBoundingClientRect();
  if (inner.top < outer.top) row.scrollTop += inner.top - outer.top - 4;
  if (inner.bottom > outer.bottom) row.scrollTop += inner.bottom - outer.bottom + 4;
}

/** Move the focus to a chip, keeping the page where it is. */
function focusChip(strip, chip) {
  const row = chip.parentElement;
  for (const other of row.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  chip.tabIndex = 0;
  chip.focus({ preventScroll: true });
  bringIntoView(row, chip);
}

/** Arrow keys, Home and End move between chips; Enter and Space choose. */
function pressKey(strip, event) {
  const chip = event.target.closest(".chip");
  if (!chip || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Enter" || event.key === " ") selectChip(strip, chip);
  else {
    const target = chipAfterKey(chip, event.key);
    if (!target) return;
    focusChip(strip, target);
  }
  event.preventDefault();
}

/** The chip that a key leads to, null when the key means nothing here. */
function chipAfterKey(chip, key) {
  const all = [...chip.parentElement.children];
  if (key === "Home") return all[0];
  if (key === "End") return all.at(-1);
  if (key === "ArrowUp") return chipOnLine(all, chip, -1);
  if (key === "ArrowDown") return chipOnLine(all, chip, 1);
  if (key in STEPS) return all[all.indexOf(chip) + STEPS[key]] ?? chip;
  return null;
}

/** The chip nearest above (-1) or below (1), the chip itself on the first and the last line. */
function chipOnLine(all, chip, direction) {
  const others = all.filter((other) => Math.sign(other.offsetTop - chip.offsetTop) === direction);
  if (others.length === 0) return chip;
  const top = others.at(direction === 1 ? 0 : -1).offsetTop;
  const middle = chip.offsetLeft + chip.offsetWidth / 2;
  const distance = (other) => Math.abs(other.offsetLeft + other.offsetWidth / 2 - middle);
  return others.filter((other) => other.offsetTop === top).reduce((a, b) => (distance(b) < distance(a) ? b : a));
}

/** Take over what Python sent, unless the person has chosen again since. */
function receive(strip, { sequences, selected, seq }) {
  const version = JSON.stringify(sequences);
  if (version !== strip.version) {
    strip.version = version;
    build(strip, sequences);
  }
  if (seq >= strip.seq) {
    strip.seq = seq;
    strip.selected = selected;
  }
  showSelected(strip);
}

export default function tokenStrip({ data, parentElement, setTriggerValue }) {
  const { instance: strip, cleanUp } = instanceFor(parentElement, createStrip);
  strip.send = (value) => setTriggerValue("select", value);
  applyPalette(strip.root, readTheme(strip.root));
  const content = unpack(data);
  receive(strip, content);
  announcePainted("token_strip", content.key);
  return cleanUp;
}
