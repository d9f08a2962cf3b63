/** @import { Axis, Cell, Matrix, Scale, Theme } from "../types.d.ts" */
/** @import { CellLook, Marks, SurfaceHost } from "./types.d.ts" */

import { drawLabels } from "../marks/axes.js";
import { drawEmptyRows } from "../marks/cells.js";
import { sizedContext } from "../marks/pen.js";
import { drawRules } from "../marks/rule.js";
import { clamp, makeElement, setBox } from "../shared/dom.js";
import { MatrixPanel } from "../shared/grid.js";
import { panelGeometry } from "../shared/grid_layout.js";
import { stepOfKey } from "../shared/keys.js";
import { tallestGrid } from "../shared/room.js";
import { textsOf } from "../shared/texts.js";
import { pixelRatioOf, zoomOf } from "../shared/zoom.js";
import { CellPicture, devicePixels, drawFound } from "./picture.js";

const say = textsOf("mask_painter/surface");
const PAINTING = { height: 640, cell: 40 };
const LINED_CELL = 5; // from this size on, lines stand between the cells
/** @type {Omit<Matrix, "rows" | "columns" | "rowAxis" | "columnAxis">} */
const NO_CELLS = { values: new Float32Array(), dtype: "f4", blocked: null, emptyRows: null };
/** @type {Marks} */
const NO_MARKS = { emptyRows: null, found: null };
const FINGER = 84; // how far above a finger its note stands
const AXIS_NAMES = 96; // the room that the axes' names take above a small plot

/**
 * The canvases on which a mask is painted: they show cells, and turn pointers and keys into places.
 * While `host.isPainting` is false, a press chooses a cell.
 */
export class MaskSurface extends MatrixPanel {
  /** @type {Theme} */ theme;
  drawnMarks = NO_MARKS;

  /** @param {SurfaceHost} host */
  constructor(host) {
    super(/** @type {any} */ (host)); // it does not hear what that of another panel hears
    this.picture = new CellPicture(this.pixels);
    this.marks = makeElement("canvas", "matrix-overlay matrix-marks", { "aria-hidden": "true" });
    this.overlay.after(this.marks);
    this.caption.hidden = true;
    this.plot.setAttribute("aria-label", say("keys"));
  }

  /** @returns {SurfaceHost} */
  get painter() {
    return /** @type {any} */ (this.host);
  }

  listen() {
    const { plot, body, painter: host } = this;
    this.pressed = false;
    plot.addEventListener("pointerdown", (event) => this.onPress(event));
    plot.addEventListener("pointermove", (event) => this.onMove(event));
    plot.addEventListener("pointerup", (event) => this.onRelease(event, () => host.release()));
    plot.addEventListener("pointercancel", (event) => this.onRelease(event, () => host.cancel()));
    plot.addEventListener("pointerleave", () => this.pressed || host.leave());
    plot.addEventListener("click", (event) => this.onClick(event));
    plot.addEventListener("keydown", (event) => this.onKey(event));
    plot.addEventListener("keyup", (event) => event.key === "Shift" && !this.pressed && host.release());
    plot.addEventListener("focus", () => plot.matches(":focus-visible") && host.move(0, 0, false));
    plot.addEventListener("blur", () => this.onBlur());
    // A press beside the plot would take the keyboard's focus from it, and with it Ctrl+Z.
    body.addEventListener("mousedown", (event) => event.composedPath().includes(plot) || event.preventDefault());
    body.addEventListener("click", (event) => this.onLabel(event, (line) => this.onLabelClick(line)));
    body.addEventListener("pointermove", (event) => this.onLabelMove(event));
    body.addEventListener("pointerleave", () => this.pressed || host.leave());
  }

  /** The width of everything, the names of the axes included. */
  get width() {
    return Math.max(this.geometry.left + this.geometry.plotWidth, AXIS_NAMES);
  }

  /** Lay everything out, draw labels.
   *  @param {{ rowAxis: Axis, columnAxis: Axis }} axes @param {number} width
   *  @param {Omit<CellLook, "geometry" | "pixelRatio"> & { tallest: number }} look */
  arrange(axes, width, look) {
    const size = { rows: axes.rowAxis.labels.length, columns: axes.columnAxis.labels.length };
    this.theme = look.theme;
    this.matrix = { ...NO_CELLS, ...size, ...axes };
    const tallest = Math.min(look.tallest, tallestGrid(this.element, size.rows));
    this.look = /** @type {any} */ ({ limits: { width, ...PAINTING, tallest } }); // it draws its cells itself
    this.pixelRatio = pixelRatioOf(this.element);
    const options = { labelled: true, font: look.theme.font, pixelRatio: this.pixelRatio };
    this.geometry = panelGeometry(this.matrix, this.look.limits, options);
    this.place();
    this.drawAxes();
    this.drawLights();
    this.select(this.selected);
    this.picture.arrange(size, { ...look, geometry: this.geometry, pixelRatio: this.pixelRatio });
    this.drawnMarks = NO_MARKS;
  }

