/** @import { Picture } from "../shared/picture.js" */
/** @import { MaskSurface } from "./surface.js" */
/** @import { Axis, Cell, Mark, Point, TooltipLine } from "../types.d.ts" */

import { litPosition, marksOfCell } from "../shared/axis.js";

/** The cell pointed at: its note, its lights, and what the rest of the page hears of it. */
export class CellPointer {
  /** @type {{ rowAxis: Axis, columnAxis: Axis }} */ axes;

  /** `linesOf(place)` gives the lines of the note; a place with row or column -1 is a whole column or row.
   *  @param {Picture} painter @param {MaskSurface} surface @param {(place: Cell) => TooltipLine[]} linesOf */
  constructor(painter, surface, linesOf) {
    this.painter = painter;
    this.surface = surface;
    this.linesOf = linesOf;
    /** @type {{ place: Cell, at: Point } | null} */ this.pointed = null;
  }

  /** Point at a place; `at` is where the note stands. @param {Cell} place @param {Point} at */
  point(place, at) {
    this.move(place, at);
    this.refresh();
  }

  /** The same without the note, which is to be written anew. @param {Cell} place @param {Point} at */
  move(place, at) {
    const before = this.pointed?.place;
    this.pointed = { place, at };
    if (before?.row === place.row && before.column === place.column) return;
    this.surface.light(place.row, place.column);
    const { rowAxis, columnAxis } = this.axes;
    this.painter.publish(marksOfCell(rowAxis, columnAxis, place.row, place.column).filter(({ index }) => index >= 0));
  }

  /** Write the note anew: what it says may have changed. */
  refresh() {
    if (!this.pointed) return;
    const { place, at } = this.pointed;
    this.painter.tooltip.show(this.linesOf(place), at.x, at.y);
  }

  /** @param {Mark[]} marks */
  onHover(marks) {
    this.pointed = null;
    const { rowAxis, columnAxis } = this.axes;
    this.surface.light(litPosition(rowAxis, "query", marks), litPosition(columnAxis, "key", marks));
  }
}
