/** What a person does, numbered, and what the host hears of it. */

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { Events, ShownEvents } from "../../visualizer/components/shared/events.js";
import { headLooks } from "../../visualizer/components/shared/head_controls.js";
import { Outbox } from "../../visualizer/components/mask_painter/outbox.js";

let heard;
let host;

beforeEach(() => {
  heard = [];
  host = { send: (name, value) => heard.push([name, value]), keep: (name, value) => heard.push([`keep ${name}`, value]) };
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  globalThis.document = new EventTarget();
  globalThis.window = new EventTarget();
});

test("events have numbers, and what the host sends counts only when it knew of them all", () => {
  const events = new Events(host);
  assert.ok(events.areKnown(0));
  events.send("select", { row: 2 });
  assert.deepEqual(heard, [["select", { row: 2, seq: 1 }]]);
  assert.ok(!events.areKnown(0));
  assert.ok(events.areKnown(5), "a page opened anew begins behind its host");
  events.send("select", {});
  assert.equal(heard[1][1].seq, 6);
});

test("the host hears of what is shown once the person pauses", () => {
  const events = new ShownEvents(null, host, () => ({ layer: 3 }));
  events.changed();
  mock.timers.tick(300);
  events.changed();
  mock.timers.tick(300);
  assert.deepEqual(heard, []);
  mock.timers.tick(100);
  assert.deepEqual(heard, [["keep shown", { layer: 3, seq: 2 }]]);
});

test("or before they turn to something else, and not again after", () => {
  const events = new ShownEvents(null, host, () => ({ layer: 3 }));
  events.changed();
  window.dispatchEvent(new Event("blur"));
  assert.deepEqual(heard, [["keep shown", { layer: 3, seq: 1 }]]);
  mock.timers.tick(1000);
  events.destroy();
  events.changed();
  window.dispatchEvent(new Event("blur"));
  assert.equal(heard.length, 1);
});

test("or at its end, once", () => {
  const events = new ShownEvents(null, host, () => ({ layer: 3 }));
  events.changed();
  events.destroy();
  mock.timers.tick(1000);
  assert.deepEqual(heard, [["keep shown", { layer: 3, seq: 1 }]]);
  new ShownEvents(null, host, () => ({})).destroy();
  assert.equal(heard.length, 1, "nothing was changed");
});

test("an event at once says what is shown too", () => {
  const events = new ShownEvents(null, host, () => ({ layer: 3 }));
  events.changed();
  events.send("select", { query: 1 });
  mock.timers.tick(1000);
  assert.deepEqual(heard, [["select", { layer: 3, query: 1, seq: 2 }]]);
});

test("of paintings on their way the newest counts, and no other event is lost", () => {
  const outbox = new Outbox(host);
  outbox.add("paint", { blocked: "a" });
  outbox.add("paint", { blocked: "b" });
  outbox.add("mend", { finding: 0 });
  outbox.add("paint", { blocked: "c" });
  outbox.add("paint", { blocked: "d" });
  assert.deepEqual(heard.map(([name, { seq }]) => [name, seq]), [["paint", 1], ["paint", 2]]);
  outbox.receiveAnswer(1);
  assert.equal(heard.length, 2, "the second painting is not answered yet");
  outbox.receiveAnswer(2);
  assert.deepEqual(heard.at(-1), ["mend", { finding: 0, seq: 3 }]);
  mock.timers.tick(5000);
  assert.deepEqual(heard.at(-1), ["paint", { blocked: "d", seq: 5 }], "patience has an end");
});

test("looks name the heads that there are, and all where none is named", () => {
  const looks = { drawn: "grids", shown: [1, 9], curve: "auto" };
  assert.deepEqual([...headLooks(looks, 4, 10).shown], [1]);
  assert.deepEqual([...headLooks({ ...looks, shown: [9] }, 3, 10).shown], [0, 1, 2]);
  assert.deepEqual(["auto", "linear"].map((curve) => headLooks({ ...looks, curve }, 4, 100).curve), ["root", "linear"]);
});
