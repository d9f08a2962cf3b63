/** @import { Matrix, Theme } from "../types.d.ts" */
/** @import { Panel, PanelLimits, Piece } from "./types.d.ts" */

import { textContext } from "../marks/pen.js";
import { clamp } from "../shared/dom.js";
import { fullMargins, galleryColumns, LABEL_CELL, panelGeometry, SQUARE_CELL } from "../shared/grid_layout.js";

const GAP = 12; // between the panels of a line
const OPERATOR = { least: 16, gap: 8 }; // the width of a sign, and the room between it and its panel
const PANEL_TEXT = { least: 200, most: 260 }; // how wide a panel is at least, by its title
const TALLEST_PLOT = 460; // on a low screen, where rows would become too low to be read
const LOW_ROW = 20; // what a row needs at least before a plot is made as low as the screen
const ABOVE_PLOT = 455; // what stands above a plot on the page, about
const HIGHEST_PLOT = 720;
const LARGEST_CELL = { least: 40, most: 64, rows: 18 }; // this many rows of the largest cells are a screen
const WIDE_CELL = 1.5; // how much wider than high a cell may be where that fills the page
const GALLERY = { gap: 20, smallest: 150, aspect: 1.15, height: 820, labelled: 170 };

/**
 * An equation's lines: on one line where every panel's text fits, else on as many as that needs. An operator stands
 * before its panel, so that it never ends a line.
 * `above` is how many pixels more than usual stand above it, `tallest` the most height of a grid with its labels.
 * Returns {lines: lists of indices, limits: for each panel what `panelGeometry` takes}.
 * @param {Panel[]} panels @param {Matrix[]} matrices @param {number} width @param {Theme} theme
 */
export function layoutEquation(panels, matrices, width, theme, { above = 0, tallest = Infinity } = {}) {
  const pieces = panels.map((panel, index) => ({
    index,
    matrix: matrices[index],
    operator: operatorRoom(panel.operator, theme.font),
    least: leastWidth(panel, theme.font, width),
    left: fullMargins(matrices[index], theme.font, LABEL_CELL).left,
  }));
  const lines = breakLines(pieces, width);
  /** @type {PanelLimits[]} */
  const limits = [];
  for (const line of lines) {
    const tops = [];
    lineLimits(line, width, above, tallest).forEach((limit, i) => (limits[line[i].index] = { ...limit, tallest, labelled: true }));
    const options = { labelled: true, font: theme.font, pixelRatio: window.devicePixelRatio || 1 };
    for (const { index } of line) tops.push(panelGeometry(matrices[index], limits[index], options).top);
    for (const { index } of line) limits[index].top = Math.max(...tops);
  }
  return { lines: lines.map((line) => line.map(({ index }) => index)), limits };
}

/** The room that an operator takes before its panel. @param {string} operator @param {string} font */
export function operatorRoom(operator, font) {
  if (!operator) return 0;
  const size = isWord(operator) ? 13 : 20;
  return Math.max(OPERATOR.least, Math.ceil(textWidth(operator, `${size}px ${font}`))) + OPERATOR.gap;
}

/** True if an operator is a word, such as "where". @param {string} operator */
export function isWord(operator) {
  return operator.length > 1;
}

/** The least width of a panel: its title is not cut.
 *  @param {Panel} panel @param {string} font @param {number} width */
function leastWidth({ title, operator }, font, width) {
  const needed = clamp(Math.ceil(textWidth(title, `600 13px ${font}`)) + 2, PANEL_TEXT.least, PANEL_TEXT.most);
  return Math.min(needed, width - operatorRoom(operator, font));
}

/** @param {string} text @param {string} font */
function textWidth(text, font) {
  return textContext(font).measureText(text).width;
}

/** As few lines as the panels need with their text, and about as many panels on each.
 *  @param {Piece[]} pieces @param {number} width */
function breakLines(pieces, width) {
  const greedy = fillLines(pieces, width, pieces.length);
  const even = fillLines(pieces, width, Math.ceil(pieces.length / greedy.length));
  return even.length === greedy.length ? even : greedy;
}

