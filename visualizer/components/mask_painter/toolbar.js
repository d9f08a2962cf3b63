import { makeElement, makeSvgElement } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";

const say = textsOf("mask_painter/toolbar");
const SHAPES = {
  Undo: "M6 3 2.5 6.5 6 10M2.5 6.5H10a3.5 3.5 0 0 1 0 7H6",
  Redo: "M10 3l3.5 3.5L10 10M13.5 6.5H6a3.5 3.5 0 0 0 0 7h4",
  Clear: "M3 3h10v10H3zM6 6l4 4M10 6l-4 4",
  Invert: "M3 3h10v10H3zM8 3v10M8 5h5M8 7h5M8 9h5M8 11h5",
  Look: "M1.5 8Q8 0 14.5 8 8 16 1.5 8zM8 6a2 2 0 1 1 0 4 2 2 0 1 1 0-4z",
};

/** The buttons above the painting.
 *  @param {{ undo: () => void, redo: () => void, clear: () => void, invert: () => void, look: () => void }} actions */
export function makeToolbar(actions) {
  const undo = makeTool("Undo", actions.undo);
  const redo = makeTool("Redo", actions.redo);
  const clear = makeTool("Clear", actions.clear);
  const invert = makeTool("Invert", actions.invert);
  const look = makeTool("Look", actions.look);
  return {
    element: makeElement("div", "tools", {}, [undo, redo, clear, invert, look]),
    /** Say what a press does, and which buttons would do something.
     *  @param {{ isPainting: boolean, canUndo: boolean, canRedo: boolean, canClear: boolean }} can */
    update({ isPainting, canUndo, canRedo, canClear }) {
      look.setAttribute("aria-pressed", String(!isPainting));
      enable(undo, canUndo);
      enable(redo, canRedo);
      enable(clear, canClear);
    },
  };
}

const TITLES = {
  Undo: say("undo"),
  Redo: say("redo"),
  Clear: say("clear"),
  Invert: say("invert"),
  Look: say("look"),
};

/** A button that acts, unless `enable` has marked it.
 *  @param {keyof typeof SHAPES} name @param {() => void} action */
export function makeTool(name, action, title = TITLES[name]) {
  const shape = makeSvgElement("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, [
    makeSvgElement("path", { d: SHAPES[name] }),
  ]);
  const attributes = { type: "button", "aria-label": name, title: `${name}: ${title}` };
  const button = makeElement("button", "tool tool-icon", attributes, [shape]);
  button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && action());
  return button;
}

/** A button that would do nothing is marked so, but keeps the keyboard's focus: the next Ctrl+Z must arrive.
 *  @param {Element} button @param {boolean} enabled */
export function enable(button, enabled) {
  button.setAttribute("aria-disabled", String(!enabled));
}

/** Undo and redo by the keys that are usual for them. @param {HTMLElement} element @param {(direction: "undo" | "redo") => void} step */
export function onUndoKeys(element, step) {
  element.addEventListener("keydown", (event) => {
    const direction = directionOfShortcut(event);
    if (!direction) return;
    step(direction);
    event.preventDefault();
    event.stopPropagation();
  });
}

/** "undo", "redo" or, for any other key, null. @param {KeyboardEvent} event */
export function directionOfShortcut({ key, ctrlKey, metaKey, shiftKey, altKey }) {
  if (!(ctrlKey || metaKey) || altKey) return null;
  const letter = key.toLowerCase();
  if (letter === "z") return shiftKey ? "redo" : "undo";
  return letter === "y" && !shiftKey ? "redo" : null;
}
