/** Curves over the steps of a training, with the numbers of the step that is pointed at. */

import { makeElement, makeSvgElement } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";
import { tooltipLine } from "../shared/tooltip.js";
import { zoomOf } from "../shared/zoom.js";

const say = textsOf("training/curves");
const HEIGHT = 190;
const MARGIN = { left: 38, right: 20, top: 10, bottom: 34 };
const MOST_DOTS = 40;
const DASHES = ["", "2 4"];
const PLACES = [16, 239]; // in the diverging scale, which every kind of colour blindness tells apart

/** A chart; `note` is the picture's note beside the pointer, `format` writes a value. */
export class Curves {
  constructor(title, note, format) {
    this.title = title;
    this.note = note;
    this.format = format;
    this.curves = [];
    this.nSteps = this.width = 0;
    this.svg = makeSvgElement("svg", { role: "img" });
    this.names = makeElement("span", "curve-names");
    const caption = makeElement("figcaption", "", {}, [title, this.names]);
    this.element = makeElement("figure", "curves", {}, [caption, this.svg]);
    this.svg.onpointermove = (event) => this.point(event);
    this.svg.onpointerleave = () => note.hide();
  }

  /**
   * Draw the curves: `curves` are {name, steps, values}, `top` is the value at which the axis ends, `level` one that is
   * marked by a line, with its name, if there is one.
   */
  draw({ curves, nSteps, top, moment, words, level }, width, theme) {
    Object.assign(this, { curves, nSteps, width });
    const x = (step) => MARGIN.left + (step / nSteps) * this.plotWidth;
    const y = (value) => MARGIN.top + (1 - value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
    const right = width - MARGIN.right;
    const line = (className, x1, y1, x2, y2) => makeSvgElement("line", { class: className, x1, y1, x2, y2 });
    const text = (className, at, height, words_) => makeSvgElement("text", { class: className, x: at, y: height }, [words_]);
    const parts = ticksUpTo(top, 4).flatMap((value) => [
      line("curve-grid", MARGIN.left, y(value), right, y(value)),
      text("curve-value", MARGIN.left - 6, y(value) + 4, this.format(value, true)),
    ]);
    for (const step of ticksUpTo(nSteps, 4)) parts.push(text("curve-step", x(step), HEIGHT - 18, step.toLocaleString("en")));
    parts.push(text("curve-step", (MARGIN.left + right) / 2, HEIGHT - 3, say("step")));
    if (level) {
      parts.push(line("curve-level", MARGIN.left, y(level.value), right, y(level.value)));
      parts.push(text("curve-level-name", right, y(level.value) + 13, level.name));
    }
    if (moment !== null) parts.push(line("curve-moment", x(moment), MARGIN.top, x(moment), HEIGHT - MARGIN.bottom));
    curves.forEach((curve, i) => parts.push(...lineOf(curve, x, y, { stroke: colorOf(theme, i), "stroke-dasharray": DASHES[i] })));
    this.svg.replaceChildren(...parts);
    for (const [name, value] of Object.entries({ width, height: HEIGHT, "aria-label": `${this.title}: ${words}` })) this.svg.setAttribute(name, value);
    this.names.replaceChildren(...curves.filter(({ name }) => name).map(({ name }, i) => nameOf(name, i, theme)));
  }

  get plotWidth() {
    return this.width - MARGIN.left - MARGIN.right;
  }

  /** Say the numbers of the step that the pointer is nearest to. */
  point({ clientX, clientY }) {
    const at = (clientX - this.svg.getBoundingClientRect().left) / zoomOf(this.svg) - MARGIN.left;
    const said = this.curves.filter(({ steps }) => steps.length).map(({ name, steps, values }) => {
      const place = nearest(steps, (at / this.plotWidth) * this.nSteps);
      const value = makeElement("b", "", {}, [this.format(values[place])]);
      return tooltipLine("tooltip-value", `${name ? `${name}, ` : ""}${say("at_step", { step: steps[place].toLocaleString("en") })} `, value);
    });
    if (said.length) this.note.show(said, clientX, clientY);
  }
}

/** A curve as lines between its values, and as dots where they are few; what is no number is left out. */
function lineOf({ steps, values }, x, y, look) {
  const points = Array.from(values, (value, i) => (Number.isFinite(value) ? [x(steps[i]), y(value)] : null));
  const path = points.map((point, i) => (point ? `${points[i - 1] ? "L" : "M"}${point.map((part) => part.toFixed(1)).join(" ")}` : ""));
  const dots = points.length > MOST_DOTS ? [] : points.filter((point) => point !== null);
  const circles = dots.map(([cx, cy]) => makeSvgElement("circle", { cx, cy, r: 2, fill: look.stroke }));
  return [makeSvgElement("path", { class: "curve", d: path.join(""), ...look }), ...circles];
}

/** The name of a curve, underlined as the curve is drawn. */
function nameOf(name, i, theme) {
  const element = makeElement("span", "curve-name", {}, [name]);
  element.style.borderBottom = `3px ${DASHES[i] ? "dotted" : "solid"} ${colorOf(theme, i)}`;
  return element;
}

function colorOf({ diverging }, i) {
  return `#${diverging.slice(6 * PLACES[i], 6 * PLACES[i] + 6)}`;
}

/** The index of the step nearest to one; steps ascend. */
export function nearest(steps, wanted) {
  let found = 0;
  steps.forEach((step, i) => {
    if (Math.abs(step - wanted) <= Math.abs(steps[found] - wanted)) found = i;
  });
  return found;
}

/** Round numbers from 0 to `most`, about `count` of them beside the 0: multiples of 1, 2 or 5 times a power of ten. */
export function ticksUpTo(most, count) {
  const power = 10 ** Math.floor(Math.log10(most / count));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => most / each <= count) ?? most;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
}
