/** @import { Cell, PanelHost, Pen } from "../types.d.ts" */

import { contextOf } from "../marks/pen.js";
import { drawRules } from "../marks/rule.js";
import { inkOn, pixelFor } from "../marks/scale.js";
import { MatrixPanel } from "../shared/grid.js";

const SMALLEST_DOT = 9; // a cell below this size has no room for more than the dot
const RULES = 0.16; // the strength of the lines: of a covered matrix there is nothing else to see

/** @typedef {{ press: (place: Cell) => void, drag: (place: Cell) => void, release: () => void }} Hand */

/** The expectations: a dot in each marked cell. */
export class MarksPanel extends MatrixPanel {
  /** @param {Hand} hand @param {PanelHost} host */
  constructor(hand, host) {
    super(host);
    this.hand = hand;
  }

  listenToPointer() {
    const { plot } = this;
    this.pressed = false;
    plot.addEventListener("pointerdown", (event) => this.onPress(event));
    plot.addEventListener("pointermove", (event) => {
      if (this.pressed) this.hand.drag(this.cellAt(event));
      this.pointAt(event);
    });
    for (const name of ["pointerup", "pointercancel"]) plot.addEventListener(name, () => this.onRelease());
  }

  /** @param {PointerEvent} event */
  onPress(event) {
    if (event.button !== 0 || !event.isPrimary) return;
    this.pressed = true;
    this.plot.setPointerCapture(event.pointerId);
    this.hand.press(this.cellAt(event));
    this.pointAt(event);
  }

  onRelease() {
    if (!this.pressed) return;
    this.pressed = false;
    this.hand.release();
  }

  drawOverlay() {
    this.geometry.numbers = false;
    super.drawOverlay();
    this.drawDots(contextOf(this.overlay));
  }

  /** @param {Pen} context */
  drawDots(context) {
    const { values, columns } = this.matrix;
    const { left, top, cellWidth, cellHeight } = this.geometry;
    const { scale } = this.look;
    const size = Math.min(cellWidth, cellHeight);
    if (size >= SMALLEST_DOT) drawRules(context, this.matrix, this.geometry, scale.theme, RULES);
    const radius = size < SMALLEST_DOT ? size * 0.28 : size * 0.16;
    for (const [i, value] of values.entries()) {
      if (!value) continue;
      const [row, column] = [Math.floor(i / columns), i % columns];
      context.fillStyle = inkOn(pixelFor(value, scale));
      context.beginPath();
      context.arc(left + (column + 0.5) * cellWidth, top + (row + 0.5) * cellHeight, radius, 0, 2 * Math.PI);
      context.fill();
    }
  }
}
