import assert from "node:assert/strict";
import { test } from "node:test";

import { layoutWay } from "../../visualizer/components/token_way/layout.js";
import { chance, percent, shortNorm, strongest } from "../../visualizer/components/token_way/words.js";

test("no share is minus nothing, and no probability is nothing or everything unless it is", () => {
  assert.deepEqual([-0.004, -0.04, 0.312].map(percent), ["0%", "−4%", "31%"]);
  assert.deepEqual([0, 0.001, 0.92, 0.9999, 1].map(chance), ["0%", "less than 1%", "92%", "more than 99%", "100%"]);
});

test("a norm has as many digits as there is room for", () => {
  assert.deepEqual([0, 0.001, 0.5, 8.757, 9.996, 123.4].map(shortNorm), ["0.00", "<0.01", "0.50", "8.76", "10.0", "123"]);
});

test("of heads that write as much, none writes most", () => {
  const parts = (...norms) => [{ head: null, norm: 9 }, ...norms.map((norm, head) => ({ head, norm }))];
  assert.equal(strongest(parts(0.5, 0.6)).head, 1);
  assert.equal(strongest(parts(0.5001, 0.5)), null);
  assert.equal(strongest(parts(0.5)).head, 0);
  assert.equal(strongest(parts()), null);
});

test("a stream that predicts nothing has no room for what is likely", () => {
  const stops = [{ keys: null, layer: null }, { keys: {}, layer: 0 }, { keys: null, layer: 0 }];
  for (const width of [1280, 360]) {
    const [without, likely] = [false, true].map((hasLens) => layoutWay(stops, width, 400, 0, hasLens));
    assert.ok(without.height < likely.height, `${width} pixels wide`);
    assert.ok(without.end.y + without.heights.band < without.height, `${width} pixels wide`);
  }
});
