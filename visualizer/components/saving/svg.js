/** What stands on the screen as one SVG: boxes, text as text, and what was drawn on canvases in lines and letters. */

/** @import { Box } from "../types.d.ts" */

import { svgPenOf, textContext } from "../marks/pen.js";
import { legalText, short } from "../marks/svg_pen.js";
import { makeSvgElement } from "../shared/dom.js";
import { pixelIn } from "../shared/theme.js";

const SVG = "http://www.w3.org/2000/svg";

/** Pixels of a millimetre. */
export const MILLIMETRE = 96 / 25.4;

/** Pixels around everything. */
export const MARGIN = 4;

const DRAWN = ["opacity", "fill-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-opacity", "paint-order"];
const OF_TEXT = ["font-family", "font-size", "font-weight", "font-style", "text-anchor", "dominant-baseline"];

/** What only serves to act on a picture: a figure has no room for it. */
export const CONTROLS = [
  ...["button:not(.matrix-title, .chips-of-lines > [aria-pressed=true])", "input", "select", "textarea", "label"],
  ...[".chips:not(.chips-of-lines)", ".fold", ".layer-control", ".segments", ".dials", ".overview", ".heads-bar", ".hint"],
  ...[".stage-map>.row", ".painted-heads"],
  ...["toolbar", "radiogroup", "tablist"].map((role) => `[role=${role}]`),
];

/** @typedef {{ right: number, bottom: number }} Size the room that is taken so far */

/** What waits to be pointed at, or stands there for who does not see. */
const NOT_SAVED = [".light", ".light-name", ".tooltip", ".visually-hidden", "[class^=arrivals-]", "[hidden]"].join();

/** The SVG of an element that is laid out, as one text.
 *  @param {HTMLElement} root @param {{ background: string, description: string }} about */
export function svgOf(root, { background, description }) {
  const origin = root.getBoundingClientRect();
  const group = makeSvgElement("g", { transform: `translate(${MARGIN - origin.left} ${MARGIN - origin.top})` });
  const size = { right: origin.right, bottom: origin.top };
  addElement(group, root, size);
  const width = Math.ceil(size.right - origin.left) + 2 * MARGIN;
  const height = Math.ceil(size.bottom - origin.top) + 2 * MARGIN;
  const svg = makeSvgElement("svg", {
    width: `${short(width / MILLIMETRE)}mm`,
    height: `${short(height / MILLIMETRE)}mm`,
    viewBox: `0 0 ${width} ${height}`,
  });
  svg.append(makeSvgElement("desc", {}, [legalText(description)]));
  svg.append(makeSvgElement("rect", { width, height, fill: background }), group);
  svg.setAttribute("xmlns", SVG);
  return { text: `${new XMLSerializer().serializeToString(svg)}\n`, width, height };
}

/** @param {SVGElement} parent @param {Element} element @param {Size} size */
function addElement(parent, element, size) {
  if (element.matches(NOT_SAVED)) return;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return;
  if (element instanceof SVGSVGElement) return addSvg(parent, element, box, size);
  const group = style.opacity === "1" ? parent : parent.appendChild(makeSvgElement("g", { opacity: style.opacity }));
  if (element instanceof HTMLCanvasElement) return addCanvas(group, element, box, size);
  if (box.width && box.height) addBox(group, style, box, size);
  for (const child of element.childNodes) {
    if (child instanceof Text) addText(group, child, style, size);
    else if (child instanceof Element) addElement(group, child, size);
  }
}

/** @param {Size} size @param {{ right: number, bottom: number }} box */
function grow(size, { right, bottom }) {
  size.right = Math.max(size.right, right);
  size.bottom = Math.max(size.bottom, bottom);
}

/** @param {Box} box */
function placeOf({ left, top, width, height }) {
  return { x: short(left), y: short(top), width: short(width), height: short(height) };
}

/** @param {SVGElement} parent @param {HTMLCanvasElement} canvas @param {DOMRect} box @param {Size} size */
function addCanvas(parent, canvas, box, size) {
  if (!box.width || !box.height) return;
  grow(size, box);
  const pen = svgPenOf(canvas);
  if (!pen) {
    parent.append(makeSvgElement("image", { ...placeOf(box), href: canvas.toDataURL(), preserveAspectRatio: "none" }));
    return;
  }
  const view = { viewBox: `0 0 ${canvas.width} ${canvas.height}`, preserveAspectRatio: "none", overflow: "visible" };
  parent.append(makeSvgElement("svg", { ...placeOf(box), ...view }, [pen.definitions, pen.element]));
}

/** A drawing that is SVG already, with the styles that its page gives it.
 *  @param {SVGElement} parent @param {SVGSVGElement} svg @param {DOMRect} box @param {Size} size */
