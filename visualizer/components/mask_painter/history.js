import { packBits, unpackBits } from "./cells.js";

const LONGEST_HISTORY = 100;

/** What was painted before and what was undone, one bit per cell. */
export class PaintHistory {
  constructor() {
    this.past = [];
    this.future = [];
  }

  get canUndo() {
    return this.past.length > 0;
  }

  get canRedo() {
    return this.future.length > 0;
  }

  /** Remember the cells as they were before a stroke; what had been undone is gone. */
  record(cells) {
    this.past.push(packBits(cells));
    if (this.past.length > LONGEST_HISTORY) this.past.shift();
    this.future = [];
  }

  /** Have all that can come back block these cells too. */
  blockToo(cells) {
    const bits = packBits(cells);
    for (const kept of [...this.past, ...this.future]) bits.forEach((byte, i) => (kept[i] |= byte));
  }

  /** The cells before the last stroke, null when there is none. */
  undo(cells) {
    return exchange(this.past, this.future, cells);
  }

  /** The cells before the last undo, null when there is none. */
  redo(cells) {
    return exchange(this.future, this.past, cells);
  }
}

/** Take the last of `from`, and keep the cells in `to` for the way back. */
function exchange(from, to, cells) {
  if (from.length === 0) return null;
  to.push(packBits(cells));
  return unpackBits(from.pop(), cells.length);
}
