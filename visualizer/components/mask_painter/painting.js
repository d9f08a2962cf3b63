import { must } from "../shared/must.js";
import { openCells, sameCells, withLine, withRectangle, withTouched } from "./cells.js";
import { PaintHistory } from "./history.js";

const NO_STROKE = "no stroke is under way";

/** What is painted: the cells, row by row, the stroke under way, and what can be undone. */
export class Painting {
  /** @type {Uint8Array} */
  cells;
  /** @type {PaintHistory} */
  history;
  /** @type {number} */
  columns;
  /** @type {number} */
  rows;

  constructor() {
    this.startAnew(0, 0, openCells(0));
  }

  /** Begin with these cells; nothing before them can be undone. */
  startAnew(rows, columns, cells) {
    this.rows = rows;
    this.columns = columns;
    this.cells = cells;
    this.stroke = null;
    this.history = new PaintHistory();
  }

  get hasStroke() {
    return this.stroke !== null;
  }

  /** Begin a stroke that gives all it touches this value. */
  begin(place, value, isRectangle) {
    const touched = openCells(this.cells.length);
    this.stroke = { before: this.cells, touched, first: place, last: place, value, isRectangle };
  }

  /** Lead the stroke on to a place. */
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
    if (isChanged) this.history.record(before);
    this.stroke = null;
    return { touched, value, isChanged };
  }

  /** Give up the stroke: the cells are as before. */
  giveUp() {
    this.cells = must(this.stroke, NO_STROKE).before;
    this.stroke = null;
  }

  /** Take over other cells, as one stroke that can be undone; returns whether any differs. */
  become(cells) {
    if (sameCells(cells, this.cells)) return false;
    this.history.record(this.cells);
    this.cells = cells;
    return true;
  }

  /** Paint what other masks block, now and in all that can be undone: without those masks it all looks as before. */
  takeIn(blocked) {
    this.history.blockToo(blocked);
    this.cells = this.cells.map((cell, i) => cell | blocked[i]);
  }

  /** Go one stroke back ("undo") or forward ("redo"); returns whether there was one. */
  step(direction) {
    const cells = this.history[direction](this.cells);
    if (cells) this.cells = cells;
    return cells !== null;
  }
}
