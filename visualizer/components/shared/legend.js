/** @import { Scale, Theme } from "../types.d.ts" */

import { drawHatch } from "../marks/hatch.js";
import { contextOf, sizedContext } from "../marks/pen.js";
import { makeElement, setChildren, setText } from "./dom.js";
import { shortNumber, wholeNumber } from "./payload.js";
import { textsOf } from "./texts.js";
import { colorTable } from "./theme.js";
import { pixelRatioOf } from "./zoom.js";

const say = textsOf("shared/legend");

/** A small colour bar with its numbers, and a hatch swatch where cells are blocked. */
export function makeLegend() {
  const bar = makeElement("canvas", "legend-bar", { width: 256, height: 1, "aria-hidden": "true" });
  const ticks = makeElement("div", "legend-ticks");
  const scaleBox = makeElement("div", "legend-scale", {}, [bar, ticks]);
  const swatch = makeElement("canvas", "legend-swatch", { role: "img", "aria-label": say("hatched") });
  const blockedBox = makeElement("div", "legend-blocked", {}, [swatch, say("blocked")]);
  const label = makeElement("span", "legend-label");
  const element = makeElement("div", "legend", {}, [label, scaleBox, blockedBox]);
  let shown = "";
  return {
    element,
    /** Show a scale made by `makeScale`; `text` names it, `blocked` says whether any cell is hatched.
     *  @param {Scale} scale */
    update(scale, { text = "", blocked = false } = {}) {
      const { theme, palette, low, high, curve } = scale;
      const wanted = JSON.stringify([text, blocked, theme.name, palette, low, high, curve]);
      if (wanted === shown) return;
      shown = wanted;
      setText(label, text);
      label.hidden = text === "";
      blockedBox.hidden = !blocked;
      drawLegendBar(bar, scale);
      if (blocked) drawSwatch(swatch, theme);
      const ends = legendTicks(scale);
      const numbers = ends.map(ends.every(Number.isInteger) ? wholeNumber : shortNumber);
      setChildren(ticks, numbers.map((number) => makeElement("span", "", {}, [number])));
      scaleBox.setAttribute("role", "img");
      scaleBox.setAttribute("aria-label", say("scale", { low: numbers[0], high: numbers.at(-1) }));
    },
  };
}

/** The numbers under a colour bar, evenly spaced along it. @param {Scale} scale */
function legendTicks({ palette, low, high, curve }) {
  if (palette === "diverging") return [low, (low + high) / 2, high];
  if (curve === "root") return [low, low + (high - low) / 4, high];
  return [low, high];
}

/** @param {HTMLCanvasElement} canvas @param {Scale} scale */
function drawLegendBar(canvas, scale) {
  const context = contextOf(canvas);
  const image = context.createImageData(256, 1);
  new Uint32Array(image.data.buffer).set(colorTable(scale.theme, scale.palette));
  context.putImageData(image, 0, 0);
}

const SWATCH = { left: 0, top: 0, width: 16, height: 10 };

/** @param {HTMLCanvasElement} canvas @param {Theme} theme */
function drawSwatch(canvas, theme) {
  const ratio = pixelRatioOf(canvas);
  const context = sizedContext(canvas, Math.round(SWATCH.width * ratio), Math.round(SWATCH.height * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawHatch(context, SWATCH, theme, ratio);
}
