import { Arrivals } from "../shared/arrivals.js";
import { headTitle } from "../shared/controls.js";
import { makeElement, onceIn } from "../shared/dom.js";
import { Follower } from "../shared/follower.js";
import { headMatrix } from "../shared/head_matrix.js";
import { addressOfLayers, areFew, layersInTurn, withLayers } from "../shared/layers.js";
import { MaskPlanes } from "../shared/mask_planes.js";
import { usualCurve, weightScale } from "../shared/matrix_pixels.js";
import { leastWidth, Overview } from "../shared/overview.js";
import { textsOf } from "../shared/texts.js";
import { cellsText, sameCells } from "./cells.js";

const say = textsOf("mask_painter/heads");
const THUMBNAILS = { largest: 60, tallest: 150 };

let isOpen = false; // also where the page makes another element of it

/**
 * Small pictures of every head that a stroke can change: as they are, and while somebody paints as the model computes
 * them under what is painted so far.
 */
export class PaintedHeads {
  /**
   * taken(matrix, cells): the weights of the head looked at under some cells; drawn(): the small pictures are;
   * choose(layer, head): a person wants to look at another head.
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
    this.found = null;
    this.atRest = null;
    this.followed = [];
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
    this.arrivals.ask(this.inTurn().map((layers) => addressOfLayers(live.at_rest, layers)), (answer) => {
      found = withLayers(found, answer, this.live.names.length);
      this.take(found, answer, null);
    });
  }

  /** True if all heads of a layer have room side by side. */
  fitsIn(width) {
    return Boolean(this.live) && leastWidth(this.live.names[0].length) <= width;
  }

  get layers() {
    return this.live.names.map((_, layer) => layer).slice(this.live.first);
  }

  /** All layers at once where they are few numbers; else the one looked at, then the others. */
  inTurn() {
    const { layer, names } = this.live;
    return this.isSmall() ? [this.layers] : layersInTurn(layer, this.layers, names[0].length * this.nCells);
  }

  isSmall() {
    return areFew(this.layers.length * this.live.names[0].length * this.nCells);
  }

  /** Lay the small pictures out, and draw what is known of them. */
  draw(theme, width) {
    this.theme = theme;
    if (!this.live) return;
    const { first, layer, head, names } = this.live;
    this.overview.arrange({ layers: names.length, heads: names[0].length, first }, width);
    this.overview.mark(layer, head);
    if (this.isFitting()) this.overview.drawSoon(this.source(), layer);
  }

  /** The pointer has painted these cells, {cells, rows, columns}. */
  follow(place) {
    if (!this.live || sameCells(place.cells, this.followed)) return;
    this.followed = place.cells;
    this.atRest = null;
    this.follower.follow(place);
  }

  async ask(place) {
    const text = await cellsText(place);
    if (!this.live) return;
    const { layer, mark, painting } = this.live;
    const address = painting.replace(mark, encodeURIComponent(text));
    const whole = addressOfLayers(address, this.isSmall() ? this.layers : [layer]);
    await this.arrivals.follow(whole, (answer) => {
      this.take(withLayers(null, answer, this.live.names.length), answer, place);
    });
  }

  take(found, answer, place) {
    this.found = { ...found, rows: answer.rows, columns: answer.columns };
    this.masks = MaskPlanes.of(answer.arrays.blocked && this.found.arrays.blocked, this.masks);
    this.blockedBy = answer.blocked_by;
    this.place = place;
    this.drawSoon(); // the next weights are asked for first
  }

  drawArrived() {
    const { place, live } = this;
    if (!live || !this.isFitting()) return;
    const { layer, head } = live;
    if (place) this.taken(this.matrix(layer, head), place.cells);
    this.overview.drawAtOnce(this.source(), layer);
    this.drawn();
    this.element.classList.toggle("painted-heads-partly", this.found.arrived.size < this.layers.length);
  }

  /** True if the numbers are those of the heads that are shown. */
  isFitting() {
    const [layers, heads] = this.found?.arrays.weights.shape ?? [];
    return layers === this.live.names.length && heads === this.live.names[0].length;
  }

  source() {
    const { found, live, theme } = this;
    const curve = usualCurve(found.columns.labels.length);
    return {
      matrix: (layer, head) => this.matrix(layer, head),
      scale: (layer) => weightScale(theme, found.layer_max[layer], curve),
      name: (_, head) => headTitle(head, live.names[0][head]),
      drawn: (layer) => found.arrived.has(layer),
    };
  }

  /** The matrix of one head, of those that have arrived. */
  matrix(layer, head) {
    return headMatrix(this.found.arrays.weights, this.masks, this.found, this.blockedBy, layer, head);
  }
}
