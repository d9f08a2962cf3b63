/** What cannot be seen is drawn when it comes near the window. */

const MARGIN = "50%"; // of the window, on each side: what is about to be seen is drawn already
const states = new WeakMap();
const waiting = new Set(); // weak references to the elements whose drawing waits: removed ones can be forgotten
/** @type {IntersectionObserver | undefined} */
let observer;

/**
 * Draw an element now if it is in the window or near it, else when it comes there; of several drawings of one
 * element that wait, only the last is done.
 */
export function drawWhenNear(element, draw) {
  observer ??= observe();
  let state = states.get(element);
  if (!state) {
    state = { isNear: isInWindow(element), waiting: null, reference: new WeakRef(element) };
    states.set(element, state);
    observer.observe(element);
  }
  state.waiting = state.isNear ? null : draw;
  if (state.isNear) {
    waiting.delete(state.reference);
    draw();
  } else waiting.add(state.reference);
}

/** Watch what comes near; what is printed is on paper, wherever it is in the window. */
function observe() {
  window.addEventListener("beforeprint", drawAll);
  matchMedia("print").addEventListener("change", ({ matches }) => matches && drawAll());
  return new IntersectionObserver(drawNear, { rootMargin: MARGIN, scrollMargin: MARGIN });
}

function drawAll() {
  for (const reference of [...waiting]) {
    const element = reference.deref();
    if (element?.isConnected) drawNow(element);
  }
  waiting.clear();
}

function drawNow(element) {
  const state = states.get(element);
  const draw = state.waiting;
  state.waiting = null;
  waiting.delete(state.reference);
  draw?.();
}

function isInWindow(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return top < window.innerHeight && bottom > 0;
}

function drawNear(entries) {
  for (const { target, isIntersecting } of entries) {
    const state = states.get(target);
    state.isNear = isIntersecting;
    if (isIntersecting && state.waiting) drawNow(target);
  }
}
