/** Visible pictures are drawn first, those near them soon after, and everything else when it comes near. */

import { whenIdle } from "./dom.js";

const MARGIN = "50%"; // of the window, on each side: what is about to be seen is drawn already
const states = new WeakMap();
const waiting = new Set(); // weak references to the elements whose drawing waits: removed ones can be forgotten
/** @type {Element[]} */
const newcomers = [];
/** @type {IntersectionObserver[] | undefined} */
let observers;

/**
 * Draw an element now if it is in the window, soon if it is near it, else when it comes there; of several drawings of
 * one element that wait, only the last is done.
 * @param {HTMLElement} element @param {() => unknown} draw
 */
export function drawWhenNear(element, draw) {
  observers ??= observe();
  let state = states.get(element);
  if (!state) {
    state = { isSeen: false, isNear: false, waiting: null, reference: new WeakRef(element) };
    states.set(element, state);
    for (const observer of observers) observer.observe(element);
    lookAt(element);
  }
  state.waiting = draw;
  waiting.add(state.reference);
  if (state.isSeen) drawNow(element);
  else if (state.isNear) whenIdle(() => drawNow(element));
}

/** An element is new, or was hidden: what it waits for is drawn at once if it is in the window. @param {Element} element */
export function lookAt(element) {
  if (newcomers.push(element) === 1) queueMicrotask(lookAtNewcomers);
}

/** Draw those that are in the window; all are looked at together, as the page is laid out for the first. */
function lookAtNewcomers() {
  const seen = newcomers.splice(0).filter(isInWindow);
  for (const element of seen) Object.assign(states.get(element), { isSeen: true, isNear: true });
  seen.forEach(drawNow);
}

/** Watch what comes near and into the window; what is printed is on paper, wherever it is in the window. */
function observe() {
  window.addEventListener("beforeprint", drawAll);
  matchMedia("print").addEventListener("change", ({ matches }) => matches && drawAll());
  return [
    new IntersectionObserver((entries) => note(entries, "isNear"), { rootMargin: MARGIN, scrollMargin: MARGIN }),
    new IntersectionObserver((entries) => note(entries, "isSeen")),
  ];
}

/** Draw everything that waits, wherever it is. */
export function drawAll() {
  for (const reference of [...waiting]) {
    const element = reference.deref();
    if (element?.isConnected) drawNow(element);
  }
  waiting.clear();
}

/** @param {Element} element */
function drawNow(element) {
  const state = states.get(element);
  const draw = state.waiting;
  state.waiting = null;
  waiting.delete(state.reference);
  draw?.();
}

/** @param {Element} element */
export function isInWindow(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return top < window.innerHeight && bottom > 0;
}

/** Some elements have come to where they are near or seen, or have left it.
 *  @param {IntersectionObserverEntry[]} entries @param {"isNear" | "isSeen"} where */
function note(entries, where) {
  for (const { target, isIntersecting } of entries) {
    states.get(target)[where] = isIntersecting;
    if (isIntersecting) drawNow(target);
  }
}
