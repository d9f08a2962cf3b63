/**
 * The mask painter: a person blocks and frees cells of queries by keys.
 *
 * Python hears of each finished stroke as {blocked, seq}. What Python sends back may be older than what was painted
 * since: only what is as new as the last stroke is taken over, and nothing while a stroke is under way.
 */
class MaskPainter {
  constructor(root) {
    this.root = root;
    this.size = 0;
    this.cells = openCells(0);
    this.history = new PaintHistory();
    this.stroke = null;
    this.cursor = { row: 0, column: 0 };
    this.pointed = null;
    this.seq = 0;
    this.send = () => {};
    this.schedulePaint = oncePerFrame(() => this.paint());
    this.build();
    this.stopHover = subscribeHover((detail) => this.onHover(detail));
    this.resize = new ResizeObserver(oncePerFrame(() => this.width !== root.clientWidth && this.draw()));
    this.resize.observe(root);
  }

  build() {
    this.surface = new MaskSurface(this);
    this.surface.plot.setAttribute("aria-label", KEYS_TEXT);
    this.toolbar = makeToolbar({
      undo: () => this.step("undo"),
      redo: () => this.step("redo"),
      clear: () => this.change(openCells(this.size)),
      invert: () => this.change(invertedCells(this.cells)),
      preset: (makeCells) => this.change(makeCells(this.size)),
    });
    this.count = makeElement("span", "painted-count");
    this.warning = makeElement("span", "painted-warning");
    const counter = makeElement("div", "painted", {}, [this.count, this.warning]);
    const frame = makeElement("div", "mask-painter", {}, [
      this.toolbar.element,
      this.surface.element,
      counter,
      makeElement("div", "hint hint-mouse", { "aria-hidden": "true" }, [MOUSE_HINT]),
      makeElement("div", "hint hint-touch", { "aria-hidden": "true" }, [TOUCH_HINT]),
    ]);
    frame.addEventListener("keydown", (event) => this.onShortcut(event));
    this.root.append(frame);
    this.tooltip = makeTooltip(this.root);
  }

  destroy() {
    this.schedulePaint.cancel();
    this.resize.disconnect();
    this.stopHover();
    this.tooltip.hide();
  }

  /** Take over what Python sent, unless the person has painted since. */
  receive(content, send) {
    this.send = send;
    this.axes = { rowAxis: content.rows, columnAxis: content.columns };
    const size = content.rows.labels.length;
    const cells = unpackBits(content.arrays.blocked.data, size * size);
    if (size !== this.size) this.startAnew(size, cells);
    else if (content.seq >= this.seq && !this.stroke) this.takeOver(cells);
    this.seq = Math.max(this.seq, content.seq);
    this.draw();
    announcePainted("mask_painter", content.key);
  }

  startAnew(size, cells) {
    this.size = size;
    this.cells = cells;
    this.stroke = null;
    this.cursor = { row: 0, column: 0 };
    this.history.clear();
    this.leave();
  }

  /** What the rest of the page changed can be undone here like a stroke. */
  takeOver(cells) {
    if (sameCells(cells, this.cells)) return;
    this.history.record(this.cells);
    this.cells = cells;
  }

  draw() {
    this.width = this.root.clientWidth;
    if (!this.width || !this.size) return;
    this.theme = readTheme(this.root);
    applyPalette(this.root, this.theme);
    this.surface.arrange(this.axes, this.theme, this.width);
    this.paint();
  }

  paint() {
    const blocked = countBlocked(this.cells);
    this.emptyRows = rowsWithoutKey(this.cells, this.size, this.size);
    this.surface.paint(this.cells, this.emptyRows);
    const { canUndo, canRedo } = this.history;
    this.toolbar.update({ canUndo, canRedo, canClear: blocked > 0, size: this.size });
    setText(this.count, countText(blocked, this.cells.length) + (this.emptyRows ? "; " : ""));
    setText(this.warning, this.emptyRows ? emptyText(countBlocked(this.emptyRows)) : "");
    if (!this.stroke) this.surface.pixels.setAttribute("aria-label", this.description());
    if (this.pointed) this.showPointed();
  }

