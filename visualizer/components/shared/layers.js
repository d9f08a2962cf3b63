/**
 * The numbers of a picture of all layers, of which some arrive before others: `numbers` with those of one more answer.
 *
 * numbers: what arrived earlier; null before anything did. answer: as `pictures/heads` gives it, with the layers that
 * it is of in `layers`. nLayers: how many there are in all.
 */
export function withLayers(numbers, answer, nLayers) {
  const { weights, blocked } = answer.arrays;
  const largest = numbers?.layer_max ?? new Array(nLayers).fill(1);
  answer.layers.forEach((layer, i) => (largest[layer] = answer.layer_max[i]));
  const masks = answer.masks_are_shared ? blocked : blocked && placed(numbers?.arrays.blocked, blocked, answer, nLayers);
  return {
    arrays: { weights: placed(numbers?.arrays.weights, weights, answer, nLayers), ...(masks && { blocked: masks }) },
    layer_max: largest,
    arrived: new Set([...(numbers?.arrived ?? []), ...answer.layers]),
  };
}

/** The array of all layers with those of an answer in their places. */
function placed(before, array, { layers }, nLayers) {
  if (layers.length === nLayers) return array;
  const [, ...shape] = array.shape;
  const size = shape.reduce((product, count) => product * count, 1);
  const data = before?.data ?? new array.data.constructor(nLayers * size);
  layers.forEach((layer, i) => data.set(array.data.subarray(i * size, (i + 1) * size), layer * size));
  return { ...array, data, shape: [nLayers, ...shape] };
}

/** What to ask for: the layer shown first, the others after it. */
export function layersInTurn(shown, nLayers) {
  const others = Array.from({ length: nLayers }, (_, layer) => layer).filter((layer) => layer !== shown);
  return others.length ? [[shown], others] : [[shown]];
}
