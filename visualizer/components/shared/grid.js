/** @import { Axis, Cell, Geometry, Matrix, PanelHost, PanelLook, Pen } from "../types.d.ts" */

import { axisNamesWidth, drawLabels } from "../marks/axes.js";
import { drawEmptyRows, drawMatrix, drawNumbers, signCanvas } from "../marks/cells.js";
import { hatchCanvas } from "../marks/hatch.js";
import { contextOf, sizedContext } from "../marks/pen.js";
import { drawMarked } from "../marks/rule.js";
import { drawnBy } from "../marks/svg_pen.js";
import { countedAs, labelBeside } from "./axis.js";
import { clamp, makeElement, setBox, setText, whenIdle } from "./dom.js";
import { cellUnder, panelGeometry, readsUpwards } from "./grid_layout.js";
import { hasModifier, stepOfKey } from "./keys.js";
import { drawWhenNear } from "./near.js";
import { Reading } from "./reading.js";
import { describeCell, describeRows, lineText } from "./rows.js";
import { textsOf } from "./texts.js";
import { axisRole } from "./tooltip.js";
import { pixelRatioOf } from "./zoom.js";

const say = textsOf("shared/grid");
const labelsCache = new WeakMap();

/**
 * One matrix as a panel: title, pixels, hatch, labels, numbers, and lights for what is pointed at.
 * On a scale that goes below zero, lines stand over such numbers where they are not written. A panel is drawn by
 * `show(matrix, look)` and lit by `light(row, column)`.
 */
export class MatrixPanel {
  /** @type {Matrix} */ matrix;
  /** @type {PanelLook} */ look;
  /** @type {Reading} */ reading;
  /** @type {{ matrix: Matrix, title?: string, isInWords: boolean } | undefined} */ said;
  /** @type {{ matrix: Matrix, around: string, colors: string } | undefined} */ painted;
  /** @type {Geometry} */ geometry;
  /** @type {number} */ pixelRatio;

  /** @param {PanelHost} host */
  constructor(host) {
    this.host = host;
    /** @type {Cell | null} */ this.cursor = null;
    /** @type {Cell | null} */ this.selected = null;
    this.lit = { row: -1, column: -1 };
    const canTitle = Boolean(host.title);
    this.dot = makeElement("span", "matrix-dot", { "aria-hidden": "true" });
    this.titleText = makeElement("span", "matrix-title-text");
    this.title = makeElement(canTitle ? "button" : "div", "matrix-title", canTitle ? { type: "button" } : {}, [
      this.dot,
      this.titleText,
    ]);
    this.subtitle = makeElement("div", "matrix-subtitle");
    this.pixels = makeElement("canvas", "matrix-pixels", { role: "img" });
    this.overlay = makeElement("canvas", "matrix-overlay", { "aria-hidden": "true" });
    this.rowLight = makeElement("div", "light light-row");
    this.columnLight = makeElement("div", "light light-column");
    this.cellLight = makeElement("div", "light light-cell");
    this.selection = makeElement("div", "light light-selected");
    this.spot = makeElement("div", "light light-spot");
    this.rowName = makeElement("div", "light-name", { hidden: "" });
    this.columnName = makeElement("div", "light-name", { hidden: "" });
    this.live = makeElement("div", "visually-hidden", { "aria-live": "polite" });
    this.reading = new Reading();
    this.plot = makeElement("div", "matrix-plot", { tabindex: "0", role: "application" }, [
      this.spot,
      this.rowLight,
      this.columnLight,
      this.selection,
      this.cellLight,
    ]);
    this.body = makeElement("div", "matrix-body", {}, [
      this.pixels,
      this.overlay,
      this.plot,
      this.rowName,
      this.columnName,
      this.live,
      this.reading.element,
    ]);
    this.caption = makeElement("figcaption", "matrix-caption", {}, [this.title, this.subtitle]);
    this.element = makeElement("figure", "matrix", {}, [this.caption, this.body]);
    this.listen();
  }

