/** @import { Header, PackedArray } from "../types.d.ts" */

import { must } from "./must.js";
import { sizeOf } from "./payload.js";

const AT_ONCE = 2 ** 18; // the most numbers that are fetched for every move of the pointer
const IN_ONE_ANSWER = 2 ** 25; // the most that the server makes ready at a time, if one layer has no more

/**
 * The numbers of a picture of all layers, of which some arrive before others: `numbers` with those of one more answer.
 *
 * numbers: what arrived earlier; null before anything did. answer: as `pictures/heads` gives it, with the layers that
 * it is of in `layers`, and in `shared` the arrays that are the same for all layers. nLayers: how many there are.
 * @param {Header | null} numbers @param {Header} answer @param {number} nLayers
 */
export function withLayers(numbers, answer, nLayers) {
  const largest = numbers?.layer_max ?? new Array(nLayers).fill(1);
  /** @type {number[]} */
  const layers = answer.layers;
  layers.forEach((layer, i) => (largest[layer] = answer.layer_max[i]));
  const arrays = Object.entries(answer.arrays).map(([name, array]) => [
    name,
    answer.shared.includes(name) ? array : placed(numbers?.arrays[name], array, layers, nLayers),
  ]);
  const arrived = new Set([...(numbers?.arrived ?? []), ...layers]);
  return { arrays: Object.fromEntries(arrays), layer_max: largest, arrived, isWhole: arrived.size === nLayers };
}

/** The array of all layers with those of an answer in their places: in `byLayer`, since nothing is copied.
 *  @param {PackedArray | undefined} before @param {PackedArray} array @param {number[]} layers
 *  @param {number} nLayers */
function placed(before, array, layers, nLayers) {
  if (layers.length === nLayers) return array;
  const [, ...shape] = array.shape;
  const byLayer = new Map(before?.byLayer);
  layers.forEach((layer, i) => byLayer.set(layer, partOf(array, i)));
  return { ...array, data: null, byLayer, shape: [nLayers, ...shape] };
}

/** @param {PackedArray} array @param {number} i */
function partOf(array, i) {
  const [, ...shape] = array.shape;
  const size = sizeOf(shape);
  return { ...array, data: array.data.subarray(i * size, (i + 1) * size), shape: [1, ...shape] };
}

/**
 * One layer out of an array of shape (layers, ...), or out of one whose layers have arrived one after the other.
 * @param {PackedArray} array @param {number} layer
 * @returns {PackedArray}
 */
export function layerOf(array, layer) {
  return array.byLayer ? must(array.byLayer.get(layer), `layer ${layer} has not arrived`) : partOf(array, layer);
}

/** The requests for some layers of so many numbers each: the one shown first, the others after it.
 *  @param {number} shown @param {number[]} layers @param {number} nNumbers */
export function layersInTurn(shown, layers, nNumbers) {
  const others = layers.filter((layer) => layer !== shown);
  const size = Math.max(1, Math.floor(IN_ONE_ANSWER / nNumbers));
  const inTurn = [[shown]];
  for (let first = 0; first < others.length; first += size) inTurn.push(others.slice(first, first + size));
  return inTurn;
}

/** True if the numbers of all layers are few enough to be fetched for every move of the pointer.
 *  @param {number} nNumbers */
export function areFew(nNumbers) {
  return nNumbers <= AT_ONCE;
}

/** The address of some layers of a picture. @param {string} address @param {number[]} layers */
export function addressOfLayers(address, layers) {
  return `${address}&layers=${layers.join(",")}`;
}
