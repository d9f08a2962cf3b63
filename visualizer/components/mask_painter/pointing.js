import { litPosition, marksOfCell } from "../shared/grid.js";

/** The cell pointed at: its note, its lights, and what the rest of the page hears of it. */
export class CellPointer {
  /** `linesOf(place)` gives the lines of the note; a place with row or column -1 is a whole column or row. */
  constructor(painter, surface, linesOf) {
    this.painter = painter;
    this.surface = surface;
    this.linesOf = linesOf;
    this.axes = null;
    this.pointed = null;
  }

  /** Point at a place; `at` is where the note stands. */
  point(place, at) {
    this.pointed = { place, at };
    this.surface.light(place.row, place.column);
    this.refresh();
    const { rowAxis, columnAxis } = this.axes;
    const marks = marksOfCell(rowAxis, columnAxis, place.row, place.column).filter(({ index }) => index >= 0);
    this.painter.publish(marks);
  }

  /** Write the note anew: what it says may have changed. */
  refresh() {
    if (!this.pointed) return;
    const { place, at } = this.pointed;
    this.painter.tooltip.show(this.linesOf(place), at.x, at.y);
  }

  leave() {
    if (!this.pointed) return;
    this.forget();
    this.surface.light(-1, -1);
    this.painter.publish([]);
  }

  forget() {
    this.pointed = null;
    this.painter.tooltip.hide();
  }

  onHover(marks) {
    this.forget();
    const { rowAxis, columnAxis } = this.axes;
    this.surface.light(litPosition(rowAxis, "query", marks), litPosition(columnAxis, "key", marks));
  }
}
