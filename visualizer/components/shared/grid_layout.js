/** @import { Axis, Cell, Geometry, Limits, Matrix } from "../types.d.ts" */

import { textContext } from "../marks/pen.js";
import { countedAs, labelBeside } from "./axis.js";
import { clamp, isOneCharacter } from "./dom.js";

export const LABEL_FONT_SIZE = 11;
export const LABEL_CELL = 12; // a cell this large has its own label
const LETTER_CELL = 9; // a cell this wide has room for a letter above it
const NUMBER_CELL = { width: 32, height: 18 }; // a cell this large shows its number
export const SQUARE_CELL = 8; // from this size on, cells are square
const NAMED_CELL = { size: 22, ratio: 8 }; // how far a cell of a long matrix grows along a side whose labels are words
const NUMBERED_CELL = { ratio: 2, side: 18 }; // the same along a side of numbers, and the least of that whole side
export const LONGEST_LABEL = 84;
const AXIS_LINE = 15;

/** @typedef {Geometry["columnLabels"]} ColumnLabels */
/** @typedef {Pick<Matrix, "rows" | "columns" | "rowAxis" | "columnAxis">} Sides */

const labelWidths = new WeakMap();

/**
 * The widest label of an axis in pixels, at most `axis.longest` or else LONGEST_LABEL.
 * @param {Axis} axis @param {string} font
 * @returns {number}
 */
function widestLabel(axis, font) {
  return measuredLabels(axis, font).width;
}

/** {width, letters} of the labels of an axis: the widest, and whether each is a single character.
 *  @param {Axis} axis @param {string} font */
function measuredLabels(axis, font) {
  const known = labelWidths.get(axis);
  if (known?.font === font) return known;
  const context = textContext(labelFont(font));
  let width = 0;
  for (const label of axis.labels) width = Math.max(width, context.measureText(label).width);
  width = Math.min(Math.ceil(width), axis.longest ?? LONGEST_LABEL);
  const measured = { font, width, letters: axis.labels.every(isOneCharacter) };
  labelWidths.set(axis, measured);
  return measured;
}

/** The font of labels, out of a family. @param {string} family */
export function labelFont(family) {
  return `${LABEL_FONT_SIZE}px ${family}`;
}

/** Every how many positions a tick stands, so that ticks are at least `distance` pixels apart.
 *  @param {number} cellSize @param {number} distance */
export function tickStep(cellSize, distance) {
  const steps = [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256, 512, 1024, 4096];
  return steps.find((step) => step * cellSize >= distance) ?? 8192;
}

/**
 * The places of all parts of a panel, in CSS pixels.
 * labelled: false for small pictures without any text.
 * @param {Sides} matrix @param {Limits} limits @param {{ labelled: boolean, font: string, pixelRatio: number }} look
 * @returns {Geometry}
 */
export function panelGeometry(matrix, limits, { labelled, font, pixelRatio }) {
  const { rows, columns } = matrix;
  let margins = labelled ? fullMargins(matrix, font, Infinity) : { left: 0, top: 0, columnLabels: /** @type {ColumnLabels} */ ("ticks") };
  let cell = cellSize(matrix, limits, margins, pixelRatio);
  if (labelled) {
    margins = fullMargins(matrix, font, cell.width, cell.height);
    const larger = cellSize(matrix, limits, margins, pixelRatio);
    const largerMargins = fullMargins(matrix, font, larger.width, larger.height);
    // Cells may grow into the room of labels that they are too small for, but not so far that the labels come back.
    if (largerMargins.left <= margins.left) [cell, margins] = [larger, largerMargins];
  }
  return {
    left: margins.left,
    top: Math.max(margins.top, limits.top ?? 0),
    cellWidth: cell.width,
    cellHeight: cell.height,
    plotWidth: cell.width * columns,
    plotHeight: cell.height * rows,
    labelled,
    rowLabels: cell.height >= LABEL_CELL ? "all" : "ticks",
    columnLabels: margins.columnLabels,
    numbers: labelled && cell.width >= NUMBER_CELL.width && cell.height >= NUMBER_CELL.height,
  };
}

/** The room left of and above a plot for its labels, given the size of its cells.
 *  @param {Sides} matrix @param {string} font @param {number} cellWidth */
