/** @import { Numbers, PackedArray, Plane } from "../types.d.ts" */

import { layerOf } from "./layers.js";

/** The blocked cells of each head of each layer. One plane may serve every layer, every head, or both. */
export class MaskPlanes {
  /** `array` has shape (layers or 1, heads or 1, rows, columns); null where nothing is masked.
   *  @param {PackedArray | null | undefined} array */
  constructor(array) {
    this.array = array ?? null;
    /** @type {Map<number, Plane>} */ this.planes = new Map();
  }

  /** The planes of an array; those of before where nothing in it is other, with all that is kept of them.
   *  @param {PackedArray | null | undefined} array @param {MaskPlanes | undefined} before */
  static of(array, before) {
    const [now, then] = [array, before?.array];
    if (before && now && now === then) return before;
    const canBeSame = now?.data && then?.data && String(now.shape) === String(then.shape);
    return before && canBeSame && isSame(now.data, then.data) ? before : new MaskPlanes(array);
  }

  /** {blocked, emptyRows} of one head; the same object each time, so that what is drawn of it can be kept.
   *  @param {number} layer @param {number} head */
  at(layer, head) {
    if (!this.array) return OPEN_PLANE;
    const [layers, heads] = this.array.shape;
    const [ofLayer, ofHead] = [layers > 1 ? layer : 0, heads > 1 ? head : 0];
    const index = ofLayer * heads + ofHead;
    const plane = this.planes.get(index) ?? cut(this.array, ofLayer, ofHead);
    this.planes.set(index, plane);
    return plane;
  }

  /** True if any cell of a layer is blocked in any head. @param {number} layer @param {number} heads */
  anyIn(layer, heads) {
    return Array.from({ length: heads }, (_, head) => head).some((head) => this.at(layer, head).blocked?.some(Boolean));
  }
}

/** @param {PackedArray} array @param {number} layer @param {number} head @returns {Plane} */
function cut(array, layer, head) {
  const [, , rows, columns] = array.shape;
  const blocked = layerOf(array, layer).data.subarray(head * rows * columns, (head + 1) * rows * columns);
  return { blocked: /** @type {Uint8Array} */ (blocked), emptyRows: rowsWithoutKey(blocked, rows, columns) };
}

/** True if two arrays of one length hold the same: a loop, since a function for each of so many takes ten times as long.
 *  @param {Numbers} one @param {Numbers} other */
function isSame(one, other) {
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
}

/** @type {Plane} */
const OPEN_PLANE = { blocked: null, emptyRows: null };

/**
 * One flag per row: whether all its keys are blocked; null when that is true of none.
 * @param {Numbers | null} blocked @param {number} rows @param {number} columns
 * @returns {Uint8Array | null}
 */
export function rowsWithoutKey(blocked, rows, columns) {
  if (!blocked) return null;
  const flags = new Uint8Array(rows);
  for (let row = 0; row < rows; row++) {
    flags[row] = blocked.subarray(row * columns, (row + 1) * columns).every(Boolean) ? 1 : 0;
  }
  return flags.some(Boolean) ? flags : null;
}
