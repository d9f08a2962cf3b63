/** A slider with steppers for the layer shown. `onChange(layer)` is called for what a person does, never for `set`. */
function makeLayerControl(onChange) {
  const slider = makeElement("input", "layer-slider", { type: "range", min: "0", step: "1", "aria-label": "layer" });
  const back = makeElement("button", "layer-step", { type: "button", "aria-label": "previous layer" }, ["‹"]);
  const forward = makeElement("button", "layer-step", { type: "button", "aria-label": "next layer" }, ["›"]);
  const text = makeElement("output", "layer-text");
  const element = makeElement("div", "layer-control", {}, [text, back, slider, forward]);
  let layers = 1;
  const set = (layer, count) => {
    layers = count;
    slider.max = String(count - 1);
    slider.value = String(layer);
    slider.setAttribute("aria-valuetext", `layer ${layer} of ${count}`);
    back.disabled = layer === 0;
    forward.disabled = layer === count - 1;
    setText(text, count > 1 ? `Layer ${layer}` : "Layer 0, the only one");
    slider.hidden = back.hidden = forward.hidden = count === 1;
  };
  const change = (layer) => onChange(clamp(layer, 0, layers - 1));
  slider.addEventListener("input", () => change(Number(slider.value)));
  back.addEventListener("click", () => change(Number(slider.value) - 1));
  forward.addEventListener("click", () => change(Number(slider.value) + 1));
  // The page steps through the model with the arrow keys; on the slider they move the slider.
  slider.addEventListener("keydown", (event) => event.key.startsWith("Arrow") && event.stopPropagation());
  return { element, set };
}

/** A choice between a few texts, of which one is pressed. `onChange(value)` is called when a person chooses. */
function makeSegments(label, options, onChange) {
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
 * One chip for each head: click toggles it, a double click shows it alone, and once more shows all.
 * `onChange(shown)` receives the Set of heads shown.
 */
function makeHeadChips(onChange) {
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
    change(heads);
  };
  const count = () => element.children.length;
  const solo = (head) => {
    const alone = shown.size === 1 && shown.has(head);
    change(alone ? new Set(Array.from({ length: count() }, (_, one) => one)) : new Set([head]));
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
    makeElement("span", "chip-text"),
  ]);
}

/** "head 0 · previous token", or "head 0" for a head without a name. */
function headTitle(head, name) {
  return name ? `head ${head} · ${name}` : `head ${head}`;
}

const remembered = new Map();

/** What a person chose in the component with this key, kept while the page lives although the element may go. */
function rememberedChoices(key, defaults) {
  if (!remembered.has(key)) remembered.set(key, defaults);
  return remembered.get(key);
}

const MANY_TOKENS = 48; // from here on, single weights are so small that the root curve is the better start

const FIRST_THRESHOLD = 0.01; // lines of less weight are left out at first

/** What a person chose among heads and scales; when the number of heads changes, all are shown again. */
function headChoices(key, heads, columns) {
  const curve = columns >= MANY_TOKENS ? "root" : "linear";
  const choices = rememberedChoices(key, { mode: "grids", curve, threshold: FIRST_THRESHOLD, shown: null, heads: 0 });
  if (choices.heads !== heads) {
    choices.heads = heads;
    choices.shown = new Set(Array.from({ length: heads }, (_, head) => head));
  }
  return choices;
}

/** The choice between a linear colour scale and one by the square root, in which small weights can be seen. */
function makeCurveControl(onChange) {
  const options = [{ value: "linear", text: "linear" }, { value: "root", text: "√ lifts small" }];
  return makeSegments("colour scale", options, onChange);
}

/** Call `action` before a press of the pointer or a key outside of `root` reaches anything; returns how to stop. */
function onPressOutside(root, action) {
  const listener = (event) => event.composedPath().includes(root) || action();
  document.addEventListener("pointerdown", listener, true);
  document.addEventListener("keydown", listener, true);
  return () => {
    document.removeEventListener("pointerdown", listener, true);
    document.removeEventListener("keydown", listener, true);
  };
}