  description() {
    return describePainting(this.cells, this.axes, this.summary());
  }

  summary() {
    return this.count.textContent + this.warning.textContent;
  }

  // Strokes: painted at once, sent and remembered when they end.

  /** Begin a stroke that gives the other cells the new value of the first one. */
  press(place, isRectangle) {
    this.release();
    this.cursor = place;
    const value = 1 - this.cells[place.row * this.size + place.column];
    this.begin(place, value, isRectangle);
    this.drag(place);
  }

  begin(place, value, isRectangle) {
    this.stroke = { before: this.cells, first: place, last: place, value, isRectangle };
  }

  drag(place) {
    if (!this.stroke) return;
    const { before, first, last, value, isRectangle } = this.stroke;
    this.cells = isRectangle
      ? withRectangle(before, this.size, first, place, value)
      : withLine(this.cells, this.size, last, place, value);
    this.stroke.last = place;
    this.cursor = place;
    this.schedulePaint();
  }

  /** End a stroke. */
  release() {
    if (!this.stroke) return;
    const { before } = this.stroke;
    this.stroke = null;
    if (!sameCells(before, this.cells)) {
      this.history.record(before);
      this.tell();
    }
    this.schedulePaint();
  }

  /** Give up a stroke: the cells are as before. */
  cancel() {
    if (this.stroke) this.cells = this.stroke.before;
    else this.leave();
    this.stroke = null;
    this.schedulePaint();
  }

  /** A stroke made at once. */
  change(cells) {
    this.release();
    if (sameCells(cells, this.cells)) return;
    this.history.record(this.cells);
    this.cells = cells;
    this.tell();
    this.announceSummary();
  }

  /** Go one stroke back ("undo") or forward ("redo"). */
  step(direction) {
    this.release();
    const cells = this.history[direction](this.cells);
    if (!cells) return;
    this.cells = cells;
    this.tell();
    this.announceSummary();
  }

  toggleLine(line) {
    this.change(withLineToggled(this.cells, this.size, line));
  }

  /** Tell Python what is blocked now. */
  tell() {
    this.seq += 1;
    this.send("paint", { blocked: toBase64(packBits(this.cells)), seq: this.seq });
  }

  /** Paint now, and let a screen reader say how much is blocked. */
  announceSummary() {
    this.paint();
    setText(this.surface.live, this.summary());
  }

  // Keys.

  /** Move the keyboard's cell; painting carries its value along. */
  move(rowStep, columnStep, isPainting) {
    const from = this.cursor;
    const last = this.size - 1;
    const to = { row: clamp(from.row + rowStep, 0, last), column: clamp(from.column + columnStep, 0, last) };
    if (isPainting && !this.stroke) this.begin(from, this.cells[from.row * this.size + from.column], false);
    if (isPainting) this.drag(to);
    else this.release();
    this.cursor = to;
    this.point(to, this.surface.cornerOf(to));
    this.announceCell();
  }

  /** Space toggles a cell, with Shift its whole row and with Ctrl its whole column. */
  space({ shiftKey, ctrlKey, repeat }) {
    if (repeat) return;
    const { row, column } = this.cursor;
    if (shiftKey || ctrlKey) {
      this.toggleLine(shiftKey ? { row, column: -1 } : { row: -1, column });
      return;
    }
    this.press(this.cursor, false);
    this.release();
    this.point(this.cursor, this.surface.cornerOf(this.cursor));
    this.announceCell();
  }

  onShortcut(event) {
    const direction = directionOfShortcut(event);
    if (!direction) return;
    this.step(direction);
    event.preventDefault();
    event.stopPropagation();
  }

  // Pointing.

