/** @import { Axis, PackedArray } from "../types.d.ts" */

import { layerOf } from "./layers.js";
import { floats } from "./payload.js";

/**
 * The weights of one head out of an array of all, with what `masks` block of them, as `MatrixPanel` draws it.
 * @param {PackedArray} array of shape (layers, heads, rows, columns)
 * @param {import("./mask_planes.js").MaskPlanes} masks @param {{rows: Axis, columns: Axis}} axes
 * @param {string[]} blockedBy the names of the masks
 * @param {number} layer @param {number} head
 */
export function headMatrix(array, masks, axes, blockedBy, layer, head) {
  const [, , rows, columns] = array.shape;
  const part = layerOf(array, layer);
  const [start, end] = [head * rows * columns, (head + 1) * rows * columns];
  const isInSteps = array.dtype === "u1" || array.dtype === "u2";
  /** @type {Float32Array | undefined} */
  let values;
  return {
    get values() {
      return (values ??= floats(part, start, end));
    },
    steps: isInSteps ? { data: part.data.subarray(start, end), scale: part.scale, power: part.power } : null,
    exact: isInSteps ? new Map() : null,
    dtype: array.dtype,
    rows,
    columns,
    rowAxis: axes.rows,
    columnAxis: axes.columns,
    blockedBy,
    ...masks.at(layer, head),
  };
}
