/** Numbers that are asked for before the header of their picture is there. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { drawAhead, expectAhead, foresee, isOvertaken, onForeseen, takeAhead } from "../../visualizer/components/shared/ahead.js";
import { Foreseen, withParameter } from "../../visualizer/components/shared/foreseen.js";

/** A picture that notes what it draws. */
function pictureAt(address) {
  const drawn = [];
  return { drawn, data: { address }, addressesOf: (header) => [`${header.address}&layers=0`], drawAhead: (...given) => drawn.push(given) };
}

test("what was asked for ahead is drawn when it arrives, unless something else was asked for meanwhile", async () => {
  const picture = pictureAt("pictures/heads?seed=1");
  const end = drawAhead(picture);
  let arrive;
  expectAhead("early", new Promise((resolve) => (arrive = resolve)));
  expectAhead("late", Promise.resolve("its numbers"));
  arrive("other numbers");
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(picture.drawn, [["late", "its numbers"]]);
  assert.equal(takeAhead("early"), null);
  assert.equal(await takeAhead("late"), "its numbers");
  assert.equal(takeAhead("late"), null);
  end();
  expectAhead("later", Promise.resolve("unheard"));
  expectAhead("failed", Promise.reject(new Error("no numbers")));
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(picture.drawn.length, 1);
});

test("a changed control asks for the same picture of another value, and later ones build on it", () => {
  const end = drawAhead(pictureAt("pictures/heads?n_heads=2&seed=1&text=a+b"));
  foresee("seed", "2"); // nobody asks
  const asked = [];
  const endAsking = onForeseen((address) => asked.push(address));
  foresee("seed", "1");
  assert.deepEqual(asked, []);
  foresee("seed", null);
  foresee("mask", "causal,padding");
  foresee("mask", "causal,padding");
  assert.deepEqual(asked, [
    "pictures/heads?n_heads=2&text=a+b&layers=0",
    "pictures/heads?mask=causal%2Cpadding&n_heads=2&text=a+b&layers=0",
  ]);
  assert.ok(!isOvertaken("pictures/step?n_heads=2"), "another picture says nothing of this one");
  assert.ok(isOvertaken("pictures/heads?n_heads=2&text=a+b"));
  assert.ok(!isOvertaken("pictures/heads?mask=causal%2Cpadding&n_heads=2&text=a+b"));
  foresee("seed", "3");
  assert.equal(asked.at(-1), "pictures/heads?n_heads=2&seed=3&text=a+b&layers=0", "the server has come to it");
  endAsking();
  end();
});

test("the server may come to something else, or to nothing", (context) => {
  const foreseen = new Foreseen();
  foreseen.add("a");
  foreseen.add("b");
  assert.ok(foreseen.isOvertaken("a"));
  assert.ok(!foreseen.isOvertaken("c"));
  assert.ok(!foreseen.isOvertaken("a"), "what came after it counts no more");
  context.mock.method(performance, "now", () => 0);
  foreseen.add("a");
  foreseen.add("b");
  context.mock.method(performance, "now", () => 10_000);
  assert.equal(foreseen.last, undefined);
  assert.ok(!foreseen.isOvertaken("a"));
});

test("an address has the parameters in order and the texts as Python writes them", () => {
  const address = "pictures/heads?mask=causal&text=the+cat";
  const odd = "a b~c*d!e'f(g)h é,+&=%/?";
  const written = "a+b~c%2Ad%21e%27f%28g%29h+%C3%A9%2C%2B%26%3D%25%2F%3F";
  assert.equal(withParameter(address, "text", odd), `pictures/heads?mask=causal&text=${written}`);
  assert.equal(withParameter(address, "mask_a", "none"), "pictures/heads?mask=causal&mask_a=none&text=the+cat");
  assert.equal(withParameter(address, "mask", null), "pictures/heads?text=the+cat");
});