  /** Take other weights; they are drawn by the next `paint`. @param {Float32Array} weights @param {Scale} scale */
  reweigh(weights, scale) {
    this.picture.reweigh(weights, scale);
  }

  drawAxes() {
    const { geometry, pixelRatio, width } = this;
    const height = geometry.top + geometry.plotHeight;
    const context = sizedContext(this.overlay, Math.round(width * pixelRatio), Math.round(height * pixelRatio));
    setBox(this.overlay, 0, 0, width, height);
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    drawLabels(context, this.matrix, geometry, this.theme);
    const strength = clamp(geometry.cellWidth / 150, 0.05, 0.13); // the quieter the closer they stand
    if (geometry.cellWidth >= LINED_CELL) drawRules(context, this.matrix, geometry, this.theme, strength);
  }

  /** Draw the cells.
   *  @param {Uint16Array} kinds @param {Marks} marks */
  paintCells(kinds, marks) {
    this.picture.show(kinds);
    const { emptyRows, found } = this.drawnMarks;
    if (found !== marks.found || String(emptyRows) !== String(marks.emptyRows)) this.drawMarks(marks);
    this.drawnMarks = marks;
  }

  /** @param {Marks} marks */
  drawMarks({ emptyRows, found }) {
    const { geometry, pixelRatio, theme } = this;
    const { left, top, plotWidth, plotHeight } = geometry;
    const { width, height } = devicePixels(geometry, pixelRatio);
    const context = sizedContext(this.marks, width, height);
    setBox(this.marks, left, top, plotWidth, plotHeight);
    if (found) drawFound(context, found, this.matrix, { width, height }, theme);
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    const matrix = { rows: this.matrix.rows, emptyRows };
    if (emptyRows && !found) drawEmptyRows(context, matrix, { ...geometry, left: 0, top: 0 }, theme);
  }

  /** @param {PointerEvent} event */
  onPress(event) {
    if (!this.painter.isPainting) return;
    if (!event.isPrimary) {
      // A second finger means to move or to enlarge the page.
      this.pressed = false;
      this.painter.cancel();
      return;
    }
    if (event.button !== 0) return;
    this.pressed = true;
    this.plot.setPointerCapture(event.pointerId);
    const place = this.cellAt(event);
    this.painter.point(place, pointOf(event));
    this.painter.press(place, event.shiftKey);
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    if (!event.isPrimary) return;
    const place = this.cellAt(event);
    if (this.pressed) this.painter.drag(place, pointOf(event));
    else this.painter.point(place, pointOf(event));
  }

  /** @param {PointerEvent} event @param {() => void} action */
  onRelease(event, action) {
    if (!event.isPrimary || !this.pressed) return;
    this.pressed = false;
    action();
    if (event.pointerType === "touch") this.painter.leave();
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    if (this.painter.isPainting) return;
    const place = this.cellAt(event);
    this.painter.point(place, pointOf(event));
    this.painter.choose(place);
  }

  onBlur() {
    if (!this.pressed) this.painter.release();
    this.painter.leave();
  }

  /** Call `action` with the row or column whose label a pointer is on.
   *  @param {MouseEvent} event @param {(line: Cell) => void} action */
  onLabel(event, action) {
    if (event.composedPath().includes(this.plot)) return;
    const { row, column } = this.cellAt(event);
    const box = this.plot.getBoundingClientRect();
    const besideRow = event.clientX < box.left;
    const aboveColumn = event.clientY < box.top;
    if (besideRow !== aboveColumn) action(besideRow ? { row, column: -1 } : { row: -1, column });
    else this.painter.leave();
  }

  /** @param {Cell} line */
  onLabelClick(line) {
    this.plot.focus({ preventScroll: true });
    if (this.painter.isPainting) this.painter.toggleLine(line);
  }

  /** @param {PointerEvent} event */
  onLabelMove(event) {
    if (event.pointerType !== "touch") this.onLabel(event, (line) => this.painter.point(line, pointOf(event)));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = stepOfKey(event.key, this.matrix.columns);
    if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== " ")) return;
    if (step) this.painter.move(...step, event.shiftKey);
    else if (event.key === " ") this.painter.space(event);
    else if (event.key === "Enter") this.painter.choose(this.painter.cursor);
    else if (event.key === "Escape") this.painter.cancel();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The point of the window at a cell's lower right corner. @param {Cell} cell */
  cornerOf({ row, column }) {
    const { x, y } = this.plot.getBoundingClientRect();
    const { cellWidth, cellHeight } = this.geometry;
    const zoom = zoomOf(this.plot);
    return { x: x + (column + 1) * cellWidth * zoom, y: y + (row + 1) * cellHeight * zoom };
  }
}

/** The place of a pointer's note: beside a mouse, above a finger.
 *  @param {MouseEvent & { pointerType?: string }} event */
function pointOf({ clientX, clientY, pointerType }) {
  return { x: clientX, y: pointerType === "touch" ? clientY - FINGER : clientY };
}
