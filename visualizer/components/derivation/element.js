/**
 * How one number came to be: its elements as bars in aligned rows, then the steps that lead to the number.
 *
 * Pointing at an element (or walking with the arrow keys) shows it in all rows; an element that is a token also
 * lights that token everywhere on the page.
 */

import { announcePainted, makeElement, oncePerFrame, setText } from "../shared/dom.js";
import { publishHover, subscribeHover } from "../shared/hover.js";
import { floats, formatNumber, unpack } from "../shared/payload.js";
import { applyTheme } from "../shared/theme.js";
import { measureBars, paintBars, rangeOf } from "./bars.js";

const HOVER_ORIGIN = "derivation";
const TABLE_LIMIT = 64;

/** The elements of a derivation, in the order of the page. */
function buildNodes(root) {
  const nodes = {
    title: makeElement("div", "title"),
    formula: makeElement("code", "formula"),
    names: makeElement("div", "names", { "aria-hidden": "true" }),
    canvas: makeElement("canvas", "", { "aria-hidden": "true" }),
    spacer: makeElement("div", "spacer"),
    steps: makeElement("ol", "steps"),
    verdict: makeElement("div", "verdict"),
    alternative: makeElement("div", "visually-hidden"),
    tip: makeElement("div", "derivation-tip", { hidden: "", "aria-live": "polite" }),
  };
  nodes.scroller = makeElement("div", "scroller", { tabindex: "0", role: "group" }, [nodes.canvas, nodes.spacer]);
  nodes.bars = makeElement("div", "bars", {}, [nodes.names, nodes.scroller]);
  const { title, formula, bars, steps, verdict, alternative, tip } = nodes;
  const heading = makeElement("div", "heading", {}, [title, formula, verdict]);
  nodes.frame = makeElement("div", "derivation", {}, [heading, bars, steps, alternative, tip]);
  root.append(nodes.frame);
  return nodes;
}

/** The state of one mounted derivation. */
function createDerivation(root) {
  const view = { ...buildNodes(root), picture: null };
  view.requestPaint = oncePerFrame(() => paint(view));
  view.scroller.onpointermove = (event) => activate(view, elementAt(view, event), event);
  view.scroller.onpointerleave = () => activate(view, null);
  view.scroller.onscroll = view.requestPaint;
  view.scroller.onkeydown = (event) => pressKey(view, event);
  view.scroller.onblur = () => activate(view, null);
  const observer = new ResizeObserver(() => view.picture && arrange(view));
  observer.observe(view.scroller);
  const unsubscribe = subscribeHover((detail) => followHover(view, detail));
  view.destroy = () => {
    view.requestPaint.cancel();
    observer.disconnect();
    unsubscribe();
  };
  return view;
}

/** The element under the pointer, null beside them. */
function elementAt({ scroller, picture }, event) {
  const x = event.clientX - scroller.getBoundingClientRect().left + scroller.scrollLeft;
  const index = Math.floor(x / picture.sizes.column);
  return index >= 0 && index < picture.count ? index : null;
}

/** Make an element the active one because the person points at it, and tell the page if it is a token. */
function activate(view, index, event = null) {
  const { picture } = view;
  showTip(view, index, event);
  if (picture.active === index) return;
  picture.active = index;
  view.requestPaint();
  if (!picture.sequence) return;
  const marks = index === null ? [] : [{ sequence: picture.sequence, index, role: "key" }];
  publishHover(marks, HOVER_ORIGIN);
}

/** Light the element that another part of the page points at. */
function followHover(view, { marks, origin }) {
  const { picture } = view;
  if (origin === HOVER_ORIGIN || !picture?.sequence) return;
  const mark = marks.find(({ sequence, role }) => sequence === picture.sequence && role !== "query");
  picture.active = mark && mark.index < picture.count ? mark.index : null;
  view.requestPaint();
}

/** Paint the part of the rows that is in view. */
function paint({ canvas, scroller, picture }) {
  const ratio = window.devicePixelRatio || 1;
  const width = scroller.clientWidth;
  const { height } = picture.sizes;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  paintBars(context, picture, { left: scroller.scrollLeft, width });
}

/** Sizes for the present width, then paint. */
function arrange(view) {
  const { picture } = view;
  const available = view.scroller.clientWidth;
  if (available === 0) return;
  picture.sizes = measureBars(picture, available);
  view.spacer.style.width = `${picture.sizes.width}px`;
  [...view.names.children].forEach((name, index) => {
    name.style.top = `${picture.sizes.bandTop(index)}px`;
    name.style.height = `${picture.sizes.band}px`;
  });
  view.names.style.height = `${picture.sizes.height}px`;
  paint(view);
}

