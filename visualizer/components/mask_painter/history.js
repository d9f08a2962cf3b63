/** @import { Beside, PackedStep, Step } from "./types.d.ts" */

import { packBits, unpackBits } from "./cells.js";

const LONGEST_HISTORY = 100;

/**
 * The painting's past, and what was undone: cells, one bit each, and `beside` them the masks that were replaced with
 * them, null where none were.
 */
export class PaintHistory {
  constructor() {
    /** @type {PackedStep[]} */ this.past = [];
    /** @type {PackedStep[]} */ this.future = [];
  }

  get canUndo() {
    return this.past.length > 0;
  }

  get canRedo() {
    return this.future.length > 0;
  }

  /** Remember the cells as they were before a step, and the masks beside them; what had been undone is gone.
   *  @param {Uint8Array} cells @param {Beside | null} beside */
  record(cells, beside) {
    this.past.push({ bits: packBits(cells), beside });
    if (this.past.length > LONGEST_HISTORY) this.past.shift();
    this.future = [];
  }

  /** {cells, beside} before the last step, null when there is none. @param {Step} now */
  undo(now) {
    return exchange(this.past, this.future, now);
  }

  /** {cells, beside} before the last undo, null when there is none. @param {Step} now */
  redo(now) {
    return exchange(this.future, this.past, now);
  }
}

/** Take the last of `from`, and keep what is there now in `to` for the way back.
 *  @param {PackedStep[]} from @param {PackedStep[]} to @param {Step} now */
function exchange(from, to, { cells, beside }) {
  const step = from.pop();
  if (!step) return null;
  to.push({ bits: packBits(cells), beside: step.beside && beside });
  return { cells: unpackBits(step.bits, cells.length), beside: step.beside };
}
