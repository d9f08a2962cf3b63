/** @import { OverviewSource } from "../types.d.ts" */

import { paintSquare } from "../marks/cells.js";
import { contextOf, sizedContext } from "../marks/pen.js";
import { clamp, makeElement, setBox } from "./dom.js";
import { Reading } from "./reading.js";
import { strongestKeys } from "./rows.js";
import { textsOf } from "./texts.js";
import { pixelRatioOf } from "./zoom.js";

const say = textsOf("shared/overview");
const THUMBNAIL_BUDGET = 6; // milliseconds of drawing between two chances for the browser to react
const SMALLEST_THUMBNAIL = 20;
const SMALLEST_OF_MANY = 14; // of more layers than fit at the size above
const GAP = 4; // between two, as in the style sheet
const NAMES = 26; // the width of the layers' names
const MOST_READ = 2 ** 18; // numbers that are put into words; of more, those of the layer looked at
const USUAL = { largest: 40, tallest: 290 };

/** The least width of an overview of so many heads, whose layers fit. @param {number} heads */
export function leastWidth(heads) {
  return NAMES + heads * (SMALLEST_THUMBNAIL + GAP);
}

/** The width of an overview of so many heads in more layers than fit. @param {number} heads */
export function widthOf(heads) {
  return NAMES + heads * (SMALLEST_OF_MANY + GAP);
}

/** @typedef {{ layer: number, head: number, option: HTMLElement, square: { left: number, top: number, size: number } }} Thumbnail */

/**
 * A small picture of every head of every layer, or of the last ones; a click selects the layer and the head. All are
 * drawn on one canvas below the buttons: the browser composes each canvas of a page by itself, in every frame.
 */
export class Overview {
  /** @type {OverviewSource} */ source;
  /** @type {string} */ arrangement;
  /** @type {{ width: number, height: number }} that all take, in device pixels */
  room;
  /** @type {{ image: ImageData, pixels: Uint32Array }} what is on the canvas */
  drawn;

  /**
   * `onSelect(layer, head)` is called when a person selects a thumbnail; `largest` is the most that one takes, and
   * `tallest` all of them together, unless they are as small as they can be.
   * @param {(layer: number, head: number) => void} onSelect
   */
  constructor(onSelect, { largest, tallest } = USUAL) {
    this.onSelect = onSelect;
    this.largest = largest;
    this.tallest = tallest;
    this.table = makeElement("div", "overview-table", { role: "listbox", "aria-label": say("heads") });
    this.canvas = makeElement("canvas", "overview-pictures", { "aria-hidden": "true" });
    this.reading = new Reading();
    this.element = makeElement("div", "overview", {}, [this.table, this.reading.element]);
    /** @type {Thumbnail[]} */ this.thumbnails = [];
    /** @type {Thumbnail[]} */ this.waiting = [];
    this.table.addEventListener("click", (event) => this.onClick(event));
    this.table.addEventListener("keydown", (event) => this.onKey(event));
  }

  destroy() {
    clearTimeout(this.timer);
    this.reading.forget();
  }

  /** Show thumbnails. It is done in slices, the layer shown first, so that nothing waits for them.
   *  @param {OverviewSource} source @param {number} layer @param {number} head @param {number} width */
  show(source, layer, head, width) {
    this.arrange(source, width);
    this.mark(layer, head);
    this.drawSoon(source, layer);
  }

  /** @param {OverviewSource} source @param {number} layer */
  drawSoon(source, layer) {
    this.begin(source, layer);
    this.timer = setTimeout(() => this.drawSome(), 0);
  }

  /** Draw thumbnails that are arranged already, as many of them at once as there is time for.
   *  @param {OverviewSource} source @param {number} layer */
  drawAtOnce(source, layer) {
    this.begin(source, layer);
    this.drawSome();
  }

  /** @param {OverviewSource} source @param {number} layer */
  begin(source, layer) {
    clearTimeout(this.timer);
    this.source = source;
    const drawn = source.drawn ?? (() => true);
    this.waiting = this.thumbnails
      .filter((one) => drawn(one.layer))
      .sort((a, b) => Math.abs(a.layer - layer) - Math.abs(b.layer - layer));
    const drawnNow = [...this.waiting].sort((a, b) => a.layer - b.layer || a.head - b.head);
    this.reading.writeSoon(say("reading"), () => this.inWords(drawnNow, layer));
  }

  /** One text for each small picture: which key each query looks at most.
   *  @param {Thumbnail[]} thumbnails @param {number} layer */
  inWords(thumbnails, layer) {
    const { matrix } = this.source;
    const first = thumbnails.length ? matrix(thumbnails[0].layer, thumbnails[0].head).values.length : 0;
    const read = thumbnails.length * first > MOST_READ ? thumbnails.filter((one) => one.layer === layer) : thumbnails;
    return read.map((one) => `${this.nameOf(one)}: ${strongestKeys(matrix(one.layer, one.head))}`);
  }

  /** @param {{ layer: number, head: number }} place */
  nameOf({ layer, head }) {
    return `${this.source.layerName?.(layer) ?? say("layer", { layer })}, ${this.source.name(layer, head)}`;
  }

