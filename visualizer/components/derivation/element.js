/**
 * The derivation of one number: its elements as bars in aligned rows, then the steps that lead to the number.
 *
 * Pointing at an element (or walking with the arrow keys) shows it in all rows; an element that is a token also
 * lights that token everywhere on the page.
 */

/** @import { Header, Host, Mark, Theme } from "../types.d.ts" */
/** @import { BarPicture, Row } from "./types.d.ts" */

import { sizedContext } from "../marks/pen.js";
import { childrenOf, makeElement, oncePerFrame, setBox, setText } from "../shared/dom.js";
import { hasModifier } from "../shared/keys.js";
import { floats, formatNumber } from "../shared/payload.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { Reading } from "../shared/reading.js";
import { textsOf } from "../shared/texts.js";
import { tooltipLine } from "../shared/tooltip.js";
import { pixelRatioOf, zoomOf } from "../shared/zoom.js";
import { measureBars, paintBars, rangeOf } from "./bars.js";

const say = textsOf("derivation/element");

/** The elements of a derivation, in the order of the page. @param {HTMLElement} root */
function buildNodes(root) {
  const title = makeElement("div", "title");
  const formula = makeElement("code", "formula");
  const verdict = makeElement("div", "verdict");
  const names = makeElement("div", "names", { "aria-hidden": "true" });
  const canvas = makeElement("canvas", "", { "aria-hidden": "true" });
  const spacer = makeElement("div", "spacer");
  const scroller = makeElement("div", "scroller", { tabindex: "0", role: "group" }, [canvas, spacer]);
  const bars = makeElement("div", "bars", {}, [names, scroller]);
  const steps = makeElement("ol", "steps");
  const reading = new Reading();
  const live = makeElement("div", "visually-hidden", { "aria-live": "polite" });
  const heading = makeElement("div", "heading", {}, [title, formula, verdict]);
  root.prepend(makeElement("div", "derivation", {}, [heading, bars, steps, reading.element, live]));
  return { title, formula, verdict, names, canvas, spacer, scroller, bars, steps, reading, live };
}

class DerivationPicture extends Picture {
  isSaved = true;
  /** @type {BarPicture} */ picture;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "derivation");
    this.nodes = buildNodes(root);
    this.requestPaint = oncePerFrame(() => this.picture.sizes && paint(this)); // none where there are no bars by then
    const { scroller } = this.nodes;
    scroller.onpointermove = (event) => activate(this, elementAt(this, event), event);
    scroller.onpointerleave = () => activate(this, null);
    scroller.onscroll = this.requestPaint;
    scroller.onkeydown = (event) => pressKey(this, event);
    scroller.onblur = () => {
      activate(this, null);
      setText(this.nodes.live, "");
    };
    this.endings.push(() => this.requestPaint.cancel(), () => this.nodes.reading.forget());
  }

  receive() {
    const { data, nodes } = this;
    this.picture = buildPicture(data, this.theme);
    this.tooltip.hide();
    if (this.isPointing) this.publish([]); // it was a number of the derivation before
    setText(nodes.title, data.title);
    setText(nodes.formula, data.formula);
    setText(nodes.verdict, data.verdict);
    nodes.verdict.dataset.agrees = data.agrees;
    nodes.bars.hidden = this.picture.rows.length === 0 || this.picture.count === 0;
    showNames(this);
    showSteps(this, data);
    showAlternative(this, data.title);
  }

  draw() {
    arrange(this);
  }

  /** Light the element that another part of the page points at. @param {Mark[]} marks */
  onHover(marks) {
    const { picture } = this;
    if (!picture.sequence) return;
    const mark = marks.find(({ sequence, role }) => sequence === picture.sequence && role !== "query");
    picture.active = mark && mark.index < picture.count ? mark.index : null;
    this.requestPaint();
  }
}

/** The element under the pointer, null beside them. @param {DerivationPicture} view @param {MouseEvent} event */
function elementAt({ nodes: { scroller }, picture }, event) {
  const x = (event.clientX - scroller.getBoundingClientRect().left) / zoomOf(scroller) + scroller.scrollLeft;
  const index = Math.floor(x / picture.sizes.column);
  return index >= 0 && index < picture.count ? index : null;
}

/** Make an element the active one because the person points at it, and tell the page if it is a token.
 *  @param {DerivationPicture} view @param {number | null} index @param {MouseEvent | null} [event] */
function activate(view, index, event = null) {
  const { picture } = view;
  showTip(view, index, event);
  if (picture.active === index) return;
  picture.active = index;
  view.requestPaint();
  if (!picture.sequence) return;
  const marks = index === null ? [] : [{ sequence: picture.sequence, index, role: "key" }];
  view.publish(marks);
}

/** Paint the part of the rows that is in view. @param {DerivationPicture} view */
function paint({ nodes: { canvas, scroller }, picture }) {
  const ratio = pixelRatioOf(canvas);
  const width = scroller.clientWidth;
  const { height } = picture.sizes;
  const context = sizedContext(canvas, Math.round(width * ratio), Math.round(height * ratio));
  setBox(canvas, null, null, width, height);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  paintBars(context, picture, { left: scroller.scrollLeft, width });
}

