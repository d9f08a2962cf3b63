/** @import { Host } from "../types.d.ts" */

import { Events } from "../shared/events.js";

const PATIENCE = 5000; // milliseconds after which an event counts as heard, although no answer has come

/** @typedef {{ name: string, facts: { seq: number } }} Sent */

/**
 * The events on their way to Python, numbered from 1.
 *
 * While Python is busy, Streamlit keeps only the newest event of a component. A newer painting may replace an older
 * one; any other event waits until Python has answered the one before it, so that none is lost.
 */
export class Outbox extends Events {
  /** @param {Host} host */
  constructor(host) {
    super(host);
    /** @type {Sent | null} */ this.unanswered = null;
    /** @type {Sent[]} */ this.waiting = [];
  }

  destroy() {
    clearTimeout(this.patience);
  }

  /** @param {string} name @param {object} facts */
  add(name, facts) {
    const event = { name, facts: { ...facts, seq: this.count() } };
    if (this.waiting.at(-1)?.name === "paint" && name === "paint") this.waiting.pop();
    this.waiting.push(event);
    this.deliver();
  }

  /** Python has answered all events up to this number. @param {number} seq */
  receiveAnswer(seq) {
    this.areKnown(seq);
    if (this.unanswered && seq >= this.unanswered.facts.seq) this.unanswered = null;
    this.deliver();
  }

  deliver() {
    const [next] = this.waiting;
    const mayReplace = next?.name === "paint" && this.unanswered?.name === "paint";
    if (!next || (this.unanswered && !mayReplace)) return;
    this.unanswered = next;
    this.waiting.shift();
    this.host.send(next.name, next.facts);
    clearTimeout(this.patience);
    this.patience = setTimeout(() => this.receiveAnswer(next.facts.seq), PATIENCE);
  }
}
