/** The table's fit to the width that it has. */

import { makeElement, tokenSpan } from "../shared/dom.js";

const NAME_WIDTH = 232;
const GAP = 18;
const NARROW_GAP = 12;
const WIDEST_COLUMN = 44;
const NARROWEST_COLUMN = 2; // below, single keys can hardly be pointed at
const LABEL_COLUMN = 12; // a key this wide has room for its name, upright

/**
 * The first arrangement in which every key can be pointed at: names "beside" the charts of their line, names "above"
 * them, or all charts "stacked". `column` is the width of one key.
 * @param {number} available @param {number} columns @param {number} keys
 */
export function arrangeTable(available, columns, keys) {
  const beside = (available - NAME_WIDTH) / columns - GAP;
  const above = (available - NARROW_GAP * (columns - 1)) / columns;
  if (beside >= Math.max(150, NARROWEST_COLUMN * keys)) return arrangement("beside", beside, keys);
  if (above >= Math.max(104, NARROWEST_COLUMN * keys)) return arrangement("above", above, keys);
  return arrangement("stacked", available, keys);
}

/** @param {string} name @param {number} width @param {number} keys */
function arrangement(name, width, keys) {
  return { name, column: Math.min(WIDEST_COLUMN, width / keys) };
}

/** The names of the keys over their bars, or every so many an index where names do not fit.
 *  @param {string[]} labels @param {number} column */
export function makeKeyLabels(labels, column) {
  const inWords = column >= LABEL_COLUMN;
  const step = inWords ? 1 : tickStep(column);
  const strip = makeElement("div", inWords ? "labels labels-upright" : "labels", { "aria-hidden": "true" });
  for (let index = 0; index < labels.length; index += step) {
    const label = inWords ? tokenSpan(labels[index]) : makeElement("span", "", {}, [String(index)]);
    label.classList.add("label");
    label.style.left = `${(index + 0.5) * column}px`;
    strip.append(label);
  }
  return strip;
}

/** Every how many keys an index has room. @param {number} column */
function tickStep(column) {
  return [2, 5, 10, 20, 50].find((step) => step * column >= 22) ?? 100;
}
