import { zoomOf } from "./zoom.js";

/** Make an element with a class, attributes and children; text children are set as text, never as markup.
 *  @template {keyof HTMLElementTagNameMap} Tag
 *  @param {Tag} tag @param {(string | Node)[]} [children] */
export function makeElement(tag, className = "", attributes = {}, children = []) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Make an SVG element with attributes and children. @param {string} tag @param {(string | Node)[]} [children] */
export function makeSvgElement(tag, attributes = {}, children = []) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A style sheet that shadow roots can share. @param {string} style */
export function sheetOf(style) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  return sheet;
}

/** A span around text a person typed: isolated, so that right-to-left text cannot reorder its surroundings.
 *  @param {string} text */
export function tokenSpan(text) {
  return makeElement("bdi", "token", {}, [text]);
}

const segmenter = new Intl.Segmenter();

/** True if a text is one character as a person sees it. @param {string} text */
export function isOneCharacter(text) {
  return text.length < 12 && charactersOf(text).length === 1;
}

/** A text's characters as a person sees them. @param {string} text */
export function charactersOf(text) {
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** Set an element's text only when it differs: an unchanged node is not laid out again.
 *  @param {Element} element @param {string} text */
export function setText(element, text) {
  const { firstChild } = element;
  if (element.textContent === text) return;
  if (text && firstChild instanceof Text && !firstChild.nextSibling) firstChild.data = text;
  else element.textContent = text;
}

/**
 * Give an element other children. Where they are alike, only their texts change: a node that is taken out and put in
 * has style and layout of much around it done anew.
 * @param {Element} element @param {Node[]} nodes
 */
export function setChildren(element, nodes) {
  const before = [...element.childNodes];
  nodes.forEach((node, i) => (i < before.length ? change(before[i], node) : element.append(node)));
  before.slice(nodes.length).forEach((node) => node.remove());
}

/** Have a node of the page say what another one says, which takes its place where they differ in more than texts.
 *  @param {ChildNode} node @param {Node} wanted */
function change(node, wanted) {
  if (node instanceof Text && wanted instanceof Text) {
    if (node.data !== wanted.data) node.data = wanted.data;
  } else if (node instanceof Element && wanted instanceof Element && areAlike(node, wanted)) {
    setChildren(node, [...wanted.childNodes]);
  } else node.replaceWith(wanted);
}

/** @param {Element} one @param {Element} other */
function areAlike(one, other) {
  const [these, those] = [[...one.attributes], [...other.attributes]];
  const areSame = these.length === those.length && these.every(({ name, value }) => other.getAttribute(name) === value);
  return areSame && one.tagName === other.tagName;
}

/** The children of an element that has HTML alone in it.
 *  @param {Element} element @returns {HTMLCollectionOf<HTMLElement>} */
export function childrenOf(element) {
  return /** @type {any} */ (element.children);
}

/**
 * The element of a kind that something happened in; null where it happened in none.
 * @param {Event} event @param {string} selector
 * @returns {HTMLElement | null}
 */
export function under({ target }, selector) {
  return target instanceof Element ? target.closest(selector) : null;
}

/** `value` moved into the range from `low` to `high`.
 *  @param {number} value @param {number} low @param {number} high */
export function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** A function that runs `action` at most once per frame, however often it is called.
 *  @param {() => unknown} action */
export function oncePerFrame(action) {
  let request = 0;
  const schedule = () => {
    request ||= requestAnimationFrame(() => {
      request = 0;
      action();
    });
  };
  schedule.cancel = () => {
    cancelAnimationFrame(request);
    request = 0;
  };
  return schedule;
}

/** A function that runs `action` so many milliseconds after it is called, once for all calls until then.
 *  @param {number} milliseconds @param {() => unknown} action */
export function onceIn(milliseconds, action) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const schedule = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      action();
    }, milliseconds);
  };
  schedule.cancel = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  return schedule;
}

/** Do something once the page has nothing more urgent to do. Returns what ends that.
 *  @param {() => unknown} action */
export function whenIdle(action) {
  const { scheduler } = globalThis;
  if (!scheduler) return clearTimeout.bind(null, setTimeout(action, 0));
  const controller = new AbortController();
  scheduler.postTask(() => controller.signal.aborted || action(), { priority: "background" });
  return () => controller.abort();
}

/** Scroll a container sideways, and nothing else, until the node is well inside it.
 *  @param {HTMLElement} scroller @param {Element} node @param {number} margin */
export function bringIntoView(scroller, node, margin) {
  const outer = scroller.getBoundingClientRect();
  const inner = node.getBoundingClientRect();
  const least = Math.min(margin, outer.width / 4);
  const zoom = zoomOf(scroller);
  if (inner.left < outer.left + least) scroller.scrollLeft += (inner.left - outer.left - least) / zoom;
  if (inner.right > outer.right - least) scroller.scrollLeft += (inner.right - outer.right + least) / zoom;
}

const counts = new Intl.NumberFormat("en");

/** "1 cell", "1,024 cells". @param {number} count @param {string} noun */
export function countOf(count, noun) {
  return `${counts.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Tell tests and measurements that a component has drawn new data.
 *  @param {string} component @param {string} key */
export function announcePainted(component, key) {
  window.dispatchEvent(new CustomEvent("headlight:painted", { detail: { component, key } }));
}

/** Place and size an absolutely positioned element in CSS pixels; null leaves a coordinate alone.
 *  @param {HTMLElement} element @param {number | null} left @param {number | null} top @param {number} width
 *  @param {number} height */
export function setBox(element, left, top, width, height) {
  if (left !== null) element.style.left = `${left}px`;
  if (top !== null) element.style.top = `${top}px`;
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
}