  listen() {
    const { plot, host } = this;
    this.listenToPointer();
    plot.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && host.leave());
    plot.addEventListener("keydown", (event) => this.onKey(event));
    plot.addEventListener("focus", () => plot.matches(":focus-visible") && this.moveCursor(0, 0));
    plot.addEventListener("blur", () => {
      this.cursor = null;
      setText(this.live, "");
      host.leave();
    });
    this.title.addEventListener("click", () => host.title?.(this));
  }

  listenToPointer() {
    const { plot, host } = this;
    plot.addEventListener("pointermove", (event) => this.pointAt(event));
    plot.addEventListener("click", (event) => {
      const { row, column } = this.cellAt(event);
      this.pointAt(event);
      host.select(this, row, column);
    });
  }

  /** Draw a matrix. @param {Matrix} matrix @param {PanelLook} look */
  show(matrix, look) {
    this.matrix = matrix;
    this.look = look;
    const pixelRatio = pixelRatioOf(this.element);
    const options = { labelled: look.labelled, font: look.scale.theme.font, pixelRatio };
    this.geometry = panelGeometry(matrix, look.limits, options);
    this.pixelRatio = pixelRatio;
    this.showTexts();
    this.place();
    setBox(this.overlay, 0, 0, this.overlayWidth(), this.geometry.top + this.geometry.plotHeight);
    this.drawLights();
    this.select(this.selected);
    this.forgetWords();
    drawWhenNear(this.element, () => {
      this.paint();
      this.describeSoon();
    });
  }

  /** Draw the pixels, and what stands over them where it has changed. */
  paint() {
    const { matrix, geometry, pixelRatio } = this;
    const { low, high, palette, curve, theme } = this.look.scale;
    const around = JSON.stringify([theme.name, theme.background, theme.text, theme.font, pixelRatio, geometry]);
    const colors = JSON.stringify([palette, low, high, curve]);
    const before = this.painted;
    this.painted = { matrix, around, colors };
    const isAround = before?.around === around;
    if (isAround && before.matrix === matrix && before.colors === colors) return;
    drawMatrix(this.pixels, matrix, this.look.scale, geometry.plotWidth * pixelRatio, geometry.plotHeight * pixelRatio);
    const showsNumbers = geometry.numbers || low < 0;
    if (!isAround || showsNumbers || !looksAlike(before.matrix, matrix)) this.drawOverlay();
  }

  showTexts() {
    const { title, subtitle, axesInWords, color, hint } = this.look;
    setText(this.titleText, title ?? "");
    setText(this.subtitle, subtitle ?? "");
    this.subtitle.title = axesInWords ?? "";
    this.subtitle.hidden = !subtitle;
    this.caption.hidden = !title && !subtitle;
    this.dot.hidden = !color;
    this.dot.style.background = color ?? "";
    const keys = say("keys", { title: title || say("matrix"), hint: hint ? ` (${hint})` : "" });
    this.plot.setAttribute("aria-label", keys);
    this.plot.classList.toggle("matrix-plot-leads", Boolean(hint));
  }

  /** The words are of another matrix: until this one is in words, once it is near the window, it has its title. */
  forgetWords() {
    const { matrix, look } = this;
    if (this.said?.matrix === matrix && this.said.title === look.title && !look.rowTexts) return;
    this.said = { matrix, title: look.title, isInWords: false };
    this.reading.forget();
    this.endDescribing?.();
    this.pixels.setAttribute("aria-label", look.title || say("matrix"));
  }

  /** Put the matrix into words, unless it is already: in brief, and row by row. */
  describeSoon() {
    if (!this.said || this.said.isInWords) return;
    this.said.isInWords = true;
    const { matrix, look } = this;
    this.endDescribing = whenIdle(() => this.pixels.setAttribute("aria-label", look.description()));
    this.reading.writeSoon(look.title || say("the_matrix"), () => look.rowTexts?.() ?? describeRows(matrix));
  }

  place() {
    const { left, top, plotWidth, plotHeight } = this.geometry;
    setBox(this.body, null, null, left + plotWidth, top + plotHeight);
    setBox(this.pixels, left, top, plotWidth, plotHeight);
    setBox(this.plot, left, top, plotWidth, plotHeight);
    this.caption.style.maxWidth = `${Math.max(left + plotWidth, this.look.limits.width)}px`;
    this.rowName.className = `light-name light-name-row position-${axisRole(this.matrix.rowAxis)}`;
    this.rowName.style.maxWidth = `${Math.max(left - 2, 60)}px`;
    this.columnName.className = `light-name light-name-column position-${axisRole(this.matrix.columnAxis)}`;
  }

  /** The room of the labels, which may stick out of the plot. */
  overlayWidth() {
    const { left, plotWidth, labelled } = this.geometry;
    return Math.max(left + plotWidth, labelled ? axisNamesWidth(this.matrix, left, this.look.scale.theme.font) : 0);
  }

  drawOverlay() {
    const { geometry, matrix, pixelRatio } = this;
    const { left, top, plotWidth, plotHeight, labelled } = geometry;
    const wide = this.overlayWidth();
    const context = sizedContext(
      this.overlay, Math.round(wide * pixelRatio), Math.round((top + plotHeight) * pixelRatio));
    const hatchWidth = Math.max(1, Math.round(plotWidth * pixelRatio));
    const hatchHeight = Math.max(1, Math.round(plotHeight * pixelRatio));
    const { theme } = this.look.scale;
    const hatch = hatchCanvas(
      matrix.blocked, matrix.rows, matrix.columns, hatchWidth, hatchHeight, theme, pixelRatio);
    if (hatch) context.drawImage(hatch, Math.round(left * pixelRatio), Math.round(top * pixelRatio));
    const sign = this.look.scale.low < 0 && !geometry.numbers // numbers in the cells carry their signs
      ? signCanvas(matrix, this.look.scale, hatchWidth, hatchHeight, pixelRatio)
      : null;
    if (sign) context.drawImage(sign, Math.round(left * pixelRatio), Math.round(top * pixelRatio));
    context.translate(Math.round(left * pixelRatio), Math.round(top * pixelRatio));
    drawMarked(context, matrix, hatchWidth, hatchHeight, theme);
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (labelled) context.drawImage(this.labelsCanvas(), 0, 0);
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    if (geometry.numbers) drawNumbers(context, matrix, geometry, this.look.scale);
    if (matrix.emptyRows) drawEmptyRows(context, matrix, geometry, theme);
  }

  /**
   * The labels as a canvas as large as the overlay, which has the page styled for its font. Heads share their axes: the last
   * labels drawn are kept with the rows'.
   */
  labelsCanvas() {
    const { geometry, matrix, pixelRatio } = this;
    const { rowAxis, columnAxis } = matrix;
    const around = this.painted?.around;
    const known = labelsCache.get(rowAxis);
    if (known?.around === around && known.columnAxis === columnAxis) return known.canvas;
    /** @param {Pen} pen */
    const draw = (pen) => {
      pen.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
      drawLabels(pen, matrix, geometry, this.look.scale.theme);
    };
    const canvas = new OffscreenCanvas(this.overlay.width, this.overlay.height);
    draw(contextOf(canvas));
    labelsCache.set(rowAxis, { around, columnAxis, canvas: drawnBy(canvas, draw) });
    return canvas;
  }

  /** The row and column under a pointer. @param {MouseEvent} event */
  cellAt(event) {
    return cellUnder(this.plot.getBoundingClientRect(), event, this.matrix.rows, this.matrix.columns);
  }

  /** @param {MouseEvent} event */
  pointAt(event) {
    const { row, column } = this.cellAt(event);
    this.host.hover(this, row, column, { x: event.clientX, y: event.clientY });
  }

  /** Light a row and a column; -1 is none. @param {number} row @param {number} column */
  light(row, column) {
    if (row === this.lit.row && column === this.lit.column) return;
    this.lit = { row, column };
    if (this.geometry) this.drawLights();
  }

  drawLights() {
    const { row, column } = this.lit;
    const { cellWidth, cellHeight, plotWidth, plotHeight } = this.geometry;
    const { rows, columns } = this.matrix;
    const hasRow = row >= 0 && row < rows;
    const hasColumn = column >= 0 && column < columns;
    const [height, width] = [Math.max(cellHeight, 2), Math.max(cellWidth, 2)];
    showBox(this.rowLight, hasRow, 0, row * cellHeight, plotWidth, height);
    showBox(this.columnLight, hasColumn, column * cellWidth, 0, width, plotHeight);
    showBox(this.cellLight, hasRow && hasColumn, column * cellWidth, row * cellHeight, width, height);
    this.nameLit(hasRow ? row : -1, hasColumn ? column : -1);
  }

  /** Write the lit row's and column's names beside the plot. @param {number} row @param {number} column */
  nameLit(row, column) {
    const { left, top, cellWidth, cellHeight, labelled, columnLabels } = this.geometry;
    this.rowName.hidden = !labelled || row < 0;
    this.columnName.hidden = !labelled || column < 0;
    if (!this.rowName.hidden) {
      setText(this.rowName, this.nameOf(this.matrix.rowAxis, row, this.geometry.rowLabels === "all"));
      this.rowName.style.transform = `translate(${left - 4}px, ${top + (row + 0.5) * cellHeight}px) translate(-100%, -50%)`;
    }
    if (!this.columnName.hidden) {
      setText(this.columnName, this.nameOf(this.matrix.columnAxis, column, columnLabels !== "ticks"));
      const upwards = readsUpwards(this.matrix.columnAxis.labels[column], columnLabels);
      const turn = upwards ? "rotate(-90deg) translate(0, -50%)" : "translate(-50%, -100%)";
      this.columnName.style.transform = `translate(${left + (column + 0.5) * cellWidth}px, ${top - 3}px) ${turn}`;
    }
  }

  /** @param {Axis} axis @param {number} index @param {boolean} short */
  nameOf(axis, index, short) {
    const [number, label] = [countedAs(axis, index), labelBeside(axis, index)];
    return label ? (short ? label : `${number} ${label}`) : String(number);
  }

  /** Outline one cell as selected; null is none. @param {Cell | null} cell */
  select(cell) {
    this.selected = cell;
    if (!this.geometry) return;
    const { cellWidth, cellHeight } = this.geometry;
    const inside = cell !== null && cell.row < this.matrix.rows && cell.column < this.matrix.columns;
    const [width, height] = [Math.max(cellWidth, 5), Math.max(cellHeight, 5)];
    const left = (cell?.column ?? 0) * cellWidth + (cellWidth - width) / 2;
    const top = (cell?.row ?? 0) * cellHeight + (cellHeight - height) / 2;
    showBox(this.selection, inside, left, top, width, height);
  }

  /** Light a cell, or all of a row or column, and dim all others; nothing where neither is given. */
  bringOut({ row = -1, column = -1 }) {
    const { cellWidth, cellHeight, plotWidth, plotHeight } = this.geometry;
    const [left, width] = column < 0 ? [0, plotWidth] : [column * cellWidth, cellWidth];
    const [top, height] = row < 0 ? [0, plotHeight] : [row * cellHeight, cellHeight];
    showBox(this.spot, row >= 0 || column >= 0, left, top, width, height);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = stepOfKey(event.key, this.matrix.columns);
    if (hasModifier(event)) return;
    if (step) this.moveCursor(...step);
    else if ((event.key === "Enter" || event.key === " ") && this.cursor) {
      this.host.select(this, this.cursor.row, this.cursor.column);
    } else if (event.key === "Escape") this.host.leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Move the keyboard's cell; it starts at the selected or else the first cell.
   *  @param {number} rowStep @param {number} columnStep */
  moveCursor(rowStep, columnStep) {
    const { rows, columns } = this.matrix;
    const from = this.cursor ?? this.selected ?? { row: 0, column: 0 };
    const step = this.cursor ? [rowStep, columnStep] : [0, 0];
    this.cursor = { row: clamp(from.row + step[0], 0, rows - 1), column: clamp(from.column + step[1], 0, columns - 1) };
    const { row, column } = this.cursor;
    const box = this.plot.getBoundingClientRect();
    const point = {
      x: box.left + ((column + 1) / columns) * box.width,
      y: box.top + ((row + 1) / rows) * box.height,
    };
    this.host.hover(this, row, column, point);
    this.sayCursor();
  }

  /** Say the keyboard's cell to who does not see it. */
  sayCursor() {
    if (!this.cursor) return;
    const lines = describeCell(this.matrix, this.look.valueName, this.cursor.row, this.cursor.column);
    setText(this.live, lines.map(lineText).join(", "));
  }
}

/** True if two matrices have the same hatch and labels. @param {Matrix} one @param {Matrix} other */
function looksAlike(one, other) {
  const names = /** @type {const} */ (["blocked", "emptyRows", "marked", "rowAxis", "columnAxis"]);
  return names.every((name) => one[name] === other[name]);
}

/** The same by transform, which moves without a new layout; hides the element when not `visible`.
 *  @param {HTMLElement} element @param {boolean} visible @param {number} left @param {number} top
 *  @param {number} width @param {number} height */
function showBox(element, visible, left, top, width, height) {
  setStyle(element, "visibility", visible ? "visible" : "hidden");
  if (!visible) return;
  setStyle(element, "width", `${width}px`);
  setStyle(element, "height", `${height}px`);
  setStyle(element, "transform", `translate(${left}px, ${top}px)`);
}

/** Set a style only when it differs: an unchanged element is not laid out again.
 *  @param {HTMLElement} element @param {"visibility" | "width" | "height" | "transform"} name
 *  @param {string} value */
function setStyle(element, name, value) {
  if (element.style[name] !== value) element.style[name] = value;
}
