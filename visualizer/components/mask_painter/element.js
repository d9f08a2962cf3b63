/** @import { Cell, Host, Mark, Matrix, Point, Scale } from "../types.d.ts" */
/** @import { Beside, Content, PainterHeader, Shown, Size } from "./types.d.ts" */

import { clamp, makeElement, onceIn, oncePerFrame, setText } from "../shared/dom.js";
import { LABEL_CELL } from "../shared/grid_layout.js";
import { makeLegend } from "../shared/legend.js";
import { toBase64 } from "../shared/payload.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { roomBelow } from "../shared/room.js";
import { lineText } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { endsOfLine, invertedCells, lineIsBlocked, openCells, packBits, sameCells, withRectangle, withTouched } from "./cells.js";
import { FindingsList } from "./findings.js";
import { PaintedHeads } from "./heads.js";
import { Outbox } from "./outbox.js";
import { Painting } from "./painting.js";
import { kindsOf, scaleOf } from "./picture.js";
import { CellPointer } from "./pointing.js";
import { makeReasonLegend, namesOf } from "./reasons.js";
import { cellLine, cellLines, describePainting, labelLines, refusedText, rowsOfPainting } from "./sentences.js";
import { besideOf, readContent, shownOf, withoutOthers, withWeights } from "./shown.js";
import { makeStatus } from "./status.js";
import { MaskSurface } from "./surface.js";
import { makeToolbar, onUndoKeys } from "./toolbar.js";

const say = textsOf("mask_painter/element");
const FINDINGS_BESIDE = { from: 700, width: 300, gap: 28 }; // from this width on, findings stand beside the grid
const HEADS_BESIDE = { from: 420, columns: 20, share: 0.66, gap: 18 }; // so that a small grid and they are in sight
const LEAST_WIDTH = 320; // of the lines below a small grid
const VERDICT = { around: 205, labels: 85 }; // what stands above and below a grid whose verdict is in sight, and in it

const COUNTED_AGAIN = 100; // milliseconds: while a stroke is under way, what is said of all cells is said no oftener

const MOST_PAINTINGS = 8; // whose strokes can be undone when they are shown again
const paintings = new Map(); // what was painted in the painter of each key, by its scope

/**
 * The mask painter: a person blocks and frees cells of queries by keys.
 *
 * Python hears of each finished stroke as {blocked, n_queries, n_keys, seq}. What Python sends back may be older than
 * what was painted since: only a painting as new as the last event is taken over, and none while a stroke is under way.
 * @extends {Picture<PainterHeader>}
 */
