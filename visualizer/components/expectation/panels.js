/** @import { Cell, Matrix, PanelHost, PanelLook, Pen, Point, Theme } from "../types.d.ts" */

import { contextOf, sizedContext } from "../marks/pen.js";
import { drawRules } from "../marks/rule.js";
import { inkOn, pixelFor } from "../marks/scale.js";
import { MatrixPanel } from "../shared/grid.js";

const [NOTHING, AS_EXPECTED, NOT_SO, MISSED] = [0, 1, 2, 3]; // what a cell is, as Python says it
const SMALLEST_SIGN = 9; // a cell below this size has no room for a sign
const RULES = 0.16; // the strength of the lines: of a covered matrix there is nothing else to see
const DIFFERS = new Set([NOT_SO, MISSED]);

/** A matrix over whose cells signs stand: what is marked and, once revealed, what of it is so. */
class SignedPanel extends MatrixPanel {
  /** @type {ArrayLike<number> | null} */ codes = null;

  /** Draw; `codes` says what each cell is, null while the result is covered.
   *  @param {Matrix} matrix @param {PanelLook} look @param {ArrayLike<number> | null} codes */
  showSigned(matrix, look, codes) {
    this.codes = codes;
    this.painted = undefined; // other signs may stand over the same numbers
    this.show(matrix, look);
  }

  drawOverlay() {
    const { numbers } = this.geometry;
    this.geometry.numbers = numbers && Boolean(this.look.hasNumbers);
    super.drawOverlay();
    this.drawSigns(contextOf(this.overlay));
  }

  /** @param {any} _context the pen of where the signs go */
  drawSigns(_context) {}

  /** Call `draw(i, left, top)` for every cell that `has` a sign.
   *  @param {(i: number) => boolean} has @param {(i: number, left: number, top: number) => void} draw */
  eachCell(has, draw) {
    const { left, top, cellWidth, cellHeight } = this.geometry;
    const { rows, columns } = this.matrix;
    for (let row = 0, i = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, i++) {
        if (has(i)) draw(i, left + column * cellWidth, top + row * cellHeight);
      }
    }
  }
}

/** @typedef {{ press: (place: Cell) => void, drag: (place: Cell) => void, release: () => void }} Hand */

/** The expectations: a dot in each marked cell; later a tick, a cross, or a ring where a mark is missing. */
export class MarksPanel extends SignedPanel {
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

  /** @param {Pen} context */
  drawSigns(context) {
    const { values } = this.matrix;
    const { cellWidth, cellHeight } = this.geometry;
    const size = Math.min(cellWidth, cellHeight);
    const { scale } = this.look;
    if (size >= SMALLEST_SIGN) drawRules(context, this.matrix, this.geometry, scale.theme, RULES);
    context.lineCap = "round";
    /** @param {number} i */
    const has = (i) => (this.codes ? this.codes[i] !== NOTHING : values[i] > 0);
    this.eachCell(has, (i, left, top) => {
      const ink = inkOn(pixelFor(values[i], scale));
      const center = { x: left + cellWidth / 2, y: top + cellHeight / 2 };
      drawSign(context, this.codes ? this.codes[i] : null, center, size, ink);
    });
  }
}

/** The computed cells, with a frame around each cell that differs from what was expected. */
export class ComputedPanel extends SignedPanel {
  /** @param {Pen} context */
  drawSigns(context) {
    const { cellWidth, cellHeight } = this.geometry;
    const { theme } = this.look.scale;
    const width = Math.min(cellWidth, cellHeight) < SMALLEST_SIGN ? 1 : 2.5;
    this.eachCell((i) => DIFFERS.has(this.codes?.[i] ?? NOTHING), (_i, left, top) => {
      context.lineWidth = width + 2;
      context.strokeStyle = theme.background;
      strokeInside(context, left, top, cellWidth, cellHeight);
      context.lineWidth = width;
      context.strokeStyle = theme.warning;
      strokeInside(context, left, top, cellWidth, cellHeight);
    });
  }
}

/** @param {Pen} context @param {number} left @param {number} top @param {number} width @param {number} height */
function strokeInside(context, left, top, width, height) {
  const inset = context.lineWidth / 2;
  context.strokeRect(left + inset, top + inset, width - 2 * inset, height - 2 * inset);
}

/** One sign in the middle of a cell; the code null is a mark whose result is covered.
 *  @param {Pen} context @param {number | null} code @param {Point} place @param {number} size @param {string} ink */
function drawSign(context, code, { x, y }, size, ink) {
  context.strokeStyle = ink;
  context.fillStyle = ink;
  context.lineWidth = Math.max(1.5, size / 13);
  const reach = size < SMALLEST_SIGN ? size * 0.35 : size * 0.2;
  context.beginPath();
  if (code === AS_EXPECTED) {
    context.moveTo(x - reach, y);
    context.lineTo(x - reach * 0.25, y + reach * 0.75);
    context.lineTo(x + reach, y - reach * 0.8);
  } else if (code === NOT_SO) {
    context.moveTo(x - reach, y - reach);
    context.lineTo(x + reach, y + reach);
    context.moveTo(x + reach, y - reach);
    context.lineTo(x - reach, y + reach);
  } else {
    context.arc(x, y, code === MISSED ? reach : reach * 0.8, 0, 2 * Math.PI);
  }
  if (code === null) context.fill();
  else context.stroke();
}

/** The signs with their names, for the line below a picture. @param {number} code @param {Theme} theme */
export function drawnSign(code, theme) {
  const canvas = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  const context = sizedContext(canvas, Math.round(14 * ratio), Math.round(14 * ratio));
  canvas.style.width = canvas.style.height = "14px";
  canvas.setAttribute("aria-hidden", "true");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.lineCap = "round";
  drawSign(context, code, { x: 7, y: 7 }, 24, theme.text);
  return canvas;
}
