/** @import { Beside } from "../mask_painter/types.d.ts" */
/** @import { Cell, Host, Limits, Mark, Matrix, Point } from "../types.d.ts" */
/** @import { ExpectationHeader } from "./types.d.ts" */

import { makeScale } from "../marks/scale.js";
import { countBlocked, openCells, packBits, sameCells, unpackBits } from "../mask_painter/cells.js";
import { Painting } from "../mask_painter/painting.js";
import { enable, makeTool, onUndoKeys } from "../mask_painter/toolbar.js";
import { litPosition, marksOfCell } from "../shared/axis.js";
import { countOf, makeElement, setText } from "../shared/dom.js";
import { Events } from "../shared/events.js";
import { rowsWithoutKey } from "../shared/mask_planes.js";
import { must } from "../shared/must.js";
import { flagsOf, toBase64 } from "../shared/payload.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { tallestGrid } from "../shared/room.js";
import { lineText, nameOf } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { cellPositionLine, tooltipLine } from "../shared/tooltip.js";
import { countRows, withOneInRow } from "./marks.js";
import { MarksPanel } from "./panel.js";

const say = textsOf("expectation/element");
const ROOM = { height: 560, widest: 900, title: 22, said: 26 };
const CELL = { least: 26, usual: 44, high: 64, window: 900 }; // to be marked in; the largest, by the height of the window
const MARKED = [0, 1.6]; // the scale on which a mark has a middling colour, under a sign that can be read
/** @type {Beside} */
const NO_OTHERS = { masks: null, others: openCells(0), reasons: [] };

/** A covered matrix to mark with what is expected.
 *  @extends {Picture<ExpectationHeader>} */
class Expectation extends Picture {
  /** @type {Limits} */ limits;
  /** @type {Pick<Matrix, "rows" | "columns" | "rowAxis" | "columnAxis">} */ axes;
  /** @type {string} */ scope;

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
    this.status = makeElement("div", "expectation-status", { role: "status" });
    this.frame = makeElement("div", "expectation", {}, [this.tools, this.marks.element, this.status]);
    onUndoKeys(this.frame, (direction) => this.step(direction));
    this.root.prepend(this.frame);
  }

  get cells() {
    return this.painting.cells;
  }

  get columns() {
    return this.data.columns.labels.length;
  }

  /** The row that is lit while no other is pointed at; -1 where all are asked for alike. */
  get rowAskedFor() {
    const { kind, one_row: isOneRow, row } = this.data;
    return isOneRow || kind === "most" ? row : -1;
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
    const { columns: columnAxis, rows: rowAxis } = this.data;
    this.limits = {
      width: Math.min(this.width, ROOM.widest),
      height: ROOM.height,
      tallest: tallestGrid(this.marks.element, rowAxis.labels.length, CELL.least) - ROOM.title - ROOM.said,
      cell: innerHeight < CELL.window ? CELL.usual : CELL.high,
    };
    this.axes = { rows: rowAxis.labels.length, columns: columnAxis.labels.length, rowAxis, columnAxis };
    this.paint();
  }

  /** Draw the marks, and say how many there are. */
  paint() {
    const { cells } = this;
    this.showMarks();
    this.marks.light(this.rowAskedFor, -1);
    enable(this.undo, this.painting.history.canUndo);
    enable(this.redo, this.painting.history.canRedo);
    enable(this.clear, cells.some(Boolean));
    setText(this.status, this.counted());
  }

  showMarks() {
    const { cells, data } = this;
    const values = Float32Array.from(cells);
    const { rows, columns } = this.axes;
    const blocked = flagsOf(data.arrays.hatched);
    /** @type {Matrix} */
    const matrix = { ...this.axes, values, dtype: "f4", blocked, emptyRows: rowsWithoutKey(blocked, rows, columns) };
    const look = {
      scale: makeScale(this.theme, "sequential_neutral", MARKED),
      title: say("expected"),
      valueName: "marked",
      limits: this.limits,
      labelled: true,
      description: () => say("expected_in_words", { counted: this.counted() }),
      rowTexts: () => this.marksInWords(),
    };
    this.marks.show(matrix, look);
  }

  /** The marks row by row. */
  marksInWords() {
    const { cells, columns } = this;
    const { rows, columns: columnAxis } = this.data;
    return rows.labels.map((_, row) => {
      const said = columnAxis.labels.flatMap((_label, column) =>
        cells[row * columns + column] ? [say("marked", { cell: nameOf(columnAxis, column) })] : []);
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
    if (this.painting.step(direction)) this.tell();
  }

  tell() {
    this.paint();
    this.events.send("mark", { cells: toBase64(packBits(this.cells)) });
  }

  // Pointing.

  /** @param {number} row @param {number} column @param {Point} point */
  hover(row, column, point) {
    this.marks.light(row, column);
    this.pointAt(this.linesOf(row, column), point, marksOfCell(this.data.rows, this.data.columns, row, column));
  }

  /** @param {number} row @param {number} column */
  linesOf(row, column) {
    const { kind, rows, columns } = this.data;
    const isMarked = this.cells[row * this.columns + column];
    const expected = kind === "seen" ? (isMarked ? say("sees") : say("sees_not")) : isMarked ? say("largest") : "";
    const lines = [cellPositionLine(rows, columns, row, column)];
    if (expected) lines.push(tooltipLine("tooltip-note", say("you_expect", { expected })));
    return lines;
  }

  /** @param {Mark[]} marks */
  onHover(marks) {
    const { rows, columns } = this.data;
    const row = litPosition(rows, "query", marks);
    this.marks.light(row < 0 ? this.rowAskedFor : row, litPosition(columns, "key", marks));
  }
}

export const render = rendererOf(Expectation);
