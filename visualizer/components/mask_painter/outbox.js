import { Events } from "../shared/events.js";

const PATIENCE = 5000; // milliseconds after which an event counts as heard, although no answer has come

/**
 * The events on their way to Python, numbered from 1.
 *
 * While Python is busy, Streamlit keeps only the newest event of a component. A newer painting may replace an older
 * one; any other event waits until Python has answered the one before it, so that none is lost.
 */
export class Outbox extends Events {
  constructor(host) {
    super(host);
    this.unanswered = null;
    this.waiting = [];
  }

  destroy() {
    clearTimeout(this.patience);
  }

  add(name, facts) {
    const event = { name, facts: { ...facts, seq: this.count() } };
    if (this.waiting.at(-1)?.name === "paint" && name === "paint") this.waiting.pop();
    this.waiting.push(event);
    this.deliver();
  }

  /** Python has answered all events up to this number. */
  receiveAnswer(seq) {
    this.areKnown(seq);
    if (seq >= this.unanswered?.facts.seq) this.unanswered = null;
    this.deliver();
  }

  deliver() {
    const [next] = this.waiting;
    const mayReplace = next?.name === "paint" && this.unanswered?.name === "paint";
    if (!next || (this.unanswered && !mayReplace)) return;
    this.unanswered = this.waiting.shift();
    this.host.send(next.name, next.facts);
    clearTimeout(this.patience);
    this.patience = setTimeout(() => this.receiveAnswer(next.facts.seq), PATIENCE);
  }
}