  /** Make room for the thumbnails of some heads in the layers from `first` on.
   *  @param {Pick<OverviewSource, "layers" | "heads" | "first" | "layerName">} source @param {number} width */
  arrange({ layers, heads, first = 0, layerName = (layer) => say("layer", { layer }) }, width) {
    const room = Math.min((width - NAMES) / heads, this.tallest / (layers - first));
    const smallest = this.tallest < (layers - first) * (SMALLEST_THUMBNAIL + GAP) ? SMALLEST_OF_MANY : SMALLEST_THUMBNAIL;
    const size = clamp(Math.floor(room) - GAP, smallest, this.largest);
    this.table.style.gridTemplateColumns = `auto repeat(${heads}, ${size}px)`;
    const names = Array.from({ length: layers - first }, (_, i) => shortName(layerName(first + i)));
    const arrangement = `${first} ${heads} ${names.join(" ")}`;
    if (arrangement !== this.arrangement) this.makeThumbnails(first, names, heads);
    this.arrangement = arrangement;
    this.makeRoom(size, heads, layers - first);
  }

  /** @param {number} first @param {string[]} names @param {number} heads */
  makeThumbnails(first, names, heads) {
    this.thumbnails = [];
    /** @param {string} text */
    const nameOf = (text) => makeElement("span", "overview-name", { "aria-hidden": "true" }, [text]);
    const columns = Array.from({ length: heads }, (_, head) => nameOf(`h${head}`));
    this.table.replaceChildren(this.canvas, nameOf(""), ...columns);
    names.forEach((name, i) => {
      this.table.append(nameOf(name));
      for (let head = 0; head < heads; head++) this.table.append(this.makeThumbnail(first + i, head));
    });
  }

  /** @param {number} layer @param {number} head */
  makeThumbnail(layer, head) {
    const option = makeElement("div", "thumbnail", { role: "option" });
    this.thumbnails.push({ layer, head, option, square: { left: 0, top: 0, size: 0 } });
    return option;
  }

  /** Have a canvas below so many thumbnails, and say where on it each is, in device pixels.
   *  @param {number} size @param {number} columns @param {number} rows */
  makeRoom(size, columns, rows) {
    const ratio = pixelRatioOf(this.element);
    /** @param {number} index */
    const edge = (index) => Math.round(index * (size + GAP) * ratio);
    this.thumbnails.forEach((one, index) => {
      const [left, top] = [edge(index % columns), edge(Math.floor(index / columns))];
      one.square = { left, top, size: Math.round(size * ratio) };
    });
    this.room = { width: edge(columns), height: edge(rows) };
    setBox(this.canvas, null, null, columns * (size + GAP), rows * (size + GAP));
  }

  drawSome() {
    const start = performance.now();
    this.takeRoom();
    while (this.waiting.length && performance.now() - start < THUMBNAIL_BUDGET) this.waiting.splice(0, 1).forEach((one) => this.draw(one));
    contextOf(this.canvas).putImageData(this.drawn.image, 0, 0);
    if (this.waiting.length) this.timer = setTimeout(() => this.drawSome(), 0);
  }

  /** Give the canvas its size, which empties it. */
  takeRoom() {
    const { width, height } = this.room;
    if (this.drawn?.image.width === width && this.drawn.image.height === height) return;
    const image = sizedContext(this.canvas, width, height).createImageData(width, height);
    this.drawn = { image, pixels: new Uint32Array(image.data.buffer) };
  }

  /** @param {Thumbnail} thumbnail */
  draw({ layer, head, option, square }) {
    const label = this.nameOf({ layer, head });
    if (option.title !== label) {
      option.setAttribute("aria-label", label);
      option.title = label;
    }
    const { image, pixels } = this.drawn;
    paintSquare(pixels, image.width, square, this.source.matrix(layer, head), this.source.scale(layer));
  }

  /** Outline the layer shown and its head. @param {number} layer @param {number} head */
  mark(layer, head) {
    for (const one of this.thumbnails) {
      one.option.classList.toggle("thumbnail-layer", one.layer === layer);
      const current = one.layer === layer && one.head === head;
      one.option.setAttribute("aria-selected", String(current));
      one.option.tabIndex = current ? 0 : -1;
    }
  }

  /** @param {Event} event */
  onClick(event) {
    const found = this.thumbnails.find(({ option }) => event.composedPath().includes(option));
    if (found) this.onSelect(found.layer, found.head);
  }

  /** The arrow keys move through the thumbnails as through a table. @param {KeyboardEvent} event */
  onKey(event) {
    /** @type {Record<string, number[]>} */
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const from = this.thumbnails.find(({ option }) => option === event.target);
    if (!from || !steps[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    const [down, right] = steps[event.key];
    const to = this.thumbnails.find((one) => one.layer === from.layer + down && one.head === from.head + right);
    if (!to) return;
    this.onSelect(to.layer, to.head);
    to.option.focus();
  }
}

/** The label beside the row of a layer: its number, of "model.layers.17.self_attn" too; nothing where it has none.
 *  @param {string} layerName */
export function shortName(layerName) {
  const numbers = layerName.split(/[. ]/).filter((part) => /^\d+$/.test(part));
  return numbers.length ? `L${numbers.join(".")}` : "";
}
