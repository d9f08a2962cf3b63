import { expectAhead, onForeseen } from "../shared/ahead.js";
import { unpack } from "../shared/payload.js";

const AFTER_THE_PICTURE = 1000; // milliseconds: nothing is foreseen before the first picture
// What stands beside a picture.
const SMALL = new Set(["token_strip", "glossary", "page_keys", "words", "stage_map", "path_card", "theme_links"]);

/** Has a worker fetch which numbers are drawn next: the server says so on a line, or the page foresees them. */
class Listener {
  constructor() {
    this.where = {};
    this.worker = null;
    this.expected = new Map(); // what to call with the bytes of an address
  }

  update(bytes) {
    const { script, line } = unpack(bytes);
    if (line === this.where.line) return;
    this.destroy();
    this.where = { line, page: document.baseURI };
    this.timer = setTimeout(() => this.start(script), AFTER_THE_PICTURE);
    this.tellWhenDrawn();
  }

  /** Tell the server that a picture is drawn: it then sends what stands around it. */
  tellWhenDrawn() {
    const where = new URL(this.where.line, this.where.page);
    const tell = (event) => {
      if (SMALL.has(/** @type {CustomEvent} */ (event).detail.component)) return;
      window.removeEventListener("headlight:painted", tell);
      requestAnimationFrame(() => navigator.sendBeacon(where));
    };
    window.addEventListener("headlight:painted", tell);
    this.endTelling = () => window.removeEventListener("headlight:painted", tell);
  }

  start(script) {
    const worker = new Worker(new URL(script, this.where.page), { type: "module" });
    worker.onmessage = ({ data: { address, bytes } }) => {
      if (bytes === undefined) expectAhead(address, address ? this.expect(address) : null);
      else this.settle(address, bytes);
    };
    worker.postMessage(this.where);
    this.worker = worker;
    this.endAsking = onForeseen((address) => worker.postMessage({ foreseen: address }));
  }

  expect(address) {
    return new Promise((resolve, reject) => this.expected.set(address, { resolve, reject }));
  }

  settle(address, bytes) {
    const { resolve, reject } = this.expected.get(address);
    this.expected.delete(address);
    if (bytes) resolve(unpack(new Uint8Array(bytes)));
    else reject(new Error(`no numbers of ${address}`));
  }

  destroy() {
    clearTimeout(this.timer);
    this.endTelling?.();
    this.endAsking?.();
    this.worker?.terminate();
    for (const { reject } of this.expected.values()) reject(new Error("nobody fetches them any more"));
    this.expected.clear();
  }
}

/** Ask for what is told on the line that the bytes name; nothing is drawn. */
export function render(_root, bytes) {
  const listener = new Listener();
  listener.update(bytes);
  return listener;
}
