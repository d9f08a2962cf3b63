/** Layers that arrive one after the other. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { layerOf, layersInTurn, withLayers } from "../../visualizer/components/shared/layers.js";

const array = (numbers, nLayers) => ({
  data: new Float32Array(numbers), dtype: "f4", shape: [nLayers, 1, 1, numbers.length / nLayers], scale: 1,
});

test("the layer shown is asked for first, and nothing twice", () => {
  assert.deepEqual(layersInTurn(1, [0, 1, 2], 64), [[1], [0, 2]]);
  assert.deepEqual(layersInTurn(0, [0], 64), [[0]]);
  assert.deepEqual(layersInTurn(1, [0, 1, 2, 3], 2 ** 24), [[1], [0, 2], [3]]);
  assert.deepEqual(layersInTurn(1, [0, 1, 2], 2 ** 26), [[1], [0], [2]]);
});

test("each layer comes to its place, in whatever order they arrive", () => {
  const first = { layers: [1], layer_max: [0.5], shared: [], arrays: { weights: array([3, 4], 1), blocked: array([1, 0], 1) } };
  const rest = { layers: [0, 2], layer_max: [1, 0.2], shared: [], arrays: { weights: array([1, 2, 5, 6], 2), blocked: array([0, 0, 1, 1], 2) } };
  const shown = withLayers(null, first, 3);
  assert.deepEqual([...shown.arrived], [1]);
  assert.deepEqual([...layerOf(shown.arrays.weights, 1).data], [3, 4]);
  const whole = withLayers(shown, rest, 3);
  const numbers = (array) => [0, 1, 2].flatMap((layer) => [...layerOf(array, layer).data]);
  assert.deepEqual(numbers(whole.arrays.weights), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(numbers(whole.arrays.blocked), [0, 0, 1, 0, 1, 1]);
  assert.deepEqual(numbers(array([1, 2, 3, 4, 5, 6], 3)), [1, 2, 3, 4, 5, 6], "layers that came at once");
  assert.deepEqual(whole.arrays.weights.shape, [3, 1, 1, 2]);
  assert.deepEqual(whole.layer_max, [1, 0.5, 0.2]);
  assert.deepEqual([...whole.arrived].sort(), [0, 1, 2]);
});

test("masks that all layers share are one plane, and none stay none", () => {
  const shared = { layers: [0], layer_max: [1], shared: ["blocked"], arrays: { weights: array([1, 2], 1), blocked: array([1, 0], 1) } };
  assert.deepEqual(withLayers(null, shared, 2).arrays.blocked.shape, [1, 1, 1, 2]);
  const open = { layers: [0], layer_max: [1], shared: ["blocked"], arrays: { weights: array([1, 2], 1) } };
  assert.equal(withLayers(null, open, 2).arrays.blocked, undefined);
});