  /** Point at a cell, or with row or column -1 at a whole column or row; `at` is where the note stands. */
  point(place, at) {
    this.pointed = { place, at };
    this.surface.light(place.row, place.column);
    this.showPointed();
    publishHover(this.marksOf(place), this);
  }

  leave() {
    if (!this.pointed) return;
    this.pointed = null;
    this.tooltip.hide();
    this.surface.light(-1, -1);
    publishHover([], this);
  }

  onHover({ marks, origin }) {
    if (origin === this || !this.axes) return;
    this.pointed = null;
    this.tooltip.hide();
    const { rowAxis, columnAxis } = this.axes;
    this.surface.light(litPosition(rowAxis, "query", marks), litPosition(columnAxis, "key", marks));
  }

  marksOf({ row, column }) {
    return marksOfCell(this.axes.rowAxis, this.axes.columnAxis, row, column).filter(({ index }) => index >= 0);
  }

  showPointed() {
    const { place, at } = this.pointed;
    this.tooltip.show(this.linesOf(place), at.x, at.y);
  }

  /** What the note says about a place. */
  linesOf(place) {
    if (place.row < 0 || place.column < 0) return [this.lineOfLabel(place), this.lineOfClick(place)];
    const lines = [this.lineOfCell(place)];
    if (this.emptyRows?.[place.row]) lines.push(tooltipLine("tooltip-warning", "every key is blocked: no key left"));
    return lines;
  }

  lineOfCell({ row, column }) {
    const { rowAxis, columnAxis } = this.axes;
    const relation = this.cells[row * this.size + column] ? " is blocked from " : " may attend to ";
    return tooltipLine("tooltip-cell", ...positionParts(rowAxis, row), relation, ...positionParts(columnAxis, column));
  }

  lineOfLabel({ row, column }) {
    const { rowAxis, columnAxis } = this.axes;
    const parts = row >= 0 ? positionParts(rowAxis, row) : positionParts(columnAxis, column);
    return tooltipLine("tooltip-position", ...parts);
  }

  lineOfClick(line) {
    const verb = lineIsBlocked(this.cells, this.size, line) ? "free" : "block";
    return tooltipLine("tooltip-note", `click to ${verb} the whole ${line.row >= 0 ? "row" : "column"}`);
  }

  announceCell() {
    setText(this.surface.live, lineText(this.lineOfCell(this.cursor)));
  }
}

const KEYS_TEXT =
  "mask, queries by keys: arrow keys move, Space blocks or frees a cell, Shift with arrow keys paints, " +
  "Shift and Space a whole row, Control and Space a whole column, Control and Z undoes";
const MOUSE_HINT =
  "Click or drag to paint, Shift+drag for a rectangle, a label for its whole row or column. " +
  "Keys: arrows, Space, Shift+arrows, Ctrl+Z.";
const TOUCH_HINT = "Tap or drag to paint; tap a label for its whole row or column.";

/** "undo", "redo" or, for any other key, null. */
function directionOfShortcut({ key, ctrlKey, metaKey, shiftKey, altKey }) {
  if (!(ctrlKey || metaKey) || altKey) return null;
  const letter = key.toLowerCase();
  if (letter === "z") return shiftKey ? "redo" : "undo";
  return letter === "y" && !shiftKey ? "redo" : null;
}

/** "12 of 81 cells blocked". */
function countText(blocked, all) {
  const number = (value) => value.toLocaleString("en");
  return `${number(blocked)} of ${number(all)} ${all === 1 ? "cell" : "cells"} blocked`;
}

/** "1 query has no key left". */
function emptyText(count) {
  return count === 1 ? "1 query has no key left" : `${count} queries have no key left`;
}

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return undefined;
  const { instance, cleanUp } = instanceFor(parentElement, (root) => new MaskPainter(root));
  instance.receive(unpack(data), setTriggerValue);
  return cleanUp;
}
