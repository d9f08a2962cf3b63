const ICON_SIZE = 12;
const PRESETS = [
  {
    text: "lower triangle",
    icon: "M0 0 12 12H0Z",
    cells: lowerTriangle,
    title: () => "each query keeps itself and the keys before it",
  },
  {
    text: "band",
    icon: "M0 0H4L12 8V12H8L0 4Z",
    cells: band,
    title: (size) => `each query keeps the keys at most ${bandReach(size)} away`,
  },
  {
    text: "block diagonal",
    icon: "M0 0H4V4H0ZM4 4H8V8H4ZM8 8H12V12H8Z",
    cells: blockDiagonal,
    title: (size) => `each query keeps the keys of its own block of ${blockSize(size)}`,
  },
];

/**
 * The buttons above the painting.
 * actions: {undo(), redo(), clear(), invert(), preset(makeCells)}.
 */
function makeToolbar(actions) {
  const undo = makeTool("Undo", "Ctrl+Z", actions.undo);
  const redo = makeTool("Redo", "Ctrl+Shift+Z or Ctrl+Y", actions.redo);
  const clear = makeTool("Clear", "open every cell", actions.clear);
  const invert = makeTool("Invert", "open what is blocked and block what is open", actions.invert);
  const presets = PRESETS.map(({ text, icon, cells }) => makePreset(text, icon, () => actions.preset(cells)));
  const label = makeElement("span", "tools-label", { "aria-hidden": "true" }, ["start from"]);
  const element = makeElement("div", "tools", {}, [
    makeGroup("history", [undo, redo]),
    makeGroup("everything", [clear, invert]),
    makeGroup("start from", [label, ...presets]),
  ]);
  return {
    element,
    /** Say which buttons would do something, and what the presets do for `size` tokens. */
    update({ canUndo, canRedo, canClear, size }) {
      enable(undo, canUndo);
      enable(redo, canRedo);
      enable(clear, canClear);
      presets.forEach((preset, index) => preset.setAttribute("title", PRESETS[index].title(size)));
    },
  };
}

function makeGroup(label, children) {
  return makeElement("div", "tools-group", { role: "group", "aria-label": label }, children);
}

function makeTool(text, title, action) {
  const button = makeElement("button", "tool", { type: "button", title }, [text]);
  button.addEventListener("click", () => button.getAttribute("aria-disabled") !== "true" && action());
  return button;
}

function makePreset(text, icon, action) {
  const picture = makeSvgElement("svg", {
    class: "tool-icon",
    viewBox: `0 0 ${ICON_SIZE} ${ICON_SIZE}`,
    "aria-hidden": "true",
  }, [makeSvgElement("path", { d: icon })]);
  const button = makeTool(text, "", action);
  button.prepend(picture);
  return button;
}

/** A button that would do nothing is marked so, but keeps the keyboard's focus: the next Ctrl+Z must arrive. */
function enable(button, enabled) {
  button.setAttribute("aria-disabled", String(!enabled));
}
