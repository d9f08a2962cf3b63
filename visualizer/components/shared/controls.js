import { clamp, makeElement, makeSvgElement, setText } from "./dom.js";
import { headColor, headDashes } from "./theme.js";

/** A slider from 0 in whole steps; `onChange(value)` is called for what a person does. */
export function makeSlider(className, label, onChange) {
  const slider = makeElement("input", className, { type: "range", min: "0", step: "1", "aria-label": label });
  slider.addEventListener("input", () => onChange(Number(slider.value)));
  // The page steps through the model with the arrow keys; on a slider they move the slider.
  slider.addEventListener("keydown", (event) => event.stopPropagation());
  return slider;
}

/** A slider with steppers for the layer shown. `onChange(layer)` is called for what a person does, never for `set`. */
export function makeLayerControl(onChange) {
  const slider = makeSlider("layer-slider", "layer", (layer) => change(layer));
  const back = makeElement("button", "layer-step", { type: "button", "aria-label": "previous layer" }, ["‹"]);
  const forward = makeElement("button", "layer-step", { type: "button", "aria-label": "next layer" }, ["›"]);
  const text = makeElement("output", "layer-text");
  const element = makeElement("div", "layer-control", {}, [text, back, slider, forward]);
  let layers = 1;
  const set = (layer, count, name = "") => {
    layers = count;
    slider.max = String(count - 1);
    slider.value = String(layer);
    slider.setAttribute("aria-valuetext", name || `layer ${layer} of ${count}`);
    back.disabled = layer === 0;
    forward.disabled = layer === count - 1;
    setText(text, name || (count > 1 ? `Layer ${layer}` : "Layer 0, the only one"));
    slider.hidden = back.hidden = forward.hidden = count === 1;
  };
  const change = (layer) => onChange(clamp(layer, 0, layers - 1));
  back.addEventListener("click", () => change(Number(slider.value) - 1));
  forward.addEventListener("click", () => change(Number(slider.value) + 1));
  return { element, set };
}

/** A choice between a few texts, of which one is pressed. `onChange(value)` is called when a person chooses. */
export function makeSegments(label, options, onChange) {
  const buttons = options.map(({ value, text }) => {
    const button = makeElement("button", "segment", { type: "button", "data-value": value }, [text]);
    button.addEventListener("click", () => onChange(value));
    return button;
  });
  const element = makeElement("div", "segments", { role: "group", "aria-label": label }, buttons);
  const set = (value) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === value));
  };
  return { element, set };
}

/**
 * One chip for each head: click toggles it, a double click shows it alone, and once more shows all, as does hiding
 * the last.
 * `onChange(shown)` receives the Set of heads shown.
 */
export function makeHeadChips(onChange) {
  const element = makeElement("div", "chips", { role: "group", "aria-label": "heads shown" });
  let shown = new Set();
  const mark = () => {
    for (const chip of element.children) chip.setAttribute("aria-pressed", String(shown.has(Number(chip.dataset.head))));
  };
  const change = (heads) => {
    shown = heads;
    mark();
    onChange(shown);
  };
  const toggle = (head) => {
    const heads = new Set(shown);
    if (!heads.delete(head)) heads.add(head);
    change(heads.size ? heads : all());
  };
  const all = () => new Set(Array.from({ length: element.children.length }, (_, head) => head));
  const solo = (head) => {
    const alone = shown.size === 1 && shown.has(head);
    change(alone ? all() : new Set([head]));
  };
  // A double click is two clicks first: what was shown before them decides whether it means "alone" or "all".
  let before = shown;
  element.addEventListener("click", (event) => {
    const chip = event.target.closest(".chip");
    if (!chip) return;
    if (event.detail < 2) before = shown;
    toggle(Number(chip.dataset.head));
  });
  element.addEventListener("dblclick", (event) => {
    const chip = event.target.closest(".chip");
    if (!chip) return;
    shown = before;
    solo(Number(chip.dataset.head));
  });
  element.addEventListener("keydown", (event) => {
    const chip = event.target.closest(".chip");
    if (chip && event.key === "Enter" && event.shiftKey) {
      event.preventDefault();
      solo(Number(chip.dataset.head));
    }
  });
  const set = (names, theme, heads) => {
    shown = heads;
    while (element.children.length > names.length) element.lastChild.remove();
    names.forEach((name, head) => {
      const chip = element.children[head] ?? element.appendChild(makeChip(head));
      chip.style.setProperty("--chip", headColor(theme, head));
      setDashes(chip.querySelector("line"), headDashes(theme, head));
      setText(chip.lastChild, name ? `${head} · ${name}` : `head ${head}`);
    });
    mark();
  };
  return { element, set, solo };
}

function makeChip(head) {
  const title = "click: show or hide · double click or Shift+Enter: show alone";
  return makeElement("button", "chip", { type: "button", "data-head": head, title }, [
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

function setDashes(line, dashes) {
  line.setAttribute("stroke-dasharray", dashes.join(" "));
}

/** The choice between a linear colour scale and one by the square root, in which small weights can be seen. */
export function makeCurveControl(onChange) {
  const options = [{ value: "linear", text: "linear" }, { value: "root", text: "√ lifts small" }];
  return makeSegments("colour scale", options, onChange);
}
