/**
 * The pen of a canvas that writes SVG: what the pictures use of `CanvasRenderingContext2D`, and no more. Text stays
 * text, cells become rectangles, a hatch becomes a pattern.
 */

/** @import { Pen } from "../types.d.ts" */

import { makeSvgElement } from "../shared/dom.js";
import { must } from "../shared/must.js";

/** The most pixels of an image that become rectangles; of more it stays an image. */
export const MOST_CELLS = 4096;

/** @typedef {HTMLCanvasElement | OffscreenCanvas | ImageData} Image */
/** @typedef {{ id: string, element: SVGElement, setTransform: (matrix: DOMMatrix) => void }} Pattern */

/** @type {WeakMap<Image, (pen: any) => void>} */
const drawings = new WeakMap();

/**
 * Say how an image was drawn, so that a pen that writes SVG can draw it again.
 * @template {Image} Drawing
 * @param {Drawing} image @param {(pen: any) => void} draw
 */
export function drawnBy(image, draw) {
  drawings.set(image, draw);
  return image;
}

const fonts = new Map();

let nPatterns = 0;

const STATE = /** @type {const} */ ([
  ...["fillStyle", "strokeStyle", "lineWidth", "lineCap", "globalAlpha", "font", "textAlign", "textBaseline"],
  ...["matrix", "dash"],
]);

export class SvgPen {
  /** @type {any} */ fillStyle = "#000000";
  /** @type {any} */ strokeStyle = "#000000";
  lineWidth = 1;
  lineCap = "butt";
  globalAlpha = 1;
  font = "10px sans-serif";
  textAlign = "left";
  imageSmoothingEnabled = false; // images have the pixels that they have
  /** @type {CanvasTextBaseline} */ textBaseline = "alphabetic";
  matrix = new DOMMatrix();
  /** @type {number[]} */ dash = [];
  path = "";
  /** @type {object[]} */ stack = [];
  element = makeSvgElement("g");
  definitions = makeSvgElement("defs");
  /** @type {{ transform: string, element: SVGElement } | null} */ group = null;

  /** canvas: has the size of the drawing. textContext: gives what measures text in a font.
   *  @param {{ width: number, height: number }} canvas @param {(font: string) => Pen} textContext */
  constructor(canvas, textContext) {
    this.canvas = canvas;
    this.textContext = textContext;
  }

  save() {
    this.stack.push(Object.fromEntries(STATE.map((name) => [name, this[name]])));
  }

  restore() {
    Object.assign(this, this.stack.pop());
  }

  /** @param {...number} numbers */
  setTransform(...numbers) {
    this.matrix = new DOMMatrix(numbers);
  }

  /** @param {number} x @param {number} y */
  translate(x, y) {
    this.matrix = this.matrix.translate(x, y);
  }

  /** @param {number} radians */
  rotate(radians) {
    this.matrix = this.matrix.rotate((radians * 180) / Math.PI);
  }

  /** @param {number[]} dash */
  setLineDash(dash) {
    this.dash = dash;
  }

  /** Clear all of the canvas; a part of it is cleared only where something was drawn before.
   *  @param {number} _x @param {number} _y @param {number} width @param {number} height */
  clearRect(_x, _y, width, height) {
    if (width >= this.canvas.width && height >= this.canvas.height) this.empty();
  }

