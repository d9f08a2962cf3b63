/** Exact numbers of the cells that are pointed at. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressOfCell, ExactNumbers } from "../../visualizer/components/shared/exact.js";
import { cellText } from "../../visualizer/components/shared/payload.js";

/** Bytes as packing.py lays them out, with one number in each of some arrays. */
function packed(numbers) {
  const names = Object.keys(numbers);
  const arrays = Object.fromEntries(names.map((name, i) => [name, { dtype: "f4", shape: [1], offset: 8 * i }]));
  const json = JSON.stringify({ arrays });
  const text = json.padEnd(json.length + ((8 - ((4 + json.length) % 8)) % 8));
  const bytes = new Uint8Array(4 + text.length + 8 * names.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, text.length, true);
  bytes.set(new TextEncoder().encode(text), 4);
  names.forEach((name, i) => view.setFloat32(4 + text.length + 8 * i, numbers[name], true));
  return bytes;
}

const inSteps = () => ({ values: Float32Array.of(0.25, 0.5), dtype: "u1", exact: new Map() });
const settled = () => new Promise((done) => setTimeout(done, 40));

test("a cell has the address of its picture, with its place", () => {
  const address = addressOfCell("pictures/heads?text=a+b&score=score+%2F+2&precision=8&layers=0", 1, [2, 3, 4]);
  assert.equal(address, "pictures/heads?text=a+b&score=score+%2F+2&precision=exact&layers=1&at=2%2C3%2C4");
});

test("the exact number is fetched where the pointer rests, kept, and said unless something else is pointed at", async () => {
  const [asked, said] = [[], []];
  globalThis.document = { baseURI: "http://localhost/" };
  globalThis.fetch = async (url) => {
    asked.push(url.pathname);
    if (url.pathname === "/fails") throw new Error("no server");
    return new Response(packed({ a: 0.2345, b: 0.75 }));
  };
  const [a, b, numbers] = [inSteps(), inSteps(), new ExactNumbers()];
  const want = (address, index, matrices = { a, b }) =>
    numbers.want({ address, matrices, index, say: () => said.push(address) });
  want("passed", 0);
  want("cell", 1);
  assert.equal(cellText(a, 1), "≈0.50");
  await settled();
  assert.deepEqual([asked, said], [["/cell"], ["cell"]]);
  assert.deepEqual([cellText(a, 1), cellText(b, 1), cellText(a, 0)], ["0.2345", "0.7500", "≈0.25"]);

  want("known", 1);
  want("exact already", 0, { a: { values: a.values, dtype: "f4" } });
  want("", 0);
  await settled();
  want("fails", 0);
  await settled();
  assert.deepEqual([asked.splice(1), said], [["/fails"], ["cell"]]);
  assert.equal(cellText(a, 0), "≈0.25");

  let answer;
  globalThis.fetch = () => new Promise((done) => (answer = () => done(new Response(packed({ a: 0.1, b: 0.1 })))));
  want("left", 0);
  await settled();
  numbers.forget();
  answer();
  await settled();
  assert.deepEqual(said, ["cell"], "it is said no more");
  assert.equal(cellText(a, 0), "0.1000", "but it is known");
});
