/** @import { Host } from "../types.d.ts" */

const PAUSE = 400; // milliseconds without a change after which the host hears of the last one
let nBacks = 0; // how often the person went Back or Forward
globalThis.addEventListener?.("popstate", () => (nBacks += 1)); // the pure parts are tested without a page
const MOVING_KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]);

/**
 * The acts of a person in a picture, numbered one after the other, and what the host hears of it.
 *
 * A message of the host may be older than what was done since: it says up to which number it has heard. What was done
 * before the person went Back is not waited for: the page shows its address, whether the host has heard of it or not.
 */
export class Events {
  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.seq = 0;
    this.nBacks = nBacks; // as it was at the last act
  }

  /** Number what a person does. */
  count() {
    this.nBacks = nBacks;
    this.seq += 1;
    return this.seq;
  }

  /** Tell the host at once. @param {string} name @param {object} facts */
  send(name, facts) {
    this.host.send(name, { ...facts, seq: this.count() });
  }

  /** True if the host knew of all that was done here when it sent something with this number.
   *  @param {number} seq */
  areKnown(seq) {
    const known = this.isKnown(seq);
    if (known) this.seq = Math.max(this.seq, seq);
    return known;
  }

  /** The same of what it has sent already. @param {number} seq */
  isKnown(seq) {
    return !this.isAhead(seq) || this.nBacks !== nBacks;
  }

  /** True if more was done here, be it before the person went Back. @param {number} seq */
  isAhead(seq) {
    return seq < this.seq;
  }
}

/**
 * The same for a picture in which a person changes what is shown. It is drawn already: the host hears of it once they
 * pause, or before they turn to something else, on the page or outside of it.
 */
export class ShownEvents extends Events {
  /** `shown()` gives what is shown by then.
   *  @param {HTMLElement} root @param {Host} host @param {() => object} shown */
  constructor(root, host, shown) {
    super(host);
    this.shown = shown;
    this.isUntold = false;
    /** @param {Event & { key?: string }} event */
    const outside = (event) => event.composedPath().includes(root) || MOVING_KEYS.has(event.key ?? "") || this.tell();
    const leave = () => this.tell();
    document.addEventListener("pointerdown", outside, true);
    document.addEventListener("keydown", outside, true);
    window.addEventListener("blur", leave);
    this.destroy = () => {
      this.tell();
      document.removeEventListener("pointerdown", outside, true);
      document.removeEventListener("keydown", outside, true);
      window.removeEventListener("blur", leave);
    };
  }

  /** Something else is shown. */
  changed() {
    this.count();
    this.isUntold = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), PAUSE);
  }

  tell() {
    if (!this.isUntold) return;
    this.settle();
    this.host.keep("shown", { ...this.shown(), seq: this.seq });
  }

  /** Tell the host at once, and with it what is shown. @param {string} name @param {object} facts */
  send(name, facts) {
    this.settle();
    super.send(name, { ...this.shown(), ...facts });
  }

  settle() {
    this.isUntold = false;
    clearTimeout(this.timer);
  }
}
