import { rowsWithoutKey } from "./grid.js";
import { layerOf } from "./layers.js";

/**
 * The blocked cells of each head of each layer. One plane may serve every layer, every head, or both.
 */
export class MaskPlanes {
  /** `array` has shape (layers or 1, heads or 1, rows, columns); null where nothing is masked. */
  constructor(array) {
    this.array = array ?? null;
    this.planes = new Map();
  }

  /** The planes of an array; those of before where nothing in it is other, with all that is kept of them. */
  static of(array, before) {
    const [now, then] = [array, before?.array];
    if (now && now === then) return before;
    const canBeSame = now?.data && then?.data && isSame(now.shape, then.shape);
    return canBeSame && isSame(now.data, then.data) ? before : new MaskPlanes(array);
  }

  /** {blocked, emptyRows} of one head; the same object each time, so that what is drawn of it can be kept. */
  at(layer, head) {
    if (!this.array) return OPEN_PLANE;
    const [layers, heads] = this.array.shape;
    const place = [layers > 1 ? layer : 0, heads > 1 ? head : 0];
    const index = place[0] * heads + place[1];
    if (!this.planes.has(index)) this.planes.set(index, this.cut(...place));
    return this.planes.get(index);
  }

  cut(layer, head) {
    const [, , rows, columns] = this.array.shape;
    const blocked = layerOf(this.array, layer).data.subarray(head * rows * columns, (head + 1) * rows * columns);
    return { blocked, emptyRows: rowsWithoutKey(blocked, rows, columns) };
  }

  /** True if any cell of a layer is blocked in any head. */
  anyIn(layer, heads) {
    return Array.from({ length: heads }, (_, head) => head).some((head) => this.at(layer, head).blocked?.some(Boolean));
  }
}

/** True if two arrays of one length hold the same: a loop, since a function for each of so many takes ten times as long. */
function isSame(one, other) {
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
}

const OPEN_PLANE = { blocked: null, emptyRows: null };
