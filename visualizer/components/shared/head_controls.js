/** @import { Axis, Host, LayersHeader, Looks, PackedArray, Theme } from "../types.d.ts" */
/** @import { MaskPlanes } from "./mask_planes.js" */

import { usualCurve, weightScale } from "../marks/scale.js";
import { headTitle, makeCurveControl, makeHeadChips, makeLayerControl } from "./controls.js";
import { clamp } from "./dom.js";
import { ShownEvents } from "./events.js";
import { headMatrix } from "./head_matrix.js";
import { textsOf } from "./texts.js";

const say = textsOf("shared/head_controls");

/**
 * The layer and head that are shown, in a picture of every head of every layer: the controls, and what the host
 * hears of them. A change is drawn at once.
 */
export class HeadControls {
  /** @type {{ layers: number, heads: number, rows: number, columns: number }} */ size;
  /** @type {Omit<Looks, "shown"> & { shown: Set<number> }} */ choices;
  /** @type {LayersHeader} */ data;
  /** @type {{ rows: Axis, columns: Axis }} */ axes;
  /** @type {number} */ layer;
  /** @type {number} */ head;
  /** @type {Looks} */ looks;

  /** draw(): the looks have changed; move(isOtherLayer): another layer or head is shown.
   *  @param {HTMLElement} root @param {Host} host
   *  @param {{ draw: () => void, move: (isOtherLayer: boolean) => void }} act */
  constructor(root, host, { draw, move }) {
    this.draw = draw;
    this.move = move;
    /** @type {Record<string, unknown>} */ this.turned = {}; // the dials that the host has not heard of, by name
    this.layers = makeLayerControl((layer) => this.choose(layer, this.head));
    this.chips = makeHeadChips((shown, alone) => {
      this.choose(this.layer, alone ?? this.head);
      this.change({ shown: shownHeads(shown, this.size.heads) });
    });
    this.curve = makeCurveControl((curve) => this.change({ curve }));
    this.events = new ShownEvents(root, host, () => this.written());
  }

  /** Take the host's layer, head and looks, unless the person has changed them since it heard of them; says whether.
   *  @param {LayersHeader} data @param {number[]} size */
  receive(data, [layers, heads, rows, columns]) {
    for (const axis of /** @type {const} */ (["rows", "columns"])) data[axis] = asBefore(this.data?.[axis], data[axis]);
    this.data = data;
    this.axes = { rows: data.rows, columns: data.columns };
    this.size = { layers, heads, rows, columns };
    const areKnown = this.events.areKnown(data.seq);
    if (areKnown) {
      this.layer = data.layer;
      this.head = data.head ?? 0;
      this.looks = data.looks;
      this.turned = {};
    }
    this.layer = clamp(this.layer, 0, layers - 1);
    this.head = clamp(this.head, 0, heads - 1);
    this.choices = headLooks(this.looks, heads, columns);
    return areKnown;
  }

  /** The layer that is shown once some data is taken. @param {{ seq: number, layer: number }} data @param {number} nLayers */
  layerAfter(data, nLayers) {
    return clamp(this.events.isKnown(data.seq) ? data.layer : this.layer, 0, nLayers - 1);
  }

  /** The name of a layer in a sentence. */
  layerName(layer = this.layer) {
    return this.data.layer_names?.[layer] ?? say("layer", { layer });
  }

  /** "head 0 · previous token" of a layer, or "head 0" for a head without a name. @param {number} head */
  title(head, layer = this.layer) {
    return headTitle(head, this.data.head_names[layer][head]);
  }

  /** A layer's heads have one scale: to 1, or to the largest weight where all weights are small.
   *  @param {Theme} theme */
  scale(theme, layer = this.layer) {
    return weightScale(theme, this.data.layer_max[layer], this.choices.curve);
  }

  /** The weights of one head out of an array of all, with what `masks` block of them, as `MatrixPanel` draws it.
   *  @param {PackedArray} array @param {MaskPlanes} masks @param {string[]} blockedBy @param {number} layer
   *  @param {number} head */
  matrix(array, masks, blockedBy, layer, head) {
    return headMatrix(array, masks, this.axes, blockedBy, layer, head);
  }

  /** Show what is chosen. @param {Theme} theme */
  show(theme) {
    this.layers.set(this.layer, this.size.layers, this.data.layer_names?.[this.layer]);
    this.chips.set(this.data.head_names[this.layer], theme, this.choices.shown);
    this.curve.set(this.choices.curve);
  }

  /** Draw heads in another way. @param {Partial<Looks>} looks */
  change(looks) {
    this.look(looks);
    this.events.changed();
    this.draw();
  }

  /** @param {Partial<Looks>} looks */
  look(looks) {
    this.looks = { ...this.looks, ...looks };
    this.choices = headLooks(this.looks, this.size.heads, this.size.columns);
  }

  /** Show a layer and mark a head: one that is hidden is shown as well, or alone in place of the one that was.
   *  @param {number} layer @param {number} head */
  choose(layer, head) {
    const { shown } = this.choices;
    const isOtherLayer = layer !== this.layer;
    const isHidden = !shown.has(head);
    if (!isOtherLayer && head === this.head && !isHidden) return;
    this.layer = layer;
    this.head = head;
    if (isHidden) this.look({ shown: shownHeads(new Set(shown.size === 1 ? [head] : [...shown, head]), this.size.heads) });
    this.events.changed();
    this.move(isOtherLayer || isHidden);
  }

  /** A dial rests at a value. @param {string} dial @param {any} value */
  rest(dial, value) {
    this.turned[dial] = value;
    this.events.changed();
  }

  /** A person selects a cell. @param {number} head @param {number} query @param {number} key */
  select(head, query, key) {
    this.head = head;
    this.events.send("select", { query, key });
  }

  /** The message to the host: layer and head, the looks as texts, and the dials that were turned. */
  written() {
    const looks = Object.entries(this.looks).map(([name, value]) => [name, String(value)]);
    return { ...Object.fromEntries(looks), layer: this.layer, head: this.head, turned: { ...this.turned } };
  }

  destroy() {
    this.events.destroy();
  }
}

/** An equal value stays the one that was there before, so that what is drawn of it can stay too.
 *  @param {any} before @param {any} now */
function asBefore(before, now) {
  return JSON.stringify(before) === JSON.stringify(now) ? before : now;
}

/** The looks of `Looks` in Python for so many heads and columns: `shown` as a Set, and the curve that is drawn.
 *  @param {Looks} looks @param {number} heads @param {number} columns */
export function headLooks(looks, heads, columns) {
  const found = looks.shown.filter((head) => head < heads);
  const shown = found.length ? found : Array.from({ length: heads }, (_, head) => head);
  return { ...looks, shown: new Set(shown), curve: looks.curve === "auto" ? usualCurve(columns) : looks.curve };
}

/** A Set of shown heads as Python has it: without any where all are shown.
 *  @param {Set<number>} shown @param {number} heads */
function shownHeads(shown, heads) {
  return shown.size === heads ? [] : [...shown].sort((a, b) => a - b);
}