export function fullMargins({ rows, rowAxis, columnAxis }, font, cellWidth, cellHeight = cellWidth) {
  const rowRoom = cellHeight >= LABEL_CELL ? widestLabel(rowAxis, font) : String(countedAs(rowAxis, rows)).length * 7;
  const { width: columnRoom, letters } = measuredLabels(columnAxis, font);
  const fits = cellWidth >= LETTER_CELL && (letters || columnRoom <= cellWidth - 2);
  // A number that does not fit is better left out than turned: its neighbours tell it.
  /** @type {ColumnLabels} */
  const columnLabels = fits ? "level" : cellWidth < LABEL_CELL || !isNamed(columnAxis) ? "ticks" : "upright";
  return {
    left: rowRoom + 8,
    top: AXIS_LINE + (columnLabels === "upright" ? columnRoom + 7 : 17),
    columnLabels,
  };
}

/** The width of a panel that its cells are large enough for labels. @param {Sides} matrix @param {string} font */
export function roomForLabels(matrix, font) {
  return fullMargins(matrix, font, LABEL_CELL).left + LABEL_CELL * matrix.columnAxis.labels.length;
}

/** True if the label of a column reads upwards: a single character never does, it is no narrower so.
 *  @param {string} label @param {string} columnLabels */
export function readsUpwards(label, columnLabels) {
  return columnLabels === "upright" && !isOneCharacter(label);
}

/** The size of one cell: square where that is readable, else as large as each side allows.
 *  @param {Sides} matrix @param {Limits} limits @param {{ left: number, top: number }} margins
 *  @param {number} pixelRatio */
function cellSize({ rows, columns, rowAxis, columnAxis }, limits, margins, pixelRatio) {
  const widest = Math.max(limits.width - margins.left, 40) / columns;
  const above = Math.max(margins.top, limits.top ?? 0);
  const highest = Math.min(limits.height, (limits.tallest ?? Infinity) - above) / rows;
  const square = Math.min(widest, highest, limits.cell);
  /** @param {number} width @param {number} height */
  const sized = (width, height) => ({
    width: wholePixels(Math.min(widest, width), pixelRatio),
    height: wholePixels(Math.min(highest, height), pixelRatio),
  });
  if (square >= SQUARE_CELL || rows === columns) {
    return sized(Math.max(square, limits.cellWidth ?? 0), Math.max(square, limits.cellHeight ?? 0));
  }
  /** @param {Axis} axis */
  const grown = (axis) => Math.max(square, Math.min(longestSide(axis, square), limits.cell));
  return sized(grown(columnAxis), grown(rowAxis));
}

/**
 * The cell under a pointer, or the nearest one; `box` is the plot's place in the window.
 * @param {Pick<DOMRect, 'left' | 'top' | 'width' | 'height'>} box @param {{clientX: number, clientY: number}} event
 * @param {number} rows @param {number} columns
 * @returns {Cell}
 */
export function cellUnder(box, { clientX, clientY }, rows, columns) {
  return {
    row: clamp(Math.floor(((clientY - box.top) / box.height) * rows), 0, rows - 1),
    column: clamp(Math.floor(((clientX - box.left) / box.width) * columns), 0, columns - 1),
  };
}

/** True if the labels of an axis are more than its numbers. @param {Axis} axis */
function isNamed(axis) {
  return axis.labels.some((_, index) => labelBeside(axis, index) !== "");
}

/** The growth along an axis of a cell that is too small as a square. @param {Axis} axis @param {number} square */
function longestSide(axis, square) {
  const { labels } = axis;
  if (isNamed(axis)) return clamp(NAMED_CELL.ratio * square, LABEL_CELL + 2, NAMED_CELL.size);
  return Math.max(NUMBERED_CELL.ratio * square, NUMBERED_CELL.side / labels.length);
}

/** A size rounded down to whole device pixels, so that cells are equally large; very small cells stay as they are.
 *  @param {number} size @param {number} pixelRatio */
function wholePixels(size, pixelRatio) {
  return size >= 3 ? Math.floor(size * pixelRatio) / pixelRatio : size;
}

/**
 * The number of panels side by side so that all are large and the whole gallery is not too high; a few more where that
 * fills every row.
 * @param {number} count @param {number} width
 * @param {{ gap: number, smallest: number, aspect: number, height: number }} room
 */
export function galleryColumns(count, width, { gap, smallest, aspect, height }) {
  const most = Math.max(1, Math.min(count, Math.floor((width + gap) / (smallest + gap))));
  /** @param {number} columns */
  const isLowEnough = (columns) => {
    const panelWidth = (width - gap * (columns - 1)) / columns;
    return Math.ceil(count / columns) * (panelWidth * aspect + 48) <= height;
  };
  let fewest = 1;
  while (fewest < most && !isLowEnough(fewest)) fewest++;
  for (let columns = fewest; columns <= most; columns++) {
    if (count % columns === 0) return columns;
  }
  return fewest;
}