  empty() {
    this.element = makeSvgElement("g");
    this.definitions = makeSvgElement("defs");
    /** @type {{ transform: string, element: SVGElement } | null} */ this.group = null;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  fillRect(x, y, width, height) {
    if (width > 0 && height > 0) this.add("rect", { ...box(x, y, width, height), ...this.filled() });
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  strokeRect(x, y, width, height) {
    this.add("rect", { ...box(x, y, width, height), ...this.stroked() });
  }

  beginPath() {
    this.path = "";
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.path += `L${short(x)} ${short(y)}`;
  }

  /** @param {...number} numbers the two points that it bends towards, and where it ends */
  bezierCurveTo(...numbers) {
    this.path += `C${numbers.map(short).join(" ")}`;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  rect(x, y, width, height) {
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {number} radius */
  roundRect(x, y, width, height, radius) {
    const r = short(Math.min(radius, width / 2, height / 2));
    const [across, down] = [short(width - 2 * r), short(height - 2 * r)];
    /** @param {number} dx @param {number} dy */
    const corner = (dx, dy) => `a${r} ${r} 0 0 1 ${dx} ${dy}`;
    this.path += `M${short(x + r)} ${short(y)}h${across}${corner(r, r)}v${down}${corner(-r, r)}`;
    this.path += `h${-across}${corner(-r, -r)}v${-down}${corner(r, -r)}z`;
  }

  /** A whole circle: the pictures draw no other arc. @param {number} x @param {number} y @param {number} radius */
  arc(x, y, radius) {
    const [r, across] = [short(radius), short(2 * radius)];
    this.path += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${across} 0a${r} ${r} 0 1 0 ${-across} 0z`;
  }

  fill() {
    if (this.path) this.add("path", { d: this.path, ...this.filled() });
  }

  stroke() {
    if (this.path) this.add("path", { d: this.path, ...this.stroked() });
  }

  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    const anchor = { center: "middle", right: "end", end: "end" }[this.textAlign] ?? "start";
    const place = { x: short(x), y: short(y + this.aboveBaseline()), "text-anchor": anchor };
    this.add("text", { ...place, ...fontOf(this.font), ...this.filled() }, [legalText(text)]);
  }

  /** @param {string} text */
  measureText(text) {
    return this.textContext(this.font).measureText(text);
  }

  /** The way from the place of a text down to its baseline. */
  aboveBaseline() {
    const context = this.textContext(this.font);
    /** @param {CanvasTextBaseline} baseline */
    const ascentOf = (baseline) => {
      context.textBaseline = baseline;
      return context.measureText("x").fontBoundingBoxAscent;
    };
    const ascent = ascentOf(this.textBaseline);
    return ascentOf("alphabetic") - ascent;
  }

  /** @param {number} width @param {number} height */
  createImageData(width, height) {
    return new ImageData(width, height);
  }

  /** @param {ImageData} image */
  putImageData(image) {
    const { width, height } = image;
    this.empty();
    if (width * height <= MOST_CELLS) {
      this.addCells(image);
      this.element.setAttribute("shape-rendering", "crispEdges");
    } else this.addImage(image, 0, 0, width, height);
  }

  /** An image at a place, in a size; or a part of it: the place and the size there come before those here.
   *  @param {Image} image @param {...number} places */
  drawImage(image, ...places) {
    if (places.length === 8) return this.drawPart(/** @type {OffscreenCanvas} */ (image), places);
    const [x, y, width = image.width, height = image.height] = places;
    const draw = drawings.get(image);
    if (!draw) return this.addImage(image, x, y, width, height);
    this.save();
    this.translate(x, y);
    draw(this);
    this.restore();
  }

  /** @param {OffscreenCanvas} image @param {number[]} places */
  drawPart(image, [left, top, width, height, x, y, wide, high]) {
    const part = must(image.getContext("2d"), "no context").getImageData(left, top, width, height);
    this.save();
    this.matrix = this.matrix.translate(x, y).scale(wide / width, high / height);
    if (image.width * image.height <= MOST_CELLS) this.addCells(part);
    else this.addImage(part, 0, 0, width, height);
    this.restore();
  }

  /** A pattern of a tile; null where a tile has no size, as of a canvas. @param {OffscreenCanvas} tile */
  createPattern(tile) {
    const id = `hatch-${(nPatterns += 1)}`;
    const size = { width: tile.width, height: tile.height };
    const pen = new SvgPen(size, this.textContext);
    pen.drawImage(tile, 0, 0);
    const attributes = { id, patternUnits: "userSpaceOnUse", ...size };
    const element = makeSvgElement("pattern", attributes, [pen.definitions, pen.element]);
    return { id, element, setTransform: (/** @type {DOMMatrix} */ matrix) => element.setAttribute("patternTransform", String(matrix)) };
  }

  /** One rectangle for each run of equal pixels in a row. @param {ImageData} image */
  addCells({ data, width, height }) {
    const pixels = new Uint32Array(data.buffer);
    for (let row = 0; row < height; row++) {
      for (let column = 0, end = 0; column < width; column = end) {
        const i = row * width + column;
        for (end = column + 1; end < width && pixels[row * width + end] === pixels[i]; ) end += 1;
        const [red, green, blue, alpha] = data.subarray(4 * i, 4 * i + 4);
        if (!alpha) continue;
        this.fillStyle = `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
        this.fillRect(column, row, end - column, 1);
      }
    }
  }

  /** @param {Image} image @param {number} x @param {number} y @param {number} width @param {number} height */
  addImage(image, x, y, width, height) {
    const href = asCanvas(image).toDataURL();
    this.add("image", { x, y, width, height, href, preserveAspectRatio: "none", style: "image-rendering: pixelated" });
  }

  /** @param {string} tag @param {Record<string, any>} attributes @param {(string | Node)[]} [children] */
  add(tag, attributes, children = []) {
    const { a, b, c, d, e, f } = this.matrix;
    const transform = this.matrix.isIdentity ? "" : `matrix(${[a, b, c, d, e, f].map(short).join(" ")})`;
    if (this.group?.transform !== transform) {
      const element = makeSvgElement("g", transform ? { transform } : {});
      this.group = { transform, element };
      this.element.append(element);
    }
    this.group.element.append(makeSvgElement(tag, attributes, children));
  }

  filled() {
    return { fill: this.paint(this.fillStyle), ...this.opacity("fill-opacity") };
  }

  stroked() {
    const dash = this.dash.length ? { "stroke-dasharray": this.dash.join(" ") } : {};
    const cap = this.lineCap === "butt" ? {} : { "stroke-linecap": this.lineCap };
    const stroke = { stroke: this.paint(this.strokeStyle), "stroke-width": short(this.lineWidth) };
    return { fill: "none", ...stroke, ...dash, ...cap, ...this.opacity("stroke-opacity") };
  }

  /** @param {string} name */
  opacity(name) {
    return this.globalAlpha < 1 ? { [name]: short(this.globalAlpha) } : {};
  }

  /** A colour as it is, a pattern by its name. @param {string | Pattern} style */
  paint(style) {
    if (typeof style === "string") return style;
    this.definitions.append(style.element);
    return `url(#${style.id})`;
  }
}

/** What an SVG of a page may say: no control character, and no half of a character. @param {string} text */
export function legalText(text) {
  // eslint-disable-next-line no-control-regex
  return text.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}

/** A canvas' font in the attributes of SVG. @param {string} font */
function fontOf(font) {
  if (!fonts.has(font)) {
    const { style } = document.createElement("span");
    style.font = font;
    const weight = style.fontWeight === "normal" ? {} : { "font-weight": style.fontWeight };
    fonts.set(font, { "font-family": style.fontFamily, "font-size": style.fontSize, ...weight });
  }
  return fonts.get(font);
}

/** @param {Image} image */
function asCanvas(image) {
  if (image instanceof HTMLCanvasElement) return image;
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  const context = canvas.getContext("2d");
  if (image instanceof ImageData) context?.putImageData(image, 0, 0);
  else context?.drawImage(image, 0, 0);
  return canvas;
}

/** @param {number} x @param {number} y @param {number} width @param {number} height */
function box(x, y, width, height) {
  return { x: short(x), y: short(y), width: short(width), height: short(height) };
}

/** A number with the digits that can be seen. @param {number} number */
export function short(number) {
  return Math.round(number * 1000) / 1000;
}
