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

/** Call `callback({marks, origin})` for every hover on the page.
 *  @param {(hover: {marks: Mark[], origin: object}) => void} callback @param {{ signal: AbortSignal }} untilEnd */
export function subscribeHover(callback, untilEnd) {
  window.addEventListener(HOVER_EVENT, (/** @type {any} */ event) => callback(event.detail), untilEnd);
}

/** The token of a sequence that has just become the query; null where none has.
 *  @param {Mark[]} marks @param {string | null} sequence */
export function chosenQuery(marks, sequence) {
  return marks.find((mark) => mark.isChosen && mark.sequence === sequence)?.index ?? null;
}