function addSvg(parent, svg, box, size) {
  grow(size, box);
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    const names = element instanceof SVGTextContentElement ? [...DRAWN, ...OF_TEXT] : DRAWN;
    for (const name of names) element.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["fill", "stroke"]) setPaint(element, name, style.getPropertyValue(name));
    element.removeAttribute("class");
    element.removeAttribute("style");
  });
  for (const [name, value] of Object.entries(placeOf(box))) copy.setAttribute(name, String(value));
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${short(box.width)} ${short(box.height)}`);
  parent.append(copy);
}

/** The ground and the border of an element, where it has any.
 *  @param {SVGElement} parent @param {CSSStyleDeclaration} style @param {DOMRect} box @param {Size} size */
function addBox(parent, style, box, size) {
  const ring = /^(.*\)) 0px 0px 0px ([\d.]+)px$/.exec(style.boxShadow);
  const border = ring ? Number(ring[2]) : parseFloat(style.borderTopWidth);
  const color = ring ? ring[1] : style.borderTopColor;
  const hasBorder = border > 0 && (ring || style.borderTopStyle !== "none") && !isClear(color);
  const hasGround = !isClear(style.backgroundColor);
  if (!hasBorder && !hasGround) return;
  grow(size, box);
  const half = ring ? -border / 2 : hasBorder ? border / 2 : 0;
  const inner = { left: box.left + half, top: box.top + half, width: box.width - 2 * half, height: box.height - 2 * half };
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, box.width / 2, box.height / 2);
  const round = style.borderTopLeftRadius.endsWith("%") ? Math.min(box.width, box.height) / 2 : radius;
  const rect = makeSvgElement("rect", { ...placeOf(inner), rx: short(round), fill: "none" });
  if (hasGround) setPaint(rect, "fill", style.backgroundColor);
  if (hasBorder) {
    setPaint(rect, "stroke", color);
    rect.setAttribute("stroke-width", String(border));
  }
  parent.append(rect);
}

/** @param {string} color */
function isClear(color) {
  return pixelIn(color)[3] === 0;
}

/** Set a fill or a stroke from a colour of CSS, of which programs that draw SVG know few forms.
 *  @param {Element} element @param {string} name @param {string} color */
function setPaint(element, name, color) {
  if (color === "none" || color.startsWith("url(")) {
    element.setAttribute(name, color);
    return;
  }
  const [red, green, blue, alpha] = pixelIn(color);
  element.setAttribute(name, `rgb(${red}, ${green}, ${blue})`);
  if (alpha < 255) element.setAttribute(`${name}-opacity`, String(short(alpha / 255)));
}

/** A text, line by line as it was broken.
 *  @param {SVGElement} parent @param {Text} node @param {CSSStyleDeclaration} style @param {Size} size */
function addText(parent, node, style, size) {
  if (!node.data.trim()) return;
  const font = [style.fontStyle, style.fontWeight, style.fontSize, style.fontFamily].join(" ");
  const ascent = textContext(font).measureText("x").fontBoundingBoxAscent;
  const attributes = {
    "font-family": style.fontFamily,
    "font-size": style.fontSize,
    ...(style.fontWeight === "400" ? {} : { "font-weight": style.fontWeight }),
    ...(style.fontStyle === "normal" ? {} : { "font-style": style.fontStyle }),
  };
  for (const { text, box } of linesOf(node)) {
    if (!box.width) continue;
    grow(size, box);
    const place = { x: short(box.left), y: short(box.top + ascent) };
    const element = makeSvgElement("text", { ...place, ...attributes }, [legalText(text)]);
    setPaint(element, "fill", style.color);
    parent.append(element);
  }
}

/** The lines of a text node, each with its box. @param {Text} node */
function* linesOf(node) {
  const range = document.createRange();
  let [start, middle] = [0, Infinity];
  for (const { segment, index } of new Intl.Segmenter().segment(node.data)) {
    range.setStart(node, index);
    range.setEnd(node, index + segment.length);
    const box = range.getBoundingClientRect();
    if (!box.width) continue;
    if (box.top > middle) {
      yield lineFrom(node, range, start, index);
      start = index;
    }
    middle = (box.top + box.bottom) / 2;
  }
  yield lineFrom(node, range, start, node.data.length);
}

/** @param {Text} node @param {Range} range @param {number} start @param {number} end */
function lineFrom(node, range, start, end) {
  const text = node.data.slice(start, end);
  range.setStart(node, start + text.search(/\S|$/)); // it begins where its first letter stands
  range.setEnd(node, end);
  return { text: text.replace(/\s+/g, " ").trim(), box: range.getBoundingClientRect() };
}
