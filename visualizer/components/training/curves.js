/** Curves over the steps of a training, with the numbers of the step that is pointed at. */

/** @import { Picture } from "../shared/picture.js" */
/** @import { Theme, TooltipLine } from "../types.d.ts" */
/** @import { Axes, Curve } from "./types.d.ts" */

import { makeElement, makeSvgElement } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";
import { tooltipLine } from "../shared/tooltip.js";
import { zoomOf } from "../shared/zoom.js";

const say = textsOf("training/curves");
const HEIGHT = 190;
const MARGIN = { left: 38, right: 20, top: 10, bottom: 34 };
const MOST_DOTS = 40;
const MOST_SAID = 12; // points of a curve that are put into words
const DASHES = ["", "2 4"];
const PLACES = [16, 239]; // in the diverging scale, which every kind of colour blindness tells apart

/** A chart; `note` is the picture's note beside the pointer, `format` writes a value, or a shorter one at the axis. */
export class Curves {
  /** @param {string} title @param {Picture["tooltip"]} note
   *  @param {(value: number, isShort?: boolean) => string} format */
  constructor(title, note, format) {
    this.title = title;
    this.format = format;
    /** @type {(clientX: number) => TooltipLine[]} what is said at a place of the pointer */
    this.at = () => [];
    this.svg = makeSvgElement("svg", { role: "img", height: HEIGHT });
    this.names = makeElement("span", "curve-names");
    this.element = makeElement("figure", "curves", {}, [makeElement("figcaption", "", {}, [title, this.names]), this.svg]);
    this.svg.onpointermove = ({ clientX, clientY }) => note.show(this.at(clientX), clientX, clientY);
    this.svg.onpointerleave = () => note.hide();
  }

  /** Draw the curves, {name, steps, values} each; the axes end at `nSteps` and `top`, and `level`, if any, is marked.
   *  @param {Curve[]} curves @param {Axes} axes @param {Theme} theme */
  draw(curves, { nSteps, top, moment, level }, theme) {
    const width = this.element.clientWidth;
    const right = width - MARGIN.right;
    /** @param {number} step */
    const x = (step) => MARGIN.left + (step / nSteps) * (right - MARGIN.left);
    /** @param {number} value */
    const y = (value) => MARGIN.top + (1 - value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
    /** @param {string} name @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
    const line = (name, x1, y1, x2, y2) => makeSvgElement("line", { class: name, x1, y1, x2, y2 });
    /** @param {string} name @param {number} at @param {number} height @param {string} words */
    const text = (name, at, height, words) => makeSvgElement("text", { class: name, x: at, y: height }, [words]);
    /** @param {string} name @param {number} value */
    const across = (name, value) => line(name, MARGIN.left, y(value), right, y(value));
    this.svg.replaceChildren(
      ...ticksUpTo(top).flatMap((value) => [across("curve-grid", value), text("curve-value", MARGIN.left - 6, y(value) + 4, this.format(value, true))]),
      ...ticksUpTo(nSteps).map((step) => text("curve-step", x(step), HEIGHT - 18, step.toLocaleString("en"))),
      text("curve-step", x(nSteps / 2), HEIGHT - 3, say("step")),
      ...(level ? [across("curve-level", level), text("curve-value", right, y(level) + 13, say("guessing", { loss: level.toFixed(2) }))] : []),
      ...(moment === null ? [] : [line("curve-moment", x(moment), MARGIN.top, x(moment), HEIGHT - MARGIN.bottom)]),
      ...curves.flatMap((curve, i) => lineOf(curve, x, y, { stroke: colorOf(theme, i), "stroke-dasharray": DASHES[i] })),
    );
    this.svg.setAttribute("width", String(width));
    this.svg.setAttribute("aria-label", `${this.title}: ${curves.map((curve) => this.inWords(curve)).join(". ")}`);
    this.names.replaceChildren(...curves.filter(({ name }) => name).map(({ name }, i) => nameOf(name, i, theme)));
    this.at = (clientX) => {
      const step = ((clientX - this.svg.getBoundingClientRect().left) / zoomOf(this.svg) - MARGIN.left) / ((right - MARGIN.left) / nSteps);
      return curves.map((curve) => this.lineAt(curve, nearest(curve.steps, step)));
    };
  }

  /** One value in the note beside the pointer. @param {Curve} curve @param {number} place */
  lineAt({ name, steps, values }, place) {
    const at = say("at_step", { step: steps[place].toLocaleString("en") });
    return tooltipLine("tooltip-value", `${name ? `${name}, ` : ""}${at} `, makeElement("b", "", {}, [this.format(values[place])]));
  }

  /** A curve from its first point to its last, for who does not see it. @param {Curve} curve */
  inWords({ name, steps, values }) {
    const every = Math.max(1, (steps.length - 1) / (MOST_SAID - 1));
    const places = Array.from({ length: Math.min(steps.length, MOST_SAID) }, (_, i) => Math.round(i * every));
    const points = places.map((i) => `${say("at_step", { step: steps[i] })} ${this.format(values[i])}`).join(", ");
    return name ? `${name}: ${points}` : points;
  }
}

/** A curve as lines between its values, and as dots where they are few; what is no number is left out.
 *  @param {Curve} curve @param {(step: number) => number} x @param {(value: number) => number} y
 *  @param {{ stroke: string, "stroke-dasharray": string }} look */
function lineOf({ steps, values }, x, y, look) {
  const points = Array.from(values, (value, i) => (Number.isFinite(value) ? [x(steps[i]), y(value)] : null));
  const path = points.map((point, i) => (point ? `${points[i - 1] ? "L" : "M"}${point.map((part) => part.toFixed(1)).join(" ")}` : ""));
  const dots = points.length > MOST_DOTS ? [] : points.filter((point) => point !== null);
  const circles = dots.map(([cx, cy]) => makeSvgElement("circle", { cx, cy, r: 2, fill: look.stroke }));
  return [makeSvgElement("path", { class: "curve", d: path.join(""), ...look }), ...circles];
}

/** The name of a curve, underlined as the curve is drawn.
 *  @param {string} name @param {number} i @param {Theme} theme */
function nameOf(name, i, theme) {
  const element = makeElement("span", "", {}, [name]);
  element.style.borderBottom = `3px ${DASHES[i] ? "dotted" : "solid"} ${colorOf(theme, i)}`;
  return element;
}

/** @param {Theme} theme @param {number} i */
function colorOf({ diverging }, i) {
  return `#${diverging.slice(6 * PLACES[i], 6 * PLACES[i] + 6)}`;
}

/** The index of the step nearest to one. @param {ArrayLike<number>} steps @param {number} wanted */
function nearest(steps, wanted) {
  const distances = Array.from(steps, (step) => Math.abs(step - wanted));
  return distances.indexOf(Math.min(...distances));
}

/** Round numbers from 0 to `most`, at most four beside the 0: multiples of 1, 2 or 5 times a power of ten.
 *  @param {number} most */
export function ticksUpTo(most) {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => most / each <= 4) ?? most;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
}
