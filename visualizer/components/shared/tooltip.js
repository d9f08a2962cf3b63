/** @import { Axis, Point, TooltipLine } from "../types.d.ts" */

import { countedAs, labelBeside } from "./axis.js";
import { makeElement, setChildren, tokenSpan } from "./dom.js";
import { textsOf } from "./texts.js";
import { zoomOf } from "./zoom.js";

const say = textsOf("shared/tooltip");

/** A note beside the pointer. It lives in the browser's top layer, so that nothing around the component clips it.
 *  @param {HTMLElement} root */
export function makeTooltip(root) {
  const element = makeElement("div", "tooltip", { popover: "manual", role: "tooltip" });
  let size = { width: 0, height: 0 };
  /** @type {{ x: number, y: number } | null} */
  let point = null;
  let zoom = 1;
  root.append(element);
  // To ask for its size when it is filled has the page laid out once more; here it is, whenever it is another one.
  const watch = new ResizeObserver(() => {
    size = { width: element.offsetWidth, height: element.offsetHeight };
    if (point) placeBeside(element, size, zoom, point);
  });
  watch.observe(element);
  return {
    element,
    /** Show lines (each an array of texts and nodes) beside the point `x`, `y` of the window.
     *  @param {TooltipLine[]} lines @param {number} x @param {number} y */
    show(lines, x, y) {
      setChildren(element, lines.map(({ className, parts }) => makeElement("div", className, {}, parts)));
      if (!element.matches(":popover-open")) {
        element.showPopover();
        zoom = zoomOf(element);
      }
      point = { x, y };
      placeBeside(element, size, zoom, point);
    },
    hide() {
      if (element.matches(":popover-open")) element.hidePopover();
    },
    destroy() {
      this.hide();
      watch.disconnect();
    },
  };
}

/** Put an element right below a point, or on the other side where the window ends.
 *  @param {HTMLElement} element @param {{ width: number, height: number }} size @param {number} zoom
 *  @param {Point} point */
function placeBeside(element, { width, height }, zoom, { x, y }) {
  const [wide, high] = [width * zoom, height * zoom];
  const left = x + 16 + wide > window.innerWidth - 8 ? x - 14 - wide : x + 16;
  const top = y + 18 + high > window.innerHeight - 8 ? y - 12 - high : y + 18;
  element.style.transform = `translate(${Math.max(4, left) / zoom}px, ${Math.max(4, top) / zoom}px)`;
}

/**
 * One line of a tooltip.
 * @param {string} className @param {...(string | Node)} parts
 * @returns {TooltipLine}
 */
export function tooltipLine(className, ...parts) {
  return { className, parts };
}

/** "query 3 ⟨cat⟩" as nodes, the name in its role's colour; a label equal to its index is not repeated.
 *  @param {Axis} axis @param {number} index */
export function positionParts(axis, index) {
  const label = labelBeside(axis, index);
  const name = makeElement("span", `position position-${axisRole(axis)}`, {}, [`${axis.name} ${countedAs(axis, index)}`]);
  return label === "" ? [name] : [name, " ", tokenSpan(label)];
}

/** The role whose colour an axis has: "query", "key" or "neutral". @param {Axis} axis */
export function axisRole(axis) {
  return axis.name === "query" || axis.name === "key" ? axis.name : "neutral";
}

/** "query 3 cat → key 5 sat" as nodes; two axes that are not both tokens are joined by a dot.
 *  @param {Axis} rowAxis @param {Axis} columnAxis @param {number} row @param {number} column */
export function cellPositionLine(rowAxis, columnAxis, row, column) {
  const joint = rowAxis.sequence && columnAxis.sequence ? " → " : " · ";
  return tooltipLine("tooltip-position", ...positionParts(rowAxis, row), joint, ...positionParts(columnAxis, column));
}

/** The names of the masks that block a cell, from its bits. @param {number} bits @param {string[]} names */
function blockedNames(bits, names) {
  return names.filter((_, bit) => bits & (1 << bit)).map(inWords);
}

/** The name of a mask as it stands in a sentence. @param {string} name */
function inWords(name) {
  if (name === "custom") return say("painted");
  return name === "own_mask" ? say("own") : name.replaceAll("_", " ");
}

/** "blocked by causal, sliding window". @param {number} bits @param {string[]} names */
export function blockedText(bits, names) {
  const found = blockedNames(bits, names);
  return found.length ? say("blocked_by", { masks: found.join(", ") }) : say("blocked");
}
