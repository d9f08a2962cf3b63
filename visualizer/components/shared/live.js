/** @import { Header, Host } from "../types.d.ts" */

import { Events } from "./events.js";
import { isInWindow } from "./near.js";
import { unpack } from "./payload.js";
import { Picture } from "./picture.js";

const OFTEN = 400; // milliseconds between two requests of a picture that can be seen
const SELDOM = 2000; // the same of one that cannot: the server stops the work that nobody asks for

/**
 * A picture of what moves by itself. Its header names the address that it asks again and again; an answer is all that
 * there is to draw. Once the address has no answer any more, the host is told, once.
 * @template {Header} [Data=Header]
 * @extends {Picture<Data>}
 */
export class LivePicture extends Picture {
  /** @param {HTMLElement} root @param {Host} host @param {string} name */
  constructor(root, host, name) {
    super(root, host, name);
    this.events = new Events(host);
    this.address = "";
    this.controller = new AbortController();
    this.endings.push(() => this.follow(""));
  }

  /** Take new bytes. What is in flight is older. @param {Uint8Array} bytes */
  update(bytes) {
    const header = unpack(bytes);
    this.take(header);
    if (header.address !== this.address) this.follow(header.address);
  }

  /** Ask an address from now on; none where it is empty. @param {string} address */
  follow(address) {
    this.controller.abort();
    this.controller = new AbortController();
    this.address = address;
    if (address) this.askOn(address, this.controller.signal);
  }

  /** @param {string} address @param {AbortSignal} signal */
  async askOn(address, signal) {
    for (let last = 0; !signal.aborted; await delay(OFTEN)) {
      if (!this.isInSight() && performance.now() - last < SELDOM) continue;
      last = performance.now();
      if (await this.hasEnded(address, signal)) return signal.aborted || this.events.send("ended", {});
    }
  }

  isInSight() {
    return !document.hidden && isInWindow(this.root);
  }

  /** Ask once and draw the answer; true if there will be no other. A server that does not answer is asked again.
   *  @param {string} address @param {AbortSignal} signal */
  async hasEnded(address, signal) {
    try {
      const response = await fetch(new URL(address, document.baseURI), { signal });
      if (response.status === 200) this.takeAnswer(new Uint8Array(await response.arrayBuffer()), signal);
      return response.status === 204 || response.status === 404;
    } catch {
      return false;
    }
  }

  /** @param {Uint8Array} bytes @param {AbortSignal} signal */
  takeAnswer(bytes, signal) {
    if (!signal.aborted) this.take(unpack(bytes));
  }
}

/** @param {number} milliseconds */
function delay(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}
