/** @import { Theme } from "../types.d.ts" */

import { childrenOf, clamp, makeElement, makeSvgElement, setText, under } from "./dom.js";
import { hasModifier } from "./keys.js";
import { must } from "./must.js";
import { textsOf } from "./texts.js";
import { headColor, headDashes } from "./theme.js";

const say = textsOf("shared/controls");

/** A slider from 0 in whole steps; `onChange(value)` is called for what a person does.
 *  @param {string} className @param {string} label @param {(value: number) => void} onChange */
export function makeSlider(className, label, onChange) {
  const slider = makeElement("input", className, { type: "range", min: "0", step: "1", "aria-label": label });
  slider.addEventListener("input", () => onChange(Number(slider.value)));
  // The page steps through the model with the arrow keys; on a slider they move the slider.
  slider.addEventListener("keydown", (event) => event.stopPropagation());
  return slider;
}

/** A slider with steppers for the layer shown. `onChange(layer)` is called for what a person does, never for `set`.
 *  @param {(layer: number) => void} onChange */
export function makeLayerControl(onChange) {
  const slider = makeSlider("layer-slider", say("layers"), (layer) => change(layer));
  const back = makeElement("button", "layer-step", { type: "button", "aria-label": say("previous") }, ["‹"]);
  const forward = makeElement("button", "layer-step", { type: "button", "aria-label": say("next") }, ["›"]);
  const text = makeElement("output", "layer-text");
  const element = makeElement("div", "layer-control", {}, [text, back, slider, forward]);
  let layers = 1;
  /** @param {number} layer @param {number} count */
  const set = (layer, count, name = "") => {
    layers = count;
    slider.max = String(count - 1);
    slider.value = String(layer);
    slider.setAttribute("aria-valuetext", name || say("layer_of", { layer, count }));
    back.disabled = layer === 0;
    forward.disabled = layer === count - 1;
    setText(text, name || (count > 1 ? say("layer", { layer }) : say("only_layer")));
    slider.hidden = back.hidden = forward.hidden = count === 1;
  };
  /** @param {number} layer */
  const change = (layer) => onChange(clamp(layer, 0, layers - 1));
  back.addEventListener("click", () => change(Number(slider.value) - 1));
  forward.addEventListener("click", () => change(Number(slider.value) + 1));
  return { element, set };
}

/** A choice between a few texts, of which one is pressed. `onChange(value)` is called when a person chooses.
 *  @param {string} label @param {{ value: string, text: string }[]} options
 *  @param {(value: string) => void} onChange */
export function makeSegments(label, options, onChange) {
  const buttons = options.map(({ value, text }) => {
    const button = makeElement("button", "segment", { type: "button", "data-value": value }, [text]);
    button.addEventListener("click", () => onChange(value));
    return button;
  });
  const element = makeElement("div", "segments", { role: "group", "aria-label": label }, buttons);
  /** @param {string} value */
  const set = (value) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === value));
  };
  return { element, set };
}

/**
 * One chip for each head: a click shows it alone and chooses it, a click on the only one shown shows all; with Ctrl,
 * Command or Shift it is shown or hidden beside the others. Enter does the same as a click.
 * `onChange(shown, alone)` receives the Set of heads shown, and the head that is to be shown alone, if one is.
 * @param {(shown: Set<number>, alone: number | null) => void} onChange
 */
export function makeHeadChips(onChange) {
  const element = makeElement("div", "chips", { role: "group", "aria-label": say("heads") });
  let shown = new Set();
  const mark = () => {
    for (const chip of childrenOf(element)) chip.setAttribute("aria-pressed", String(shown.has(Number(chip.dataset.head))));
  };
  /** @param {number} head @param {boolean} besideOthers */
  const choose = (head, besideOthers) => {
    shown = headsAfter(shown, head, element.children.length, besideOthers);
    mark();
    onChange(shown, shown.size === 1 && !besideOthers ? head : null);
  };
  /** @param {MouseEvent | KeyboardEvent} event */
  const take = (event) => {
    const chip = under(event, ".chip");
    if (chip) choose(Number(chip.dataset.head), event.shiftKey || hasModifier(event));
  };
  element.addEventListener("click", take);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.shiftKey || hasModifier(event))) return;
    event.preventDefault(); // not every browser makes a click of it
    take(event);
  });
  /** @param {string[]} names @param {Theme} theme @param {Set<number>} heads */
  const set = (names, theme, heads) => {
    shown = heads;
    while (element.children.length > names.length) element.lastChild?.remove();
    names.forEach((name, head) => {
      const chip = childrenOf(element)[head] ?? element.appendChild(makeChip(head));
      chip.style.setProperty("--chip", headColor(theme, head));
      chip.querySelector("line")?.setAttribute("stroke-dasharray", headDashes(theme, head).join(" "));
      setText(must(chip.querySelector(".chip-text"), "no chip"), name ? `${head} · ${name}` : headTitle(head));
    });
    mark();
  };
  return { element, set };
}

/** "head 0 · previous token", or "head 0" for a head without a name. @param {number} head */
export function headTitle(head, name = "") {
  return name ? say("named_head", { head, name }) : say("head", { head });
}

/** The heads of `count` that are shown once one of them is chosen, alone or beside the others; never none.
 *  @param {Set<number>} shown @param {number} head @param {number} count @param {boolean} besideOthers */
export function headsAfter(shown, head, count, besideOthers) {
  const heads = new Set(besideOthers ? shown : [head]);
  const isAlone = shown.size === 1 && shown.has(head);
  if (besideOthers && !shown.has(head)) heads.add(head);
  else if (besideOthers || isAlone) heads.delete(head);
  return heads.size ? heads : new Set(Array.from({ length: count }, (_, one) => one));
}

/** @param {number} head */
function makeChip(head) {
  return makeElement("button", "chip", { type: "button", "data-head": head, title: say("chip") }, [
    makeElement("span", "chip-dot"),
    makeChipLine(),
    makeElement("span", "chip-text"),
  ]);
}

/** A piece of the head's line, which stands for the dot where heads are drawn as lines. */
function makeChipLine() {
  const line = makeSvgElement("line", { x1: 0, x2: 30, y1: 4, y2: 4 });
  return makeSvgElement("svg", { class: "chip-line", "aria-hidden": "true" }, [line]);
}

/** The choice between a linear colour scale and one by the square root, in which small weights can be seen.
 *  @param {(curve: string) => void} onChange */
export function makeCurveControl(onChange) {
  const options = [{ value: "linear", text: say("linear") }, { value: "root", text: say("root") }];
  return makeSegments(say("scale"), options, onChange);
}

/** The controls that are turned now and then, behind one word; `note(text)` says beside it what is not as usual.
 *  @param {string | Node} title @param {(string | Node)[]} children */
export function makeFold(title, children) {
  const note = makeElement("span", "fold-note");
  const summary = makeElement("summary", "fold-title", {}, [title, note]);
  const inside = makeElement("div", "fold-inside", {}, children);
  const element = makeElement("details", "fold", {}, [summary, inside]);
  return { element, note: (/** @type {string} */ text) => setText(note, text) };
}
