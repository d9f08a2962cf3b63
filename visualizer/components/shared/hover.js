/** @import { Mark } from "../types.d.ts" */

const HOVER_EVENT = "headlight:hover";

/**
 * Tell every component on the page which tokens are pointed at.
 * marks: [{sequence: "source" | "target", index, role: "query" | "key" | "token"}]; none = nothing is pointed at. One
 * that `isChosen` is the query from now on.
 * origin: whoever publishes, so that it can tell its own marks from others'.
 * @param {Mark[]} marks @param {object} origin
 */
export function publishHover(marks, origin) {
  window.dispatchEvent(new CustomEvent(HOVER_EVENT, { detail: { marks, origin } }));
}

/** Call `callback({marks, origin})` for every hover on the page; returns the function that stops it.
 *  @param {(hover: {marks: Mark[], origin: object}) => void} callback */
export function subscribeHover(callback) {
  /** @param {any} event */
  const listener = (event) => callback(event.detail);
  window.addEventListener(HOVER_EVENT, listener);
  return () => window.removeEventListener(HOVER_EVENT, listener);
}

/** The token of a sequence that has just become the query; null where none has.
 *  @param {Mark[]} marks @param {string | null} sequence */
export function chosenQuery(marks, sequence) {
  return marks.find((mark) => mark.isChosen && mark.sequence === sequence)?.index ?? null;
}
