/** Operations in their modules. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { around, treeOf, walkOf } from "../../visualizer/components/module_tree/tree.js";

const modules = ["", "h.0", "h.0.norm", "h.1.attn", "out"];
const operations = [[0, "add"], [1, "mul"], [2, "layer_norm"], [1, "add"], [3, "softmax"], [3, "matmul"], [4, "linear"]];
const shape = (node) => node.items.map((item) => (typeof item === "number" ? item : [item.name, ...shape(item)]));

test("operations stand in their modules in the order computed", () => {
  const tree = treeOf(modules, operations);
  assert.deepEqual(shape(tree), [0, ["h", ["0", 1, ["norm", 2], 3], ["1.attn", 4, 5]], ["out", 6]]);
  assert.equal(tree.count, 7);
  assert.equal(tree.items[1].count, 5);
});

test("the modules around an operation are those with a line of their own", () => {
  const tree = treeOf(modules, operations);
  assert.deepEqual(around(tree, 2), ["h", "h.0", "h.0.norm"]);
  assert.deepEqual(around(tree, 5), ["h", "h.1.attn"]);
  assert.deepEqual(around(tree, 0), []);
});

test("several operations that are one step stand where its last one was computed, and open", () => {
  const steps = [[1, "norm", "", "", [1, 2]], [3, "softmax", "", "", [4, 5]]];
  const tree = treeOf(modules, operations, steps);
  const [, h, out] = tree.items;
  assert.deepEqual(h.items[0].items, [{ step: 7, items: [1, 2], count: 2 }, 3]);
  assert.deepEqual(h.items[1].items, [{ step: 8, items: [4, 5], count: 2 }]);
  assert.deepEqual([tree.count, h.count, out.count], [7, 5, 1]);
  assert.deepEqual(walkOf(tree, new Set()), [0, 7, 3, 8, 6]);
  assert.deepEqual(walkOf(tree, new Set(["step 7"])), [0, 7, 1, 2, 3, 8, 6]);
  assert.deepEqual(around(tree, 7), ["h", "h.0"]);
  assert.deepEqual(around(tree, 2), ["h", "h.0", "step 7"]);
});

test("one goes through modules side by side in the order computed", () => {
  const sideBySide = [[1, "norm"], [3, "softmax"], [2, "norm"], [3, "matmul"]];
  const tree = treeOf(modules, sideBySide);
  assert.deepEqual(walkOf(tree, new Set()), [0, 1, 2, 3]);
});
