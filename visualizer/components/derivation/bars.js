/** The signed bars of a derivation on a canvas: one band per row, one column per element. */

/** @import { Pen } from "../types.d.ts" */
/** @import { BarPicture, Row } from "./types.d.ts" */

import { barPlace, drawBar, drawBaseline } from "../marks/bar.js";
import { drawHatch } from "../marks/hatch.js";
import { textContext } from "../marks/pen.js";
import { drawUpwards, shortened } from "../marks/text.js";
import { isOneCharacter } from "../shared/dom.js";
import { LABEL_FONT_SIZE, labelFont } from "../shared/grid_layout.js";
import { formatNumber, withMinusSign } from "../shared/payload.js";
import { pixelRatioOf } from "../shared/zoom.js";

const BAR_HEIGHT = { numbered: 24, bare: 30 };
const LEVEL_HEIGHT = { header: 15, number: 13 };
const BAND_GAP = 4;
const WIDEST_COLUMN = 72;
const UPRIGHT_COLUMN = 13; // a column this wide has room for upright text
const UPRIGHT_NUMBERS = 16; // as many elements have upright numbers where level ones do not fit
const LONGEST_LABEL = 60;

/** Sizes in pixels for a picture in `available` pixels; numbers and names are level, upright, or "none".
 *  @param {Omit<BarPicture, "sizes">} picture @param {number} available
 *  @param {number} [least] the height of the names beside the rows */
export function measureBars(picture, available, least = 0) {
  const { count, rows } = picture;
  const narrowest = count <= UPRIGHT_NUMBERS ? UPRIGHT_COLUMN : count <= 256 ? 6 : 3;
  const column = Math.min(WIDEST_COLUMN, Math.max(narrowest, available / Math.max(1, count)));
  const widest = widestTexts(picture);
  const numbers = formOfNumbers(column, count, widest.number);
  const labels = formOfLabels(column, numbers, widest.label);
  const bar = numbers === "none" ? BAR_HEIGHT.bare : BAR_HEIGHT.numbered;
  const band = Math.max(least, bar + { level: LEVEL_HEIGHT.number, upright: widest.number + 6, none: 0 }[numbers]);
  const header = { level: LEVEL_HEIGHT.header, upright: Math.min(widest.label, LONGEST_LABEL) + 6, none: 4 }[labels];
  return {
    column,
    numbers,
    labels,
    header,
    bar,
    band,
    width: column * count,
    height: header + rows.length * (band + BAND_GAP),
    bandTop: (/** @type {number} */ row) => header + row * (band + BAND_GAP),
  };
}

/** The direction of the numbers: level where they fit side by side, upright when they are few.
 *  @param {number} column @param {number} count @param {number} widest */
function formOfNumbers(column, count, widest) {
  if (column >= widest + 5) return "level";
  return count <= UPRIGHT_NUMBERS ? "upright" : "none";
}

/** The direction of the names: level over level numbers, where they are cut, or where they fit, else upright.
 *  @param {number} column @param {string} numbers @param {number} widest */
function formOfLabels(column, numbers, widest) {
  if (numbers === "level" || (column >= UPRIGHT_COLUMN && column >= widest + 6)) return "level";
  return column >= UPRIGHT_COLUMN ? "upright" : "none";
}

/** The widest number and the widest name in pixels; of many elements neither is ever written.
 *  @param {Omit<BarPicture, "sizes">} picture */
function widestTexts({ count, rows, labels, theme }) {
  if (count > 128) return { number: Infinity, label: 0 };
  const context = textContext(labelFont(theme.font));
  /** @param {string[]} texts */
  const widest = (texts) => Math.ceil(Math.max(0, ...texts.map((text) => context.measureText(text).width)));
  return { number: widest(rows.flatMap((row) => Array.from(row.values, (_, index) => numberText(row, index)))), label: widest(labels) };
}

/** A number of a row as it stands under its bar: as Python wrote it where it has to add up with the others.
 *  @param {Row} row @param {number} index */
function numberText({ texts, values }, index) {
  return texts[index] ?? barNumber(values[index]);
}

/** A number under its bar: three digits, and two where it needs a power of ten. @param {number} value */
export function barNumber(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value) || value === 0) return formatNumber(value);
  if (size < 1e-3 || size >= 1e4) return withMinusSign(value.toExponential(1).replace("+", ""));
  return withMinusSign(size >= 100 ? value.toFixed(0) : value.toPrecision(3));
}

/** Lowest and highest finite value of a row, with zero always between; of those that are not blocked.
 *  @param {Float32Array} values @param {ArrayLike<number>} [blocked] */
