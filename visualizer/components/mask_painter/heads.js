/** @import { Axis, Header, Matrix, OverviewSource, Theme } from "../types.d.ts" */
/** @import { LiveHeads } from "./types.d.ts" */

import { usualCurve, weightScale } from "../marks/scale.js";
import { Arrivals } from "../shared/arrivals.js";
import { headTitle } from "../shared/controls.js";
import { makeElement, onceIn } from "../shared/dom.js";
import { Follower } from "../shared/follower.js";
import { headMatrix } from "../shared/head_matrix.js";
import { addressOfLayers, areFew, layersInTurn, withLayers } from "../shared/layers.js";
import { MaskPlanes } from "../shared/mask_planes.js";
import { leastWidth, Overview } from "../shared/overview.js";
import { textsOf } from "../shared/texts.js";
import { cellsText, sameCells } from "./cells.js";

const say = textsOf("mask_painter/heads");
/** @typedef {{ cells: Uint8Array, rows: number, columns: number }} Place what is painted */
/** @typedef {ReturnType<typeof withLayers> & { rows: Axis, columns: Axis }} Found */

const THUMBNAILS = { largest: 60, tallest: 150 };

let isOpen = false; // also where the page makes another element of it

/**
 * Small pictures of every head that a stroke can change: as they are, and while somebody paints as the model computes
 * them under what is painted so far.
 */
export class PaintedHeads {
  /** @type {Theme} */ theme;
  /** @type {MaskPlanes} */ masks;
  /** @type {string[]} */ blockedBy;
  nCells = 0;

  /**
   * taken(matrix, cells): the weights of the head looked at under some cells; drawn(): the small pictures are;
   * choose(layer, head): a person wants to look at another head.
   * @param {{ taken: (matrix: Matrix, cells: Uint8Array) => void, drawn: () => void, choose: (layer: number, head: number) => void }} act
   */
  constructor({ taken, drawn, choose }) {
    this.taken = taken;
    this.drawn = drawn;
    this.overview = new Overview(choose, THUMBNAILS);
    const summary = makeElement("summary", "", {}, [say("all")]);
    this.element = makeElement("details", "painted-heads", isOpen ? { open: "" } : {}, [summary, this.overview.element]);
    this.element.addEventListener("toggle", () => (isOpen = this.element.open));
    this.arrivals = new Arrivals(this.element);
    this.follower = new Follower((place) => this.ask(place));
    /** @type {Found | null} */ this.found = null;
    /** @type {string | null} */ this.atRest = null;
    /** @type {ArrayLike<number>} */ this.followed = [];
    /** @type {LiveHeads | null} */ this.live = null;
    this.drawSoon = onceIn(0, () => this.drawArrived());
  }

  destroy() {
    this.arrivals.cancel();
    this.drawSoon.cancel();
    this.overview.destroy();
  }

  /**
   * Take over what Python sent: `live`, null where no address has the numbers, the painting that it is about, null where
   * the person has painted on since, and how many cells there are.
   * @param {LiveHeads | null} live @param {Uint8Array | null} cells @param {number} nCells
   */
  receive(live, cells, nCells) {
    this.live = live;
    this.nCells = nCells;
    this.element.hidden = !live;
    if (!live) {
      this.follower.stop();
      this.arrivals.cancel();
      this.atRest = null;
    }
    if (!live || !cells || live.at_rest === this.atRest) return;
    this.follower.stop();
    this.drawSoon.cancel(); // what arrived of the stroke is older than what Python sent
    this.atRest = live.at_rest;
    this.followed = cells;
    /** @type {ReturnType<typeof withLayers> | null} */
    let found = null;
    this.arrivals.ask(this.inTurn(live).map((layers) => addressOfLayers(live.at_rest, layers)), (answer) => {
      found = withLayers(found, answer, live.names.length);
      this.take(found, answer, null);
    });
  }

