/** The axes of a grid: their names, labels and ticks. */

/** @import { Axis, Geometry, Matrix, Pen, Theme } from "../types.d.ts" */

import { countedAs } from "../shared/axis.js";
import { labelFont, LONGEST_LABEL, readsUpwards, tickStep } from "../shared/grid_layout.js";
import { axisRole } from "../shared/tooltip.js";
import { textContext } from "./pen.js";
import { drawUpwards, shortened } from "./text.js";

/** Draw the names of the axes and the labels or ticks of both sides.
 *  @param {Pen} context @param {Matrix} matrix @param {Geometry} geometry @param {Theme} theme */
export function drawLabels(context, matrix, geometry, theme) {
  const { rowAxis, columnAxis } = matrix;
  context.font = labelFont(theme.font);
  drawAxisNames(context, rowAxis, columnAxis, geometry, theme);
  context.fillStyle = theme.text;
  context.globalAlpha = 0.72;
  drawRowLabels(context, rowAxis, matrix.rows, geometry);
  drawColumnLabels(context, columnAxis, matrix.columns, geometry);
  context.globalAlpha = 1;
}

/** "query ↓ key →" in their roles' colours, on the line above everything.
 *  @param {Pen} context @param {Axis} rowAxis @param {Axis} columnAxis @param {Geometry} geometry
 *  @param {Theme} theme */
function drawAxisNames(context, rowAxis, columnAxis, geometry, theme) {
  context.textBaseline = "top";
  context.textAlign = "left";
  context.fillStyle = theme.roles[axisRole(rowAxis)];
  context.fillText(`${rowAxis.name} ↓`, 0, 0);
  context.fillStyle = theme.roles[axisRole(columnAxis)];
  context.fillText(`${columnAxis.name} →`, columnNameStart(context, rowAxis, geometry.left), 0);
}

/** The start of the columns' name: over the plot, or after the name of the rows.
 *  @param {Pen} context @param {Axis} rowAxis @param {number} left */
function columnNameStart(context, rowAxis, left) {
  return Math.max(left, context.measureText(`${rowAxis.name} ↓`).width + 8);
}

/** The reach of the axes' names: beyond the plot where that is very narrow.
 *  @param {Matrix} matrix @param {number} left @param {string} font */
export function axisNamesWidth({ rowAxis, columnAxis }, left, font) {
  const context = textContext(labelFont(font));
  return Math.ceil(columnNameStart(context, rowAxis, left) + context.measureText(`${columnAxis.name} →`).width) + 1;
}

/** @param {Pen} context @param {Axis} axis @param {number} rows @param {Geometry} geometry */
function drawRowLabels(context, axis, rows, { left, top, cellHeight, rowLabels }) {
  context.textAlign = "right";
  context.textBaseline = "middle";
  const step = rowLabels === "all" ? 1 : tickStep(cellHeight, 24);
  for (let row = 0; row < rows; row += step) {
    const text = rowLabels === "all" ? axis.labels[row] : String(countedAs(axis, row));
    context.fillText(shortened(context, text, axis.longest ?? LONGEST_LABEL), left - 5, top + (row + 0.5) * cellHeight);
  }
}

/** @param {Pen} context @param {Axis} axis @param {number} columns @param {Geometry} geometry */
function drawColumnLabels(context, axis, columns, { left, top, cellWidth, columnLabels }) {
  const widest = String(countedAs(axis, columns - 1)).length * 7 + 5;
  const step = columnLabels === "ticks" ? tickStep(cellWidth, Math.max(26, widest)) : 1;
  for (let column = 0; column < columns; column += step) {
    const x = left + (column + 0.5) * cellWidth;
    if (readsUpwards(axis.labels[column], columnLabels)) {
      drawUpwards(context, shortened(context, axis.labels[column], LONGEST_LABEL), x, top - 5);
      continue;
    }
    const text = columnLabels === "ticks" ? String(countedAs(axis, column)) : axis.labels[column];
    const right = left + columns * cellWidth;
    context.textBaseline = "alphabetic";
    context.textAlign = x + context.measureText(text).width / 2 > right ? "right" : "center";
    context.fillText(text, context.textAlign === "right" ? right : x, top - 5);
  }
}
