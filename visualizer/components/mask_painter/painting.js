/** @import { Cell } from "../types.d.ts" */
/** @import { Beside } from "./types.d.ts" */

import { must } from "../shared/must.js";
import { openCells, sameCells, withLine, withRectangle, withTouched } from "./cells.js";
import { PaintHistory } from "./history.js";
import { namesOf } from "./reasons.js";

const NO_STROKE = "no stroke is under way";

/** @typedef {{ before: Uint8Array, touched: Uint8Array, first: Cell, last: Cell, value: number, isRectangle: boolean }} Stroke */

/**
 * The painting: the cells, row by row, the stroke under way, and what can be undone. `beside` are the other masks in
 * force: {masks, others, reasons}, where `masks` is how Python names them and the painting.
 */
export class Painting {
  rows = 0;
  columns = 0;
  /** @type {Uint8Array} */ cells = openCells(0);
  /** @type {Beside} */ beside = { masks: null, others: openCells(0), reasons: [] };
  isReplaced = false; // by masks that Python has not sent yet
  /** @type {Stroke | null} */ stroke = null;
  history = new PaintHistory();

  /** Begin with these cells; nothing before them can be undone.
   *  @param {number} rows @param {number} columns @param {Uint8Array} cells @param {Beside} beside */
  startAnew(rows, columns, cells, beside) {
    this.rows = rows;
    this.columns = columns;
    this.cells = cells;
    this.beside = beside;
    this.isReplaced = false;
    this.stroke = null;
    this.history = new PaintHistory();
  }

  get hasStroke() {
    return this.stroke !== null;
  }

  /** Begin a stroke that gives all it touches this value.
   *  @param {Cell} place @param {number} value @param {boolean} isRectangle */
  begin(place, value, isRectangle) {
    const touched = openCells(this.cells.length);
    this.stroke = { before: this.cells, touched, first: place, last: place, value, isRectangle };
  }

  /** Lead the stroke on to a place. @param {Cell} place */
  drag(place) {
    const { columns } = this;
    const stroke = must(this.stroke, NO_STROKE);
    stroke.touched = stroke.isRectangle
      ? withRectangle(openCells(this.cells.length), columns, stroke.first, place, 1)
      : withLine(stroke.touched, columns, stroke.last, place, 1);
    stroke.last = place;
    this.cells = withTouched(stroke.before, stroke.touched, stroke.value);
  }

  /** End the stroke; returns what it touched, its value, and whether it changed a cell. */
  end() {
    const { before, touched, value } = must(this.stroke, NO_STROKE);
    const isChanged = !sameCells(before, this.cells);
    if (isChanged) this.record(before);
    this.stroke = null;
    return { touched, value, isChanged };
  }

  /** Give up the stroke: the cells are as before. */
  giveUp() {
    this.cells = must(this.stroke, NO_STROKE).before;
    this.stroke = null;
  }

  /** Take over other cells, as one stroke that can be undone; returns whether any differs.
   *  @param {Uint8Array} cells */
  become(cells) {
    if (sameCells(cells, this.cells)) return false;
    this.record(this.cells);
    this.cells = cells;
    return true;
  }

  /** Take over what Python sent: other cells are one step, which brings back the masks beside them if they changed.
   *  @param {Uint8Array} cells @param {Beside} beside */
  receive(cells, beside) {
    const isStep = !this.isReplaced && !sameCells(cells, this.cells);
    if (isStep) this.record(this.cells, namesOf(beside.reasons) === namesOf(this.beside.reasons) ? null : this.beside);
    Object.assign(this, { cells, beside, isReplaced: false });
  }

  /** Paint what the other masks block, as one step, until Python sends what takes the place of all masks.
   *  @param {Beside} beside */
  replace(beside) {
    this.record(this.cells, this.beside);
    this.cells = this.cells.map((cell, i) => cell || (this.beside.others[i] ? 1 : 0));
    Object.assign(this, { beside, isReplaced: true });
  }

  /** @param {Uint8Array} cells @param {Beside | null} [beside] */
  record(cells, beside = null) {
    this.history.record(cells, beside);
    this.isReplaced = false;
  }

  /** Go one step back ("undo") or forward ("redo"); returns {cells, beside} of it, null where there was none.
   *  @param {"undo" | "redo"} direction */
  step(direction) {
    const step = this.history[direction](this);
    if (step) Object.assign(this, { cells: step.cells, beside: step.beside ?? this.beside });
    return step;
  }
}
