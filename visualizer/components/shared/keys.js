/** The meaning of keys. */

const USE_ARROWS = ["input", "textarea", "select", "[contenteditable]", "canvas", ".js-plotly-plot"]
  .concat(["application", "combobox", "grid", "listbox", "menu", "option", "radio", "radiogroup", "slider", "spinbutton", "tab"]
    .map((role) => `[role=${role}]`))
  .join(", ");

/** True if a key is pressed together with one that makes another of it.
 *  @param {{ ctrlKey: boolean, metaKey: boolean, altKey: boolean }} event */
export function hasModifier({ ctrlKey, metaKey, altKey }) {
  return ctrlKey || metaKey || altKey;
}

/** True if the page may take an arrow key: nothing has taken it, and what has the focus has no use of its own for it.
 *  @param {KeyboardEvent} event */
export function isForPage(event) {
  if (event.defaultPrevented || event.shiftKey || hasModifier(event)) return false;
  const [target] = event.composedPath();
  return !(target instanceof Element && target.closest(USE_ARROWS));
}

const TAKES_LETTERS = ["input:not([type=range], [type=checkbox], [type=radio])", "textarea", "select", "[contenteditable]"]
  .concat(["combobox", "grid", "menu", "textbox", "searchbox", "spinbutton"].map((role) => `[role=${role}]`))
  .join(", ");

/** True if the page may take a letter, with Shift or without: nobody is writing, and nothing has taken it.
 *  @param {KeyboardEvent} event */
export function isLetterForPage(event) {
  if (event.defaultPrevented || event.repeat || event.isComposing || hasModifier(event) || event.key.length !== 1) {
    return false;
  }
  return !event.composedPath().some((one) => one instanceof Element && one.matches(TAKES_LETTERS));
}

/** The rows and columns that a key moves in a matrix, null for other keys.
 *  @param {string} key @param {number} columns */
export function stepOfKey(key, columns) {
  /** @type {Record<string, [number, number]>} */
  const steps = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -columns], End: [0, columns],
  };
  return steps[key] ?? null;
}
