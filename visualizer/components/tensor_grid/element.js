/** @import { Axis, Host, Mark, Matrix, PanelHost, Point } from "../types.d.ts" */
/** @import { Panel, PanelCell, PanelLimits, TensorHeader } from "./types.d.ts" */

import { makeScale } from "../marks/scale.js";
import { litPosition, marksOfCell } from "../shared/axis.js";
import { makeElement, setText, whenIdle } from "../shared/dom.js";
import { Events } from "../shared/events.js";
import { FetchedPicture } from "../shared/fetched.js";
import { MatrixPanel } from "../shared/grid.js";
import { makeLegend } from "../shared/legend.js";
import { rowsWithoutKey } from "../shared/mask_planes.js";
import { isInWindow } from "../shared/near.js";
import { flagsOf, floats } from "../shared/payload.js";
import { rendererOf } from "../shared/picture.js";
import { roomBelow, tallestGrid } from "../shared/room.js";
import { describeCell, describeMatrix } from "../shared/rows.js";
import { tooltipLine } from "../shared/tooltip.js";
import { isWord, layoutEquation, layoutGallery, operatorRoom } from "./layout.js";

const TITLE = 42; // the height of what a matrix is called, on two lines
const OF_PATH = { foot: 8, least: 220 }; // what stays free below a matrix on a path, and the least height of that

/** @typedef {ReturnType<TensorGrid["makeItem"]>} Item */
/** @typedef {ReturnType<TensorGrid["makeGroup"]>} Group */

