/** The line on which pictures are asked for while a hand moves. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { askOnLine } from "../../visualizer/components/shared/line.js";

class FakeSocket {
  static OPEN = 1;
  static all = [];
  readyState = 0;
  sent = [];

  constructor(address) {
    this.address = String(address);
    FakeSocket.all.push(this);
  }

  send(text) {
    this.sent.push(text);
  }

  open() {
    this.readyState = FakeSocket.OPEN;
    this.onopen();
  }

  close() {
    this.readyState = 3;
    this.onclose();
  }
}

test("a line answers in turn; where it is not open, cut or refused, nobody waits for it", async () => {
  Object.assign(globalThis, { WebSocket: FakeSocket, document: { baseURI: "https://host/app/" } });
  assert.equal(await askOnLine("early"), null);
  const [first] = FakeSocket.all;
  assert.equal(first.address, "wss://host/app/followed");
  assert.equal(await askOnLine("still early"), null);
  first.open();
  const asked = [askOnLine("one"), askOnLine("two"), askOnLine("three")];
  assert.deepEqual(first.sent, ["one", "two", "three"]);
  first.onmessage({ data: "1" });
  first.onmessage({ data: "2" });
  first.close();
  assert.deepEqual(await Promise.all(asked), ["1", "2", null]);
  assert.equal(await askOnLine("again"), null); // opens another
  FakeSocket.all[1].close(); // refused
  assert.equal(await askOnLine("later"), null);
  assert.equal(FakeSocket.all.length, 2);
});