/** Sizes for the present width, then paint. @param {DerivationPicture} view */
function arrange(view) {
  const { picture } = view;
  const available = view.nodes.scroller.clientWidth;
  if (available === 0) return;
  const names = [...childrenOf(view.nodes.names)];
  for (const name of names) name.style.height = "";
  picture.sizes = measureBars(picture, available, Math.max(0, ...names.map(({ offsetHeight }) => offsetHeight)));
  view.nodes.spacer.style.width = `${picture.sizes.width}px`;
  names.forEach((name, index) => {
    name.style.top = `${picture.sizes.bandTop(index)}px`;
    name.style.height = `${picture.sizes.band}px`;
  });
  view.nodes.names.style.height = `${picture.sizes.height}px`;
  paint(view);
}

/** The tooltip: the element's name and its value in every row.
 *  @param {DerivationPicture} view @param {number | null} index @param {MouseEvent | null} event */
function showTip({ nodes: { scroller }, tooltip, picture }, index, event) {
  if (index === null) return tooltip.hide();
  const inner = scroller.getBoundingClientRect();
  const zoom = zoomOf(scroller);
  const x = event?.clientX ?? inner.left + ((index + 0.5) * picture.sizes.column - scroller.scrollLeft) * zoom;
  const y = event?.clientY ?? inner.top + picture.sizes.header * zoom;
  tooltip.show(describeElement(picture, index).map((line) => tooltipLine("", line)), x, y);
}

/** An element in words: its name, then one line per row. @param {BarPicture} picture @param {number} index */
function describeElement({ labels, rows, blocked, sequence }, index) {
  const isNamed = labels[index] !== String(index) || sequence;
  const place = sequence ? say("token", { index }) : say("element", { index });
  const name = `${place}${isNamed ? ` ⟨\u2068${labels[index]}\u2069⟩` : ""}`;
  const values = rows.map((row) => `${row.label}  ${formatNumber(row.values[index])}`);
  return blocked[index] ? [name, ...values, say("blocked")] : [name, ...values];
}

/** Arrow keys walk through the elements, Home and End go to the ends, Escape leaves.
 *  @param {DerivationPicture} view @param {KeyboardEvent} event */
function pressKey(view, event) {
  const { nodes: { scroller }, picture } = view;
  const last = picture.count - 1;
  const here = picture.active ?? (event.key === "ArrowLeft" ? last + 1 : -1);
  /** @type {Record<string, number | null>} */
  const targets = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last, Escape: null };
  if (!(event.key in targets) || hasModifier(event)) return;
  event.preventDefault();
  const target = targets[event.key];
  if (target === null) return activate(view, null);
  const index = Math.max(0, Math.min(last, target));
  const left = index * picture.sizes.column;
  if (left < scroller.scrollLeft) scroller.scrollLeft = left;
  const right = left + picture.sizes.column;
  if (right > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = right - scroller.clientWidth;
  activate(view, index);
  setText(view.nodes.live, describeElement(picture, index).join(", "));
}

/** The largest value of a row, with a sign where the row goes both ways. @param {Row["range"]} range */
function sizeInWords({ low, high }) {
  return say("up_to", { size: `${low < 0 ? "±" : ""}${formatNumber(Math.max(high, -low), "f2")}` });
}

/** The rows' names beside their bars, with the largest size that the bars stand for.
 *  @param {DerivationPicture} view */
function showNames({ nodes: { names }, picture }) {
  /** @param {Row} row */
  const rowName = ({ operator, label, role, range }) =>
    makeElement("div", "row-name", { "data-role": role }, [
      makeElement("span", "label", {}, [operator ? `${operator} ${label}` : label]),
      makeElement("span", "scale", {}, [sizeInWords(range)]),
    ]);
  names.replaceChildren(...picture.rows.map(rowName));
}

/** The chain of steps, the last one large and in the colour of what it gives.
 *  @param {DerivationPicture} view @param {Header} data */
function showSteps({ nodes: { steps: list } }, { steps, role }) {
  list.dataset.role = role;
  const items = steps.map((/** @type {{ text: string, value: string }} */ { text, value }, /** @type {number} */ index) =>
    makeElement("li", index === steps.length - 1 ? "step result" : "step", {}, [
      makeElement("span", "operation", {}, [text]),
      makeElement("span", "equals", {}, ["="]),
      makeElement("span", "value", {}, [value]),
    ]),
  );
  list.replaceChildren(...items);
}

/** For those who do not see the canvas: one text for each element.
 *  @param {DerivationPicture} view @param {string} title */
function showAlternative({ nodes: { reading, scroller }, picture }, title) {
  scroller.setAttribute("aria-label", say("keys", { title, count: picture.count }));
  reading.writeSoon(title, () => picture.labels.map((_, index) => describeElement(picture, index).join(", ")));
}

/** The canvas's content, out of what Python sent. @param {Header} data @param {Theme} theme */
function buildPicture({ rows, arrays, columns, sequence, focus }, theme) {
  return {
    rows: rows.map((/** @type {Row} */ row, /** @type {number} */ index) => {
      const values = floats(arrays[`row${index}`]);
      return { ...row, values, range: rangeOf(values, arrays.blocked.data) };
    }),
    blocked: arrays.blocked.data,
    labels: columns,
    sequence,
    focus,
    count: columns.length,
    active: null,
    theme,
    sizes: /** @type {any} */ (null), // until there is room
  };
}

export const render = rendererOf(DerivationPicture);
