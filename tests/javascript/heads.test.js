import assert from "node:assert/strict";
import { test } from "node:test";

import { headsAfter } from "../../visualizer/components/shared/controls.js";
import { shortName } from "../../visualizer/components/shared/overview.js";

const after = (shown, head, besideOthers) => [...headsAfter(new Set(shown), head, 4, besideOthers)].sort();

test("a head is shown alone, and all are when it was alone already", () => {
  assert.deepEqual(after([0, 1, 2, 3], 2, false), [2]);
  assert.deepEqual(after([1, 2], 2, false), [2]);
  assert.deepEqual(after([2], 2, false), [0, 1, 2, 3]);
});

test("beside the others a head comes and goes, and never none is left", () => {
  assert.deepEqual(after([0, 1, 2, 3], 2, true), [0, 1, 3]);
  assert.deepEqual(after([0], 2, true), [0, 2]);
  assert.deepEqual(after([2], 2, true), [0, 1, 2, 3]);
});

test("a row of the overview has the number of its layer", () => {
  assert.equal(shortName("layer 11"), "L11");
  assert.equal(shortName("model.layers.17.self_attn"), "L17");
  assert.equal(shortName("h2o.encoder.block.3.layer.1"), "L3.1");
  assert.equal(shortName("attention"), "");
});
