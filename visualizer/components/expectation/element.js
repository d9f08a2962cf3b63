/** @import { Beside } from "../mask_painter/types.d.ts" */
/** @import { Cell, Host, Limits, Mark, Matrix, Point } from "../types.d.ts" */
/** @import { Computed, ExpectationHeader } from "./types.d.ts" */

import { makeScale } from "../marks/scale.js";
import { countBlocked, openCells, packBits, sameCells, unpackBits } from "../mask_painter/cells.js";
import { Painting } from "../mask_painter/painting.js";
import { directionOfShortcut, enable, makeTool } from "../mask_painter/toolbar.js";
import { litPosition, marksOfCell } from "../shared/axis.js";
import { countOf, makeElement, setText } from "../shared/dom.js";
import { Events } from "../shared/events.js";
import { makeLegend } from "../shared/legend.js";
import { rowsWithoutKey } from "../shared/mask_planes.js";
import { must } from "../shared/must.js";
import { flagsOf, floats, toBase64 } from "../shared/payload.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { tallestGrid } from "../shared/room.js";
import { describeCell, describeMatrix, lineText, nameOf } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { cellPositionLine, tooltipLine } from "../shared/tooltip.js";
import { countRows, withOneInRow } from "./marks.js";
import { ComputedPanel, drawnSign, MarksPanel } from "./panels.js";

const say = textsOf("expectation/element");
const ROOM = { gap: 28, height: 560, widest: 900, narrow: 640, title: 22, said: 26 };
const CELL = { least: 26, usual: 44, high: 64, window: 900 }; // to be marked in; the largest, by the height of the window
const MARKED = [0, 1.6]; // the scale on which a mark has a middling colour, under a sign that can be read
const SIGNS = [[1, say("as_expected")], [2, say("wrong")], [3, say("missed")]];
/** @type {Beside} */
const NO_OTHERS = { masks: null, others: openCells(0), reasons: [] };
const NOT_COVERED = say("computed");

/** A covered matrix to mark with what is expected; once Python reveals it, the marks and the matrix side by side.
 *  @extends {Picture<ExpectationHeader>} */
