import assert from "node:assert/strict";
import { test } from "node:test";

import { expectAhead, onArrivedAhead } from "../../visualizer/components/shared/arrivals.js";

test("what was asked for ahead is heard of when it arrives, unless something else was asked for meanwhile", async () => {
  const heard = [];
  const end = onArrivedAhead((address, numbers) => heard.push([address, numbers]));
  let arrive;
  expectAhead("early", new Promise((resolve) => (arrive = resolve)));
  expectAhead("late", Promise.resolve("its numbers"));
  arrive("other numbers");
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(heard, [["late", "its numbers"]]);
  end();
  expectAhead("later", Promise.resolve("unheard"));
  expectAhead("failed", Promise.reject(new Error("no numbers")));
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(heard.length, 1);
});
