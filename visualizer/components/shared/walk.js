import { makeElement } from "./dom.js";

/** The button "previous" or "next": an arrow; its label says where it leads.
 *  @param {string} name @param {string} arrow */
export function walkButton(name, arrow) {
  return makeElement("button", `walk-button ${name}`, { type: "button" }, [arrow]);
}