/** The tooltip: the element's name and its value in every row. */
function showTip({ tip, frame, picture, scroller }, index, event) {
  tip.hidden = index === null;
  if (index === null) return;
  tip.textContent = describeElement(picture, index).join("\n");
  const outer = frame.getBoundingClientRect();
  const inner = scroller.getBoundingClientRect();
  const x = event?.clientX ?? inner.left + (index + 0.5) * picture.sizes.column - scroller.scrollLeft;
  const y = event?.clientY ?? inner.top + picture.sizes.header;
  const left = Math.min(x - outer.left + 14, outer.width - tip.offsetWidth - 4);
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${y - outer.top + 16}px`;
}

/** An element in words: its name, then one line per row. */
function describeElement({ labels, rows, blocked, sequence }, index) {
  const isNamed = labels[index] !== String(index) || sequence;
  const name = `${sequence ? "token" : "element"} ${index}${isNamed ? ` ⟨\u2068${labels[index]}\u2069⟩` : ""}`;
  const values = rows.map((row) => `${row.label}  ${formatNumber(row.values[index])}`);
  return blocked[index] ? [name, ...values, "blocked by the mask"] : [name, ...values];
}

/** Arrow keys walk through the elements, Home and End go to the ends, Escape leaves. */
function pressKey(view, event) {
  const { picture, scroller } = view;
  const last = picture.count - 1;
  const here = picture.active ?? (event.key === "ArrowLeft" ? last + 1 : -1);
  const targets = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last, Escape: null };
  if (!(event.key in targets) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const target = targets[event.key];
  if (target === null) return activate(view, null);
  const index = Math.max(0, Math.min(last, target));
  const left = index * picture.sizes.column;
  if (left < scroller.scrollLeft) scroller.scrollLeft = left;
  const right = left + picture.sizes.column;
  if (right > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = right - scroller.clientWidth;
  activate(view, index);
  view.scroller.setAttribute("aria-label", describeElement(picture, index).join(", "));
}

/** The largest value of a row, with a sign where the row goes both ways. */
function sizeInWords({ low, high }) {
  return `up to ${low < 0 ? "±" : ""}${formatNumber(Math.max(high, -low), "f2")}`;
}

/** The rows' names beside their bars, with the largest size that the bars stand for. */
function showNames({ names, picture }) {
  const rowName = ({ operator, label, role, range }) =>
    makeElement("div", "row-name", { "data-role": role }, [
      makeElement("span", "label", {}, [operator ? `${operator} ${label}` : label]),
      makeElement("span", "scale", {}, [sizeInWords(range)]),
    ]);
  names.replaceChildren(...picture.rows.map(rowName));
}

/** The chain of steps, the last one large and in the colour of what it gives. */
function showSteps({ steps: list }, { steps, role }) {
  list.dataset.role = role;
  const items = steps.map(({ text, value }, index) =>
    makeElement("li", index === steps.length - 1 ? "step result" : "step", {}, [
      makeElement("span", "operation", {}, [text]),
      makeElement("span", "equals", {}, ["="]),
      makeElement("span", "value", {}, [value]),
    ]),
  );
  list.replaceChildren(...items);
}

/** For those who do not see the canvas: a table of few elements, a sentence about many. */
function showAlternative({ alternative, scroller, picture }, title) {
  scroller.setAttribute("aria-label", `${title}: ${picture.count} elements. Arrow keys read them one by one.`);
  if (picture.count > TABLE_LIMIT || picture.rows.length === 0) {
    alternative.replaceChildren();
    return;
  }
  const cells = (texts, tag) => makeElement("tr", "", {}, texts.map((text) => makeElement(tag, "", {}, [text])));
  const heading = cells(["element", ...picture.rows.map((row) => row.label)], "th");
  const body = picture.labels.map((label, index) =>
    cells([label, ...picture.rows.map((row) => formatNumber(row.values[index]))], "td"),
  );
  const caption = makeElement("caption", "", {}, [title]);
  alternative.replaceChildren(makeElement("table", "", {}, [caption, heading, ...body]));
}

/** What the canvas draws, out of what Python sent. */
function buildPicture({ rows, arrays, columns, sequence, focus }, theme) {
  return {
    rows: rows.map((row, index) => {
      const values = floats(arrays[`row${index}`]);
      return { ...row, values, range: rangeOf(values) };
    }),
    blocked: arrays.blocked.data,
    labels: columns,
    sequence,
    focus,
    count: columns.length,
    active: null,
    theme,
    sizes: null,
  };
}

/** Show other content. */
function receive(view, content, theme) {
  view.picture = buildPicture(content, theme);
  view.tip.hidden = true;
  setText(view.title, content.title);
  setText(view.formula, content.formula);
  setText(view.verdict, content.verdict);
  view.verdict.dataset.agrees = content.agrees;
  view.bars.hidden = view.picture.rows.length === 0 || view.picture.count === 0;
  showNames(view);
  showSteps(view, content);
  showAlternative(view, content.title);
  arrange(view);
  announcePainted("derivation", content.key);
}

/** Draw the picture in `root`. */
export function render(root, bytes, host) {
  const view = createDerivation(root);
  const update = (latest) => receive(view, unpack(latest), applyTheme(root, host));
  update(bytes);
  return { update, destroy: view.destroy };
}
