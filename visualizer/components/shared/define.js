import { makeElement } from "./dom.js";

const DEFINE_EVENT = "headlight:define";

/** A button whose words open an entry of the glossary, beside them. @param {string} entry @param {string} text */
function termButton(entry, text) {
  const button = makeElement("button", "term", { type: "button", "data-entry": entry }, [text]);
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    window.dispatchEvent(new CustomEvent(DEFINE_EVENT, { detail: { entry, from: button } }));
  });
  return button;
}

/** Call `callback({entry, from})` for every term on the page that is opened.
 *  @param {(asked: { entry: string, from: HTMLElement }) => void} callback @param {{ signal: AbortSignal }} untilEnd */
export function subscribeDefine(callback, untilEnd) {
  window.addEventListener(DEFINE_EVENT, (/** @type {any} */ event) => callback(event.detail), untilEnd);
}

/** The parts of a text, [text, entry] each: those with an entry as buttons that open it.
 *  @param {[string, string][]} pieces @returns {(string | Node)[]} */
export function wordNodes(pieces) {
  return pieces.map(([text, entry]) => (entry ? termButton(entry, text) : text));
}
