/** Text as a mark. */

/** @import { Pen, Theme } from "../types.d.ts" */

import { charactersOf } from "../shared/dom.js";

/** Text that reads upwards and begins (`align` "left") or ends ("right") at a point.
 *  @param {Pen} context @param {string} text @param {number} x @param {number} y @param {CanvasTextAlign} [align] */
export function drawUpwards(context, text, x, y, align = "left") {
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillText(text, 0, 0.5);
  context.restore();
}

/** A text cut to a width, with "…" when it is longer; whole characters are kept.
 *  @param {Pen} context @param {string} text @param {number} width */
export function shortened(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const characters = charactersOf(text);
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > width) characters.pop();
  return `${characters.join("")}…`;
}

/** A word on a plate of the page's background, centred on a point.
 *  @param {Pen} context @param {string} text @param {number} x @param {number} y @param {Theme} theme */
export function drawPlate(context, text, x, y, theme) {
  const width = context.measureText(text).width + 10;
  context.fillStyle = theme.background;
  context.beginPath();
  context.roundRect(x - width / 2, y - 7, width, 14, 4);
  context.fill();
  context.fillStyle = theme.warning;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, x, y + 0.5);
}
