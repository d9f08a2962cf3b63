import { makeSegments } from "../shared/controls.js";
import { makeElement, setText } from "../shared/dom.js";
import { namesOf } from "./reasons.js";

const PRESSES = [
  { value: "paint", text: "Paint" },
  { value: "look", text: "Look" },
];

/**
 * The buttons above the painting.
 * actions: {usePress("paint" | "look"), undo(), redo(), clear(), invert(), takeOver()}.
 */
export function makeToolbar(actions) {
  const press = makeSegments("what a press does", PRESSES, actions.usePress);
  const undo = makeTool("Undo", "Ctrl+Z", actions.undo);
  const redo = makeTool("Redo", "Ctrl+Shift+Z or Ctrl+Y", actions.redo);
  const clear = makeTool("Clear", "open every painted cell", actions.clear);
  const invert = makeTool("Invert", "open what is painted and block the rest", actions.invert);
  const takeOver = makeTool("", "", actions.takeOver);
  takeOver.classList.add("tool-take-over");
  const element = makeElement("div", "tools", {}, [
    press.element,
    makeGroup("history", [undo, redo]),
    makeGroup("everything", [clear, invert]),
    takeOver,
  ]);
  return {
    element,
    /** Say what a press does, which buttons would do something, and which other masks there are to paint over. */
    update({ isPainting, canUndo, canRedo, canClear, others }) {
      press.set(isPainting ? "paint" : "look");
      enable(undo, canUndo);
      enable(redo, canRedo);
      enable(clear, canClear);
      setText(takeOver, `Paint over ${namesOf(others)}`);
      const title = `make what ${namesOf(others)} ${others.length === 1 ? "blocks" : "block"} part of the painting`;
      takeOver.setAttribute("title", title);
      takeOver.hidden = others.length === 0;
    },
  };
}

/** Buttons that belong together. */
export function makeGroup(label, children) {
  return makeElement("div", "tools-group", { role: "group", "aria-label": label }, children);
}

/** A button that acts, unless `enable` has marked it. */
export function makeTool(text, title, action) {
  const button = makeElement("button", "tool", { type: "button", title }, [text]);
  button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && action());
  return button;
}

/** A button that would do nothing is marked so, but keeps the keyboard's focus: the next Ctrl+Z must arrive. */
export function enable(button, enabled) {
  button.setAttribute("aria-disabled", String(!enabled));
}

/** "undo", "redo" or, for any other key, null. */
export function directionOfShortcut({ key, ctrlKey, metaKey, shiftKey, altKey }) {
  if (!(ctrlKey || metaKey) || altKey) return null;
  const letter = key.toLowerCase();
  if (letter === "z") return shiftKey ? "redo" : "undo";
  return letter === "y" && !shiftKey ? "redo" : null;
}