  /** True if all heads of a layer have room side by side. @param {number} width */
  fitsIn(width) {
    return this.live !== null && leastWidth(this.live.names[0].length) <= width;
  }

  /** All layers at once where they are few numbers; else the one looked at, then the others. @param {LiveHeads} live */
  inTurn(live) {
    const layers = layersOf(live);
    return this.isSmall(live) ? [layers] : layersInTurn(live.layer, layers, live.names[0].length * this.nCells);
  }

  /** @param {LiveHeads} live */
  isSmall(live) {
    return areFew(layersOf(live).length * live.names[0].length * this.nCells);
  }

  /** Lay the small pictures out, and draw what is known of them. @param {Theme} theme @param {number} width */
  draw(theme, width) {
    this.theme = theme;
    const { live } = this;
    if (!live) return;
    const { first, layer, head, names } = live;
    this.overview.arrange({ layers: names.length, heads: names[0].length, first }, width);
    this.overview.mark(layer, head);
    if (isFitting(this.found, live)) this.overview.drawSoon(this.source(this.found, live), layer);
  }

  /** The pointer has painted these cells, {cells, rows, columns}. @param {Place} place */
  follow(place) {
    if (!this.live || sameCells(place.cells, this.followed)) return;
    this.followed = place.cells;
    this.atRest = null;
    this.follower.follow(place);
  }

  /** @param {Place} place */
  async ask(place) {
    const text = await cellsText(place);
    const { live } = this;
    if (!live) return;
    const { layer, mark, painting } = live;
    const address = painting.replace(mark, encodeURIComponent(text));
    const whole = addressOfLayers(address, this.isSmall(live) ? layersOf(live) : [layer]);
    await this.arrivals.follow(whole, (answer) => {
      this.take(withLayers(null, answer, live.names.length), answer, place);
    });
  }

  /** @param {ReturnType<typeof withLayers>} found @param {Header} answer @param {Place | null} place */
  take(found, answer, place) {
    this.found = { ...found, rows: answer.rows, columns: answer.columns };
    this.masks = MaskPlanes.of(answer.arrays.blocked && this.found.arrays.blocked, this.masks);
    this.blockedBy = answer.blocked_by;
    this.place = place;
    this.drawSoon(); // the next weights are asked for first
  }

  drawArrived() {
    const { place, live, found } = this;
    if (!live || !isFitting(found, live)) return;
    const { layer, head } = live;
    if (place && found.arrived.has(layer)) this.taken(this.matrix(found, layer, head), place.cells);
    this.overview.drawAtOnce(this.source(found, live), layer);
    this.drawn();
    this.element.classList.toggle("painted-heads-partly", found.arrived.size < layersOf(live).length);
  }

  /** @param {Found} found @param {LiveHeads} live @returns {OverviewSource} */
  source(found, live) {
    const { theme } = this;
    const curve = usualCurve(found.columns.labels.length);
    return {
      layers: live.names.length,
      heads: live.names[0].length,
      matrix: (layer, head) => this.matrix(found, layer, head),
      scale: (layer) => weightScale(theme, found.layer_max[layer], curve),
      name: (_, head) => headTitle(head, live.names[0][head]),
      drawn: (layer) => found.arrived.has(layer),
    };
  }

  /** The matrix of one head, of those that have arrived. @param {Found} found @param {number} layer @param {number} head */
  matrix(found, layer, head) {
    return headMatrix(found.arrays.weights, this.masks, found, this.blockedBy, layer, head);
  }
}

/** The layers that a stroke can change. @param {LiveHeads} live */
function layersOf({ names, first }) {
  return [...names.keys()].slice(first);
}

/** True if the numbers are those of the heads that are shown. @param {Found | null} found @param {LiveHeads} live @returns {found is Found} */
function isFitting(found, { names }) {
  const [layers, heads] = found?.arrays.weights.shape ?? [];
  return layers === names.length && heads === names[0].length;
}