class MaskPainter extends Picture {
  isSaved = true;
  /** @type {number} */ columnWidth;
  /** @type {Content} */ given;
  /** @type {Shown} */ shown;
  /** @type {Scale | null} */ scale;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "mask_painter");
    this.painting = new Painting();
    this.cursor = { row: 0, column: 0 };
    this.isPainting = true;
    this.outbox = new Outbox(host);
    this.schedulePaint = oncePerFrame(() => this.paint());
    this.countSoon = onceIn(COUNTED_AGAIN, () => this.count());
    this.endings.push(
      () => this.schedulePaint.cancel(),
      () => this.countSoon.cancel(),
      () => this.outbox.destroy(),
      () => this.heads.destroy(),
    );
    this.surface = new MaskSurface(this);
    this.toolbar = makeToolbar({
      undo: () => this.step("undo"),
      redo: () => this.step("redo"),
      clear: () => this.change(openCells(this.painting.cells.length)),
      invert: () => this.change(invertedCells(this.painting.cells)),
      look: () => this.toggleLook(),
    });
    this.weightsLegend = makeLegend();
    this.heads = new PaintedHeads({
      taken: (matrix, cells) => this.reweigh(matrix, cells),
      drawn: () => this.announce(`${this.data.key} heads`),
      choose: (layer, head) => this.outbox.add("look", { layer, head }),
    });
    this.reasonLegend = makeReasonLegend();
    this.findings = new FindingsList(this);
    this.status = makeStatus();
    const below = [this.reasonLegend.element, this.status.element, this.status.said];
    this.column = makeElement("div", "painter-grid", {}, [this.surface.element, ...below]);
    this.frame = makeElement("div", "mask-painter", {}, [
      this.toolbar.element,
      makeElement("div", "painter-body", {}, [
        makeElement("div", "painter-heads", {}, [this.weightsLegend.element, this.heads.element]),
        this.column,
        this.findings.element,
      ]),
      ...this.status.hints,
    ]);
    onUndoKeys(this.frame, (direction) => this.step(direction));
    this.frame.addEventListener("focusout", () => setText(this.surface.live, "")); // what was said of the last act
    this.root.prepend(this.frame);
    this.pointer = new CellPointer(this, this.surface, (place) => this.linesOf(place));
  }

  get size() {
    const { rows, columns } = this.painting;
    return { rows, columns };
  }

  /** Take over what Python sent; its painting only if the person has not painted since. */
  receive() {
    const content = this.data;
    const before = this.given;
    this.given = readContent(content);
    this.pointer.axes = this.given.axes;
    const { cells } = this.given;
    const isOther = content.scope !== this.scope;
    this.scope = content.scope;
    if (isOther) this.takeUpPainting(content);
    if (!this.hasSize(this.given.size)) this.startAnew(this.given.size, cells);
    else if (this.outbox.areKnown(content.seq) && !this.painting.hasStroke) this.painting.receive(cells, besideOf(this.given));
    else {
      this.given = { ...this.given, ...this.painting.beside };
      if (before?.title === this.given.title) this.given = withWeights(this.given, before.weights, before.dtype, before.weighed);
    }
    this.heads.receive(content.live, sameCells(this.painting.cells, cells) ? cells : null, cells.length);
    this.outbox.receiveAnswer(content.seq);
  }

  /**
   * Go on where the painter of this scope was: before another mask was shown, or before the page was laid out anew and
   * made another element of it. What was painted elsewhere since is one more stroke.
   * @param {PainterHeader} header
   */
  takeUpPainting({ key, scope }) {
    if (this.painting.hasStroke) this.painting.giveUp();
    const name = JSON.stringify([key, scope]);
    this.painting = paintings.get(name) ?? new Painting();
    paintings.delete(name);
    paintings.set(name, this.painting);
    if (paintings.size > MOST_PAINTINGS) paintings.delete(paintings.keys().next().value);
    this.beginAtCorner();
  }

  /** @param {Size} size */
  hasSize({ rows, columns }) {
    return this.size.rows === rows && this.size.columns === columns;
  }

  /** @param {Size} size @param {Uint8Array} cells */
  startAnew({ rows, columns }, cells) {
    this.painting.startAnew(rows, columns, cells, besideOf(this.given));
    this.beginAtCorner();
  }

  beginAtCorner() {
    this.cursor = { row: 0, column: 0 };
    this.status.tell("");
    this.hear([]);
  }

  draw() {
    this.arrange();
    this.weightsLegend.element.hidden = !this.scale;
    if (this.scale) this.weightsLegend.update(this.scale, { text: this.data.weights_title });
    this.findings.show(this.given.findings, this.data.all_clear);
    this.heads.draw(this.theme, this.areHeadsBeside ? this.width - this.columnWidth - HEADS_BESIDE.gap : this.width);
    this.paint();
  }

  /** The weights of the head that is looked at, under a painting that is a moment old at most.
   *  @param {Matrix} matrix @param {Uint8Array} cells */
  reweigh(matrix, cells) {
    if (!this.given.weights || cells.length !== this.given.cells.length) return;
    const { values, dtype } = matrix;
    this.given = withWeights(this.given, values, dtype, cells);
    this.scale = scaleOf(this.theme, values, this.size.columns);
    this.weightsLegend.update(this.scale, { text: this.data.weights_title });
    this.surface.reweigh(values, this.scale);
    this.schedulePaint();
  }

  /** Have the heads follow what is painted. */
  follow() {
    this.heads.follow({ cells: this.painting.cells, ...this.size });
  }

  arrange() {
    const isSmall = this.width >= HEADS_BESIDE.from && this.size.columns <= HEADS_BESIDE.columns;
    this.areHeadsBeside = isSmall && this.heads.fitsIn(this.width * (1 - HEADS_BESIDE.share) - HEADS_BESIDE.gap);
    const isWide = this.width >= FINDINGS_BESIDE.from && !this.areHeadsBeside;
    const beside = isWide ? FINDINGS_BESIDE.width + FINDINGS_BESIDE.gap : 0;
    const width = this.areHeadsBeside ? this.width * HEADS_BESIDE.share : this.width - beside;
    const { theme } = this;
    const { axes, reasons, weights } = this.given;
    this.scale = weights && scaleOf(theme, weights, this.size.columns);
    const tallest = isWide ? Infinity : this.tallestAboveVerdict();
    this.surface.arrange(axes, width, { theme, reasons, weights, scale: this.scale, tallest });
    const { selected } = this.data;
    this.surface.select(selected && { row: selected[0], column: selected[1] });
    this.frame.classList.toggle("painter-wide", isWide);
    this.frame.classList.toggle("painter-judged-first", tallest === Infinity && !isWide);
    this.frame.classList.toggle("painter-beside", this.areHeadsBeside);
    this.columnWidth = Math.max(this.surface.width, Math.min(width, LEAST_WIDTH));
    this.column.style.width = `${this.columnWidth}px`;
  }

  /** The verdict has to be in sight on every page: how high the grid is depends on what stands above it. */
  roomBelow() {
    return Math.round(roomBelow(this.root));
  }

  /** The height that leaves the verdict below the grid in sight, if every row has its label then; else it is above. */
  tallestAboveVerdict() {
    const room = this.height - VERDICT.around;
    return room >= VERDICT.labels + this.size.rows * LABEL_CELL ? room : Infinity;
  }

  paint() {
    const shown = (this.shown = shownOf(this.painting.cells, this.given));
    this.surface.paintCells(kindsOf(shown), this.marks());
    if (this.painting.hasStroke) this.countSoon();
    else {
      this.count();
      this.surface.pixels.setAttribute("aria-label", describePainting(shown, this.status.summary()));
      this.surface.reading.writeSoon(say("mask"), () => rowsOfPainting(shown));
    }
    this.pointer.refresh();
    this.follow();
  }

  /** Say around the cells what follows from all of them. */
  count() {
    this.countSoon.cancel();
    const { reasons, counts, bits, emptyRows, isUnjudged } = this.shown;
    const { history } = this.painting;
    this.reasonLegend.update(reasons, counts);
    this.toolbar.update({
      isPainting: this.isPainting,
      canUndo: history.canUndo && !this.painting.isReplaced,
      canRedo: history.canRedo,
      canClear: counts[counts.length - 1] > 0,
    });
    this.findings.setOutdated(isUnjudged);
    this.status.count(bits, emptyRows);
  }

  marks() {
    const found = this.given.found[this.findings.lit];
    return { emptyRows: this.shown.emptyRows, found: found?.some(Boolean) ? found : null };
  }

  lightFound() {
    this.schedulePaint();
  }

  /** @param {Mark[]} marks */
  onHover(marks) {
    this.pointer.onHover(marks);
  }

  // Strokes: painted at once, sent and remembered when they end.

  /** @param {Cell} place */
  isBlocked({ row, column }) {
    return this.shown.bits[row * this.size.columns + column] > 0;
  }

  /** Begin a stroke that frees cells when the first one is blocked by anything, and else blocks them.
   *  @param {Cell} place @param {boolean} isRectangle */
  press(place, isRectangle) {
    this.release();
    this.begin(place, this.isBlocked(place) ? 0 : 1, isRectangle);
    this.drag(place);
  }

  /** @param {Cell} place @param {number} value @param {boolean} isRectangle */
  begin(place, value, isRectangle) {
    this.status.tell("");
    this.painting.begin(place, value, isRectangle);
  }

  /** Lead the stroke on; `at` is where the note of a pointer stands. @param {Cell} place */
  drag(place, at = null) {
    if (at) this.pointer.move(place, at);
    if (!this.painting.hasStroke) return;
    this.painting.drag(place);
    this.cursor = place;
    this.follow();
    this.schedulePaint();
  }

  release() {
    if (!this.painting.hasStroke) return;
    const { touched, value, isChanged } = this.painting.end();
    if (isChanged) this.tell();
    if (value === 0) this.refuse(touched);
    this.schedulePaint();
  }

  cancel() {
    if (this.painting.hasStroke) this.painting.giveUp();
    else this.leave();
    this.schedulePaint();
  }

  /** Say which of these cells stay blocked, since another mask blocks them. @param {Uint8Array} touched */
  refuse(touched) {
    const refused = this.given.others.map((bits, i) => (touched[i] ? bits : 0));
    const text = refusedText(refused, this.size.columns, this.given.reasons);
    const others = namesOf(this.given.reasons.slice(0, -1));
    this.status.tell(text, text ? { text: say("paint_over", { others }), act: () => this.takeOver() } : null);
  }

  /** A stroke made at once. @param {Uint8Array} cells */
  change(cells) {
    this.release();
    this.status.tell("");
    if (this.painting.become(cells)) this.tellAndPaint();
  }

  /** Undo or redo, once Python has sent what took the place of all masks: only then can it be done again.
   *  @param {"undo" | "redo"} direction */
  step(direction) {
    this.release();
    this.status.tell("");
    const step = this.painting.isReplaced ? null : this.painting.step(direction);
    if (step) this.tellAndPaint(step.beside);
  }

  /** @param {Beside | null} [beside] */
  tellAndPaint(beside) {
    if (beside) this.bringBack(beside);
    else this.tell();
    this.paint();
    setText(this.surface.live, this.status.summary());
  }

  /** Block a whole row or column, or free it when all of it is blocked. @param {Cell} line */
  toggleLine(line) {
    const { rows, columns } = this.size;
    const [first, last] = endsOfLine(line, rows, columns);
    const touched = withRectangle(openCells(rows * columns), columns, first, last, 1);
    const value = lineIsBlocked(this.shown.bits, columns, line) ? 0 : 1;
    this.change(withTouched(this.painting.cells, touched, value));
    if (value === 0) this.refuse(touched);
  }

  // The events that Python hears of.

  /** Tell Python what is painted now. */
  tell() {
    this.outbox.add("paint", this.painted());
  }

  painted() {
    const { rows, columns } = this.size;
    return { blocked: toBase64(packBits(this.painting.cells)), n_queries: rows, n_keys: columns };
  }

  takeOver() {
    this.replace("take_over", {});
  }

  /** @param {number} index */
  mend(index) {
    this.replace("mend", { finding: index });
  }

  /** Have Python put a painting in the place of all masks: here at once, so that no stroke is painted without them.
   *  @param {string} event @param {object} facts */
  replace(event, facts) {
    this.release();
    this.status.tell("");
    this.painting.replace(withoutOthers(this.given));
    this.outbox.add(event, facts);
    this.showBeside();
  }

  /** Have the masks again that were replaced, or those that replaced them. @param {Beside} beside */
  bringBack(beside) {
    this.outbox.add("bring_back", { masks: beside.masks, ...this.painted() });
    this.showBeside();
  }

  showBeside() {
    this.given = { ...this.given, ...this.painting.beside };
    this.redraw();
  }

  /** @param {Cell} cell */
  choose({ row, column }) {
    this.surface.select({ row, column });
    this.outbox.add("select", { query: row, key: column });
  }

  toggleLook() {
    this.isPainting = !this.isPainting;
    this.frame.classList.toggle("painter-looks", !this.isPainting);
    this.paint();
  }

  focusGrid() {
    this.surface.plot.focus({ preventScroll: true });
  }

  // Keys.

  /** Move the keyboard's cell; painting makes the next cells like it.
   *  @param {number} rowStep @param {number} columnStep @param {boolean} isPainting */
  move(rowStep, columnStep, isPainting) {
    const from = this.cursor;
    const { rows, columns } = this.size;
    const to = {
      row: clamp(from.row + rowStep, 0, rows - 1),
      column: clamp(from.column + columnStep, 0, columns - 1),
    };
    if (isPainting && !this.painting.hasStroke) this.begin(from, this.isBlocked(from) ? 1 : 0, false);
    if (isPainting) this.drag(to);
    else this.release();
    this.cursor = to;
    this.pointAtCursor();
  }

  /** Space toggles a cell, with Shift its whole row and with Ctrl its whole column. @param {KeyboardEvent} event */
  space({ shiftKey, ctrlKey, repeat }) {
    if (repeat) return;
    const { row, column } = this.cursor;
    if (shiftKey || ctrlKey) {
      this.toggleLine(shiftKey ? { row, column: -1 } : { row: -1, column });
      return;
    }
    this.press(this.cursor, false);
    this.release();
    this.paint();
    this.pointAtCursor();
  }

  pointAtCursor() {
    this.point(this.cursor, this.surface.cornerOf(this.cursor));
    setText(this.surface.live, lineText(cellLine(this.shown, this.cursor)));
  }

  // Pointing.

  /** @param {Cell} place @param {Point} at */
  point(place, at) {
    this.pointer.point(place, at);
  }

  /** The note about a place. @param {Cell} place */
  linesOf(place) {
    const isCell = place.row >= 0 && place.column >= 0;
    return isCell ? cellLines(this.shown, place) : labelLines(this.shown, place, this.isPainting);
  }
}

export const render = rendererOf(MaskPainter);
