/** The share of the window that a picture has. On a page that is presented, every grid fits the window. */

import { LABEL_CELL } from "./grid_layout.js";
import { askedOnce, zoomOf } from "./zoom.js";

const ABOVE_ROWS = 56; // what the title and the labels of a grid take
const STRIP = 80; // the tokens, which stay in sight while the page is scrolled
const FOOT = 8;

/** All that is around an element, from the inside, hosts of shadows included.
 *  @param {Element} element @returns {Element[]} */
export function around(element) {
  const root = element.getRootNode();
  const outer = element.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
  return outer ? [outer, ...around(outer)] : [];
}

/** True if the page is presented: its style sheet says so. */
export const isPresented = askedOnce(
  (element) => getComputedStyle(element).getPropertyValue("--hl-presented") !== "");

/** The height from the top of an element to the foot of the window, while the page is at its top.
 *  @param {Element} element */
export function roomBelow(element) {
  let { top } = element.getBoundingClientRect();
  for (const node of around(element)) top += node.scrollTop;
  return (window.innerHeight - top) / zoomOf(element);
}

/**
 * The most height of a grid of so many rows, with its title and labels: where `element` is, down to the foot of the
 * window, on a page that is presented, and else as much as the grid wants. Rows that would be too low for their labels
 * there have the whole window, to which a person scrolls. With `least`, a grid fits any page where its rows are as high.
 * @param {Element} element @param {number} rows
 */
export function tallestGrid(element, rows, least = Infinity) {
  const presented = isPresented(element);
  if (!presented && least === Infinity) return Infinity; // without asking where the element is, which lays out the page
  const below = roomBelow(element);
  /** @param {number} row */
  const fits = (row) => below >= ABOVE_ROWS + rows * row;
  if (!presented) return fits(least) ? below - FOOT : Infinity;
  const whole = window.innerHeight / zoomOf(element) - STRIP;
  return (fits(LABEL_CELL) ? below : whole) - FOOT;
}