/** On each line as many panels as fit, at most `most`.
 *  @param {Piece[]} pieces @param {number} width @param {number} most */
function fillLines(pieces, width, most) {
  /** @type {Piece[][]} */
  const lines = [];
  let room = 0;
  for (const piece of pieces) {
    const needed = piece.operator + piece.least;
    const last = lines.at(-1);
    if (last && last.length < most && GAP + needed <= room) {
      last.push(piece);
      room -= GAP + needed;
    } else {
      lines.push([piece]);
      room = width - needed;
    }
  }
  return lines;
}

/** The limits of each panel: one size of cell for the line where it is readable, else all room for each panel.
 *  @param {Piece[]} line @param {number} width @param {number} above @param {number} tallestGrid */
function lineLimits(line, width, above, tallestGrid) {
  const available = width - total(line.map(({ operator }) => operator)) - GAP * (line.length - 1);
  const rows = Math.max(...line.map(({ matrix }) => matrix.rows));
  const height = Math.min(tallestPlot(rows, above), tallestGrid);
  const tallest = height / rows;
  /** @param {number} cell */
  const widths = (cell) => line.map(({ least, left, matrix }) => Math.max(least, left + cell * matrix.columns + 1));
  const widest = largestThat((cell) => total(widths(cell)) <= available, LARGEST_CELL.most);
  if (widest < Math.min(SQUARE_CELL, tallest)) return spreadLimits(line, available, height);
  const cell = Math.min(widest, tallest, largestCell());
  const areSquare = line.every(({ matrix }) => matrix.rows === matrix.columns);
  const cellHeight = areSquare ? cell : Math.max(cell, Math.min(tallest, readable(cell)));
  const cellWidth = Math.min(widest, WIDE_CELL * cell);
  const panelWidths = widths(cellWidth);
  return line.map((_, i) => ({ width: panelWidths[i], height, cell, cellHeight, cellWidth }));
}

/** The most height of a plot: what the screen leaves it below all that stands above, if its rows can then be read.
 *  @param {number} rows @param {number} above */
function tallestPlot(rows, above) {
  const least = Math.min(LOW_ROW * rows, TALLEST_PLOT);
  return clamp(window.innerHeight - ABOVE_PLOT - above, least, HIGHEST_PLOT);
}

/** The height up to twice the width at which a row's label is a word. @param {number} cell */
function readable(cell) {
  return Math.min(2 * cell, LABEL_CELL + 2);
}

/** Panels as wide as each other, except where one needs more for its title or less for its cells.
 *  @param {Piece[]} line @param {number} available @param {number} height */
function spreadLimits(line, available, height) {
  const largest = largestCell();
  /** @param {number} level */
  const widths = (level) =>
    line.map(({ least, left, matrix }) => clamp(level, least, Math.max(least, left + largest * matrix.columns)));
  const level = largestThat((one) => total(widths(one)) <= available, available);
  const panelWidths = widths(level);
  return line.map((_, i) => ({ width: panelWidths[i], height, cell: largest }));
}

/** The largest size of a cell: on a high screen larger. */
function largestCell() {
  return clamp(window.innerHeight / LARGEST_CELL.rows, LARGEST_CELL.least, LARGEST_CELL.most);
}

/** The largest number up to `most` that fits, 0 when none does.
 *  @param {(size: number) => boolean} fits @param {number} most */
function largestThat(fits, most) {
  if (fits(most)) return most;
  let [low, high] = [0, most];
  for (let i = 0; i < 24; i++) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** A gallery of small panels, all equally large. @param {Matrix[]} matrices @param {number} width */
export function layoutGallery(matrices, width) {
  const columns = galleryColumns(matrices.length, width, GALLERY);
  const panelWidth = Math.min((width - GALLERY.gap * (columns - 1)) / columns, 360);
  const labelled = panelWidth >= GALLERY.labelled;
  const limits = matrices.map(() => ({ width: panelWidth, height: 320, cell: LARGEST_CELL.least, labelled }));
  return { lines: [matrices.map((_, index) => index)], limits };
}

/** @param {number[]} numbers */
function total(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0);
}