class Expectation extends Picture {
  /** @type {Limits} */ limits;
  /** @type {Pick<Matrix, "rows" | "columns" | "rowAxis" | "columnAxis">} */ axes;
  /** @type {Matrix} */ matrix;
  /** @type {string} */ scope;
  valueName = "";

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "expectation");
    this.events = new Events(host);
    this.painting = new Painting();
    this.undo = makeTool("Undo", () => this.step("undo"));
    this.redo = makeTool("Redo", () => this.step("redo"));
    this.clear = makeTool("Clear", () => this.change(new Uint8Array(this.cells.length)), say("clear"));
    this.tools = makeElement("div", "tools", {}, [this.undo, this.redo, this.clear]);
    this.marks = new MarksPanel(this, {
      select: (_panel, row, column) => this.toggle({ row, column }),
      hover: (_panel, row, column, point) => this.hover(row, column, point),
      leave: () => this.leave(),
    });
    this.computed = new ComputedPanel({
      select: () => {},
      hover: (_panel, row, column, point) => this.hover(row, column, point),
      leave: () => this.leave(),
    });
    this.status = makeElement("div", "expectation-status", { role: "status" });
    this.legend = makeLegend();
    this.signs = makeElement("div", "expectation-signs");
    this.panels = makeElement("div", "expectation-panels", {}, [this.marks.element, this.computed.element]);
    this.frame = makeElement("div", "expectation", {}, [this.tools, this.panels, this.legend.element, this.signs, this.status]);
    this.frame.addEventListener("keydown", (event) => this.onShortcut(event));
    this.root.prepend(this.frame);
  }

  get cells() {
    return this.painting.cells;
  }

  get columns() {
    return this.data.columns.labels.length;
  }

  get isRevealed() {
    return Boolean(this.data.computed);
  }

  /** True if no cell is right or wrong, since no row was marked: nothing stands beside what was computed. */
  get isBare() {
    return this.isRevealed && !this.data.arrays.codes.data.some(Boolean);
  }

  receive() {
    const { arrays, columns, rows, scope, seq } = this.data;
    const [rowCount, columnCount] = [rows.labels.length, columns.labels.length];
    const count = rowCount * columnCount;
    const cells = unpackBits(must(flagsOf(arrays.expected), "nothing is expected"), count);
    const areKnown = this.events.areKnown(seq);
    if (scope !== this.scope || this.cells.length !== count) this.painting.startAnew(rowCount, columnCount, cells, NO_OTHERS);
    else if (areKnown && !this.painting.hasStroke) this.painting.become(cells);
    this.scope = scope;
  }

  draw() {
    const { columns: columnAxis, rows: rowAxis, computed } = this.data;
    const isWide = this.width >= ROOM.narrow;
    const isBeside = this.isRevealed && !this.isBare && isWide;
    const width = isBeside ? Math.floor((this.width - ROOM.gap) / 2) - 2 : this.width; // without the frame's padding
    this.panels.classList.toggle("beside", isBeside);
    this.limits = {
      width: Math.min(width, ROOM.widest),
      height: ROOM.height,
      tallest: tallestGrid(this.panels, rowAxis.labels.length, CELL.least) - ROOM.title - ROOM.said,
      cell: innerHeight < CELL.window ? CELL.usual : CELL.high,
    };
    this.axes = { rows: rowAxis.labels.length, columns: columnAxis.labels.length, rowAxis, columnAxis };
    this.tools.hidden = this.isRevealed;
    this.computed.element.hidden = this.legend.element.hidden = !computed;
    if (this.isBare) this.marks.element.remove(); // hidden, it could wait for ever to come into sight
    else if (!this.marks.element.parentElement) this.panels.prepend(this.marks.element);
    this.signs.hidden = !computed || this.isBare;
    if (computed) this.drawComputed(computed);
    this.paint();
  }

  /** @param {Computed} computed */
  drawComputed({ title, name, palette, bounds, blocked_by: blockedBy }) {
    const { arrays } = this.data;
    const blocked = flagsOf(arrays.blocked);
    const { rows, columns } = this.axes;
    this.matrix = {
      ...this.axes,
      values: floats(arrays.values),
      dtype: arrays.values.dtype,
      blocked,
      blockedBy,
      emptyRows: rowsWithoutKey(blocked, rows, columns),
    };
    this.valueName = name;
    const scale = makeScale(this.theme, palette, bounds);
    const look = {
      scale,
      title: `${title}, ${NOT_COVERED}`,
      valueName: name,
      limits: this.limits,
      labelled: true,
      hasNumbers: true,
      description: () => describeMatrix(title, this.matrix),
    };
    this.computed.showSigned(this.matrix, look, arrays.codes.data);
    this.legend.update(scale, { text: name, blocked: Boolean(blocked?.some(Boolean)) });
    const signs = SIGNS.map(([code, text]) =>
      makeElement("span", "expectation-sign", {}, [drawnSign(code, this.theme), text]));
    this.signs.replaceChildren(...signs);
  }

  /** Draw the marks, and say how many there are. */
  paint() {
    const { cells, data, isBare, isRevealed } = this;
    if (!isBare) this.showMarks();
    this.lightAll(data.kind === "most" ? data.row : -1, -1);
    enable(this.undo, this.painting.history.canUndo);
    enable(this.redo, this.painting.history.canRedo);
    enable(this.clear, cells.some(Boolean));
    setText(this.status, isRevealed ? "" : this.counted());
  }

  showMarks() {
    const { cells, data } = this;
    const values = Float32Array.from(cells);
    const { rows, columns } = this.axes;
    const blocked = flagsOf(data.arrays.hatched);
    /** @type {Matrix} */
    const matrix = { ...this.axes, values, dtype: "f4", blocked, emptyRows: rowsWithoutKey(blocked, rows, columns) };
    const look = {
      scale: makeScale(this.theme, "sequential", MARKED),
      title: say("expected"),
      valueName: "marked",
      limits: this.limits,
      labelled: true,
      hasNumbers: false,
      description: () => say("expected_in_words", { counted: this.counted() }),
      rowTexts: () => this.marksInWords(),
    };
    this.marks.showSigned(matrix, look, this.isRevealed ? data.arrays.codes.data : null);
  }

  /** The marks row by row, and once revealed what became of each. */
  marksInWords() {
    const { cells, columns, isRevealed } = this;
    const { rows, columns: columnAxis, arrays } = this.data;
    return rows.labels.map((_, row) => {
      const said = columnAxis.labels.flatMap((_label, column) => {
        const i = row * columns + column;
        const sign = isRevealed ? SIGNS.find(([code]) => code === arrays.codes.data[i])?.[1] : cells[i] && say("marked");
        return sign ? [`${nameOf(columnAxis, column)} ${sign}`] : [];
      });
      return `${nameOf(rows, row)}: ${said.join(", ") || say("nothing")}`;
    });
  }

  counted() {
    const { cells, columns } = this;
    const { kind, row, rows, one_row: isOneRow } = this.data;
    if (isOneRow) return this.marksInWords()[row];
    if (kind === "seen") return say("cells", { cells: countOf(countBlocked(cells), "cell"), all: cells.length.toLocaleString("en") });
    return say("rows", { count: countRows(cells, columns), all: rows.labels.length });
  }

  // Marking: drawn at once, sent when a stroke ends.

  /** @param {Cell} place */
  press(place) {
    if (this.isRevealed) return;
    if (this.data.kind === "most") {
      this.toggle(place);
      return;
    }
    this.painting.begin(place, this.cells[place.row * this.columns + place.column] ? 0 : 1, false);
    this.drag(place);
  }

  /** @param {Cell} place */
  drag(place) {
    if (!this.painting.hasStroke) return;
    const before = this.cells;
    this.painting.drag(place);
    if (!sameCells(before, this.cells)) this.paint();
  }

  release() {
    if (this.painting.hasStroke && this.painting.end().isChanged) this.tell();
  }

  /** @param {Cell} place */
  toggle(place) {
    if (this.isRevealed) return;
    if (this.data.kind === "most") this.change(withOneInRow(this.cells, this.columns, place));
    else {
      this.press(place);
      this.release();
    }
    setText(this.marks.live, this.linesOf(place.row, place.column).map(lineText).join(", "));
  }

  /** @param {Uint8Array} cells */
  change(cells) {
    if (this.painting.become(cells)) this.tell();
  }

  /** @param {"undo" | "redo"} direction */
  step(direction) {
    if (!this.isRevealed && this.painting.step(direction)) this.tell();
  }

  tell() {
    this.paint();
    this.events.send("mark", { cells: toBase64(packBits(this.cells)) });
  }

  /** @param {KeyboardEvent} event */
  onShortcut(event) {
    const direction = directionOfShortcut(event);
    if (!direction) return;
    this.step(direction);
    event.preventDefault();
    event.stopPropagation();
  }

  // Pointing.

  /** @param {number} row @param {number} column @param {Point} point */
  hover(row, column, point) {
    this.lightAll(row, column);
    this.pointAt(this.linesOf(row, column), point, marksOfCell(this.data.rows, this.data.columns, row, column));
  }

  /** @param {number} row @param {number} column */
  linesOf(row, column) {
    const { kind, rows, columns } = this.data;
    const isMarked = this.cells[row * this.columns + column];
    const expected = kind === "seen" ? (isMarked ? say("sees") : say("sees_not")) : isMarked ? say("largest") : "";
    const lines = this.isRevealed
      ? describeCell(this.matrix, this.valueName, row, column)
      : [cellPositionLine(rows, columns, row, column)];
    if (expected) lines.push(tooltipLine("tooltip-note", say("you_expect", { expected })));
    return lines;
  }

  /** @param {Mark[]} marks */
  onHover(marks) {
    const { kind, rows, columns } = this.data;
    const row = litPosition(rows, "query", marks);
    this.lightAll(row < 0 && kind === "most" ? this.data.row : row, litPosition(columns, "key", marks));
  }

  /** @param {number} row @param {number} column */
  lightAll(row, column) {
    if (!this.isBare) this.marks.light(row, column);
    if (this.isRevealed) this.computed.light(row, column);
  }
}

export const render = rendererOf(Expectation);