export function rangeOf(values, blocked = []) {
  let low = 0;
  let high = 0;
  for (const [index, value] of values.entries()) {
    if (!Number.isFinite(value) || blocked[index]) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return { low, high, span: high - low || 1 };
}

/** Paint the columns that are in view.
 *  @param {Pen} context @param {BarPicture} picture @param {{ left: number, width: number }} view */
export function paintBars(context, picture, view) {
  const { sizes, rows } = picture;
  const first = Math.max(0, Math.floor(view.left / sizes.column));
  const last = Math.min(picture.count - 1, Math.ceil((view.left + view.width) / sizes.column));
  context.clearRect(0, 0, view.width, sizes.height);
  context.save();
  context.translate(-view.left, 0);
  paintActive(context, picture);
  paintFocus(context, picture);
  if (sizes.labels !== "none") paintHeader(context, picture, first, last);
  rows.forEach((row, index) => paintBand(context, picture, row, sizes.bandTop(index), first, last));
  context.restore();
}

/** The column under the pointer, through all rows. @param {Pen} context @param {BarPicture} picture */
function paintActive(context, { sizes, active, theme }) {
  if (active === null) return;
  context.globalAlpha = sizes.column < 12 ? 0.35 : 0.1;
  context.fillStyle = theme.text;
  context.beginPath();
  context.roundRect(active * sizes.column, 0, Math.max(2, sizes.column), sizes.height - BAND_GAP / 2, 4);
  context.fill();
  context.globalAlpha = 1;
}

/** A frame around the element that the number belongs to. @param {Pen} context @param {BarPicture} picture */
function paintFocus(context, { sizes, focus, theme }) {
  if (focus === null) return;
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  context.beginPath();
  context.roundRect(focus * sizes.column + 1, 1, Math.max(3, sizes.column - 2), sizes.height - BAND_GAP / 2 - 2, 4);
  context.stroke();
  context.lineWidth = 1;
}

/** The names of the elements over their columns.
 *  @param {Pen} context @param {BarPicture} picture @param {number} first @param {number} last */
function paintHeader(context, { sizes, labels, theme }, first, last) {
  context.fillStyle = theme.roles.neutral;
  context.font = labelFont(theme.font);
  const isLevel = sizes.labels === "level";
  for (let index = first; index <= last; index += 1) {
    const label = shortened(context, labels[index], isLevel ? sizes.column - 6 : LONGEST_LABEL);
    const stands = isLevel || isOneCharacter(label);
    const y = isLevel ? sizes.header / 2 : sizes.header - (stands ? 3 + LABEL_FONT_SIZE / 2 : 3);
    paintText(context, `\u2068${label}\u2069`, (index + 0.5) * sizes.column, y, stands ? "center" : "left");
  }
}

/** Level text around a point, or upright text that ends (`align` "right") or begins ("left") at it.
 *  @param {Pen} context @param {string} text @param {number} x @param {number} y
 *  @param {"center" | "left" | "right"} align */
function paintText(context, text, x, y, align) {
  if (align !== "center") return drawUpwards(context, text, x, y, align);
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillText(text, x, y);
}

/** One row: its zero line, its bars, its numbers.
 *  @param {Pen} context @param {BarPicture} picture @param {Row} row @param {number} top @param {number} first
 *  @param {number} last */
function paintBand(context, picture, row, top, first, last) {
  const { sizes, theme, blocked } = picture;
  const zero = top + (row.range.high / row.range.span) * sizes.bar;
  drawBaseline(context, first * sizes.column, Math.round(zero) - 0.5, (last - first + 1) * sizes.column, theme);
  for (let index = first; index <= last; index += 1) {
    if (blocked[index]) {
      const edge = Math.min(3, sizes.column * 0.15);
      const box = { left: index * sizes.column + edge, top, width: sizes.column - 2 * edge, height: sizes.bar };
      drawHatch(context, box, theme, pixelRatioOf(/** @type {HTMLCanvasElement} */ (context.canvas)));
    }
    else paintBar(context, picture, row, index, zero);
  }
  if (sizes.numbers !== "none") paintNumbers(context, picture, row, top, first, last);
}

/** One bar from the zero line to its value.
 *  @param {Pen} context @param {BarPicture} picture @param {Row} row @param {number} index @param {number} zero */
function paintBar(context, { sizes, theme }, row, index, zero) {
  const value = row.values[index];
  if (!Number.isFinite(value)) return;
  const size = Math.max((Math.abs(value) / row.range.span) * sizes.bar, value === 0 ? 0 : 0.75);
  context.globalAlpha = value < 0 ? 0.6 : 1;
  drawBar(context, barPlace(index, sizes.column), zero, Math.sign(value) * size, theme.roles[row.role]);
  context.globalAlpha = 1;
}

/** The values under the bars.
 *  @param {Pen} context @param {BarPicture} picture @param {Row} row @param {number} top @param {number} first
 *  @param {number} last */
function paintNumbers(context, { sizes, theme }, row, top, first, last) {
  context.font = labelFont(theme.font);
  context.fillStyle = theme.text;
  const isLevel = sizes.numbers === "level";
  const y = top + sizes.bar + (isLevel ? LEVEL_HEIGHT.number / 2 + 1 : 4);
  for (let index = first; index <= last; index += 1) {
    paintText(context, numberText(row, index), (index + 0.5) * sizes.column, y, isLevel ? "center" : "right");
  }
}