/** Several matrices: in a row like an equation, or as a gallery of small ones. @extends {FetchedPicture<TensorHeader>} */
class TensorGrid extends FetchedPicture {
  isSaved = true;
  /** @type {Matrix[]} */ matrices;
  /** @type {TensorHeader["arrays"]} */ matricesOf;
  /** @type {string} */ arrangement;
  /** @type {string} */ layout;
  /** @type {number | undefined} */ row;
  /** @type {Group[][]} */ lines;
  /** @type {PanelCell | null} */ pointed;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "tensor_grid");
    this.events = new Events(host);
    /** @type {Item[]} */ this.items = [];
    this.list = makeElement("div", "tensors");
    root.prepend(this.list);
  }

  receive() {
    this.list.className = `tensors tensors-${this.data.layout}`;
    if (this.data.arrays !== this.matricesOf) this.matrices = this.data.panels.map((panel, index) => this.matrixOf(panel, index));
    this.matricesOf = this.data.arrays;
  }

  /** @param {Panel} panel @param {number} index */
  matrixOf(panel, index) {
    const array = this.data.arrays[`values${index}`];
    const [rows, columns] = array.shape;
    const blocked = flagsOf(this.data.arrays[`blocked${index}`]);
    return {
      values: floats(array),
      dtype: array.dtype,
      rows,
      columns,
      rowAxis: this.data.axes[panel.rows],
      columnAxis: this.data.axes[panel.columns],
      blocked,
      blockedBy: panel.blocked_by,
      marked: flagsOf(this.data.arrays[`marked${index}`]),
      emptyRows: rowsWithoutKey(blocked, rows, columns),
    };
  }

  /** Make or drop panels so that there is one for each matrix, and put them on lines, grouped by shared scale.
   *  @param {number[][]} lines */
  arrange(lines) {
    const { panels, layout } = this.data;
    const groups = lines.map((line) => groupsByScale(panels, line));
    const arrangement = JSON.stringify([layout, groups]);
    if (arrangement === this.arrangement) return;
    this.arrangement = arrangement;
    if (this.layout !== layout) this.items = [];
    this.layout = layout;
    while (this.items.length < panels.length) this.items.push(this.makeItem());
    this.items.length = panels.length;
    this.lines = groups.map((inLine) => inLine.map((indices) => this.makeGroup(indices)));
    const elements = this.lines.map((line) => makeElement("div", "tensor-line", {}, line.map((group) => group.element)));
    this.list.replaceChildren(...elements);
  }

  makeItem() {
    /** @type {PanelHost} */
    const host = {
      hover: (panel, row, column, point) => this.hover(panel, row, column, point),
      leave: () => this.leave(),
      select: (panel, row, column) => this.select(panel, row, column),
    };
    if (this.data.layout === "wrap") host.title = (panel) => this.select(panel, null, null);
    const panel = new MatrixPanel(host);
    const operator = makeElement("div", "operator");
    return { panel, operator, element: makeElement("div", "tensor", {}, [operator, panel.element]) };
  }

  /** @param {number[]} indices */
  makeGroup(indices) {
    const legend = makeLegend();
    const row = makeElement("div", "tensor-group-row", {}, indices.map((index) => this.items[index].element));
    return { indices, row, legend, element: makeElement("div", "tensor-group", {}, [row, legend.element]) };
  }

  draw() {
    const { panels, layout } = this.data;
    const { lines, limits } =
      layout === "wrap"
        ? layoutGallery(this.matrices, this.width)
        : layoutEquation(panels, this.matrices, this.width, this.theme, { above: this.data.above, tallest: this.tallest() });
    this.arrange(lines);
    panels.forEach((panel, index) => this.drawPanel(panel, index, limits[index]));
    for (const line of this.lines) for (const group of line) this.drawLegend(group);
    if (layout !== "row") return;
    for (const line of lines) this.alignLine(line.map((index) => this.items[index]));
    this.followRow();
  }

  /** Once another row is chosen and all above is laid out, scroll to it; a picture below the window waits there. */
  followRow() {
    const row = this.data.selected?.[1];
    if (row === this.row || this.data.light) return;
    this.row = row;
    const chosen = this.items.find(({ panel }) => panel.selected);
    this.endFollowing?.(); // of a choice before: the page is not to move again once its person has scrolled
    this.endFollowing = chosen && whenIdle(() => isInWindow(chosen.element) && chosen.panel.selection.scrollIntoView({ block: "nearest" }));
  }

  /** A path lights rows, which are all in sight: how high its matrices are depends on the card above them. */
  roomBelow() {
    return this.data.light ? Math.max(OF_PATH.least, Math.round(roomBelow(this.list)) - OF_PATH.foot) : super.roomBelow();
  }

  tallest() {
    if (this.data.light) return this.height - TITLE;
    return tallestGrid(this.list, Math.max(...this.matrices.map(({ rows }) => rows))) - TITLE;
  }

  /** @param {Panel} panel @param {number} index @param {PanelLimits} limits */
  drawPanel(panel, index, limits) {
    const item = this.items[index];
    const matrix = this.matrices[index];
    setText(item.operator, panel.operator);
    item.operator.hidden = panel.operator === "";
    item.operator.classList.toggle("operator-word", isWord(panel.operator));
    item.panel.element.style.setProperty("--title-color", this.theme.roles[panel.role]);
    item.panel.element.style.width = this.data.layout === "row" ? `${limits.width}px` : "";
    item.panel.show(matrix, {
      scale: makeScale(this.theme, panel.palette, panel.bounds),
      title: panel.title,
      subtitle: this.data.light ? "" : panel.subtitle, // a path speaks of no shapes
      axesInWords: panel.axes_in_words,
      hint: panel.hint,
      valueName: lastOf(panel.name),
      description: () => describeMatrix(panel.title, matrix),
      limits,
      labelled: limits.labelled,
    });
    item.panel.select(this.selectedCell(panel.name));
    item.panel.bringOut(this.litIn(index));
  }

  /**
   * Let the plots of a line begin at one height, however long their titles are, and put every operator at the middle
   * of the lowest plot, so that an equation reads along one line. Before a panel alone, it stands beside the title.
   * @param {Item[]} items
   */
  alignLine(items) {
    for (const { panel } of items) panel.caption.style.minHeight = "";
    const caption = Math.max(...items.map(({ panel }) => panel.caption.offsetHeight));
    const lowest = Math.min(...items.map(({ panel }) => panel.geometry.plotHeight));
    for (const { operator, panel } of items) {
      panel.caption.style.minHeight = `${caption}px`;
      const isAlone = items.length === 1;
      operator.style.height = isAlone ? "18px" : `${lowest}px`;
      operator.style.marginTop = isAlone ? "0" : `${caption + 4 + panel.geometry.top}px`;
    }
  }

  /** @param {string} name */
  selectedCell(name) {
    const selected = this.data.selected;
    return selected && selected[0] === name ? { row: selected[1], column: selected[2] } : null;
  }

  /** The lights of a path in a panel: the selected cell, its row or its column; of an input what that is made from.
   *  @param {number} index */
  litIn(index) {
    const { selected, light, panels } = this.data;
    if (!selected || !light) return {};
    const made = panels.findIndex(({ name }) => name === selected[0]);
    const cell = { row: light === "column" ? -1 : selected[1], column: light === "row" ? -1 : selected[2] };
    if (index === made) return cell;
    const { rowAxis, columnAxis } = this.matrices[index];
    const marks = marksOfCell(this.matrices[made].rowAxis, this.matrices[made].columnAxis, cell.row, cell.column);
    const row = rowAxis.name === "vocabulary" ? this.data.looked_up : litPosition(rowAxis, "query", marks);
    if (row >= 0) return { row };
    return { column: Math.max(litPosition(columnAxis, "key", marks), this.sharedFeature(columnAxis, { index: made, ...cell })) };
  }

  /** @param {Group} group */
  drawLegend({ indices, legend }) {
    const panel = this.data.panels[indices[0]];
    const { panel: first } = this.items[indices[0]];
    const beforePanel = operatorRoom(panel.operator, this.theme.font);
    legend.element.style.marginLeft = `${beforePanel + first.geometry.left}px`;
    const scale = makeScale(this.theme, panel.palette, panel.bounds);
    legend.element.classList.toggle("legend-lined", scale.low < 0 && !first.geometry.numbers);
    legend.update(scale, {
      blocked: indices.some((index) => this.matrices[index].blocked?.some(Boolean)),
    });
  }

  /** @param {MatrixPanel} panel */
  indexOf(panel) {
    return this.items.findIndex((item) => item.panel === panel);
  }

  /** @param {MatrixPanel} panel @param {number} row @param {number} column @param {Point} point */
  hover(panel, row, column, point) {
    const index = this.indexOf(panel);
    const { rowAxis, columnAxis } = this.matrices[index];
    this.pointed = { index, row, column };
    const marks = marksOfCell(rowAxis, columnAxis, row, column);
    this.lightAll(marks);
    panel.light(row, column);
    const lines = describeCell(this.matrices[index], lastOf(this.data.panels[index].name), row, column);
    const { title, hint } = this.data.panels[index];
    if (this.data.layout === "wrap") lines.unshift(tooltipLine("tooltip-head", title));
    if (hint) lines.push(tooltipLine("tooltip-hint", hint));
    this.pointAt(lines, point, marks);
  }

  /** @param {Mark[]} marks */
  onHover(marks) {
    this.pointed = null;
    this.lightAll(marks);
  }

  /** Light in every panel what the marks name, and the features that the pointed cell shares with other panels.
   *  @param {Mark[]} marks */
  lightAll(marks) {
    this.items.forEach(({ panel }, index) => {
      const { rowAxis, columnAxis } = this.matrices[index];
      const row = Math.max(litPosition(rowAxis, "query", marks), this.sharedFeature(rowAxis));
      const column = Math.max(litPosition(columnAxis, "key", marks), this.sharedFeature(columnAxis));
      panel.light(row, column);
    });
  }

  /** The position on an axis of features that a cell of a panel is on too, -1 for none. @param {Axis} axis */
  sharedFeature(axis, cell = this.pointed) {
    if (!cell || axis.sequence) return -1;
    const { index, row, column } = cell;
    const { rowAxis, columnAxis } = this.matrices[index];
    /** @param {Axis} other */
    const same = (other) => !other.sequence && other.name === axis.name && other.labels.length === axis.labels.length;
    if (same(rowAxis)) return row;
    return same(columnAxis) ? column : -1;
  }

  /** @param {MatrixPanel} panel @param {number | null} row @param {number | null} column */
  select(panel, row, column) {
    const index = this.indexOf(panel);
    const { name } = this.data.panels[index];
    if (row !== null && column !== null) {
      this.items.forEach((item) => item.panel.select(null));
      panel.select({ row, column });
    }
    this.events.send("select", { panel: name, index, row, column });
  }
}

/** The last part of a stage's name. @param {string} name */
function lastOf(name) {
  return name.slice(name.lastIndexOf(".") + 1);
}

/** The indices of a line's neighbouring panels that share one scale.
 *  @param {Panel[]} panels @param {number[]} line */
function groupsByScale(panels, line) {
  /** @type {number[][]} */
  const groups = [];
  let last = "";
  for (const index of line) {
    const scale = JSON.stringify([panels[index].palette, panels[index].bounds]);
    if (scale === last) groups[groups.length - 1].push(index);
    else groups.push([index]);
    last = scale;
  }
  return groups;
}

export const render = rendererOf(TensorGrid);
