/** A training, or two side by side: curves, the answer to a text, and every head of an attention. */

/** @import { Host } from "../types.d.ts" */
/** @import { SideHeader, TrainingHeader } from "./types.d.ts" */

import { makeElement, setChildren, setText } from "../shared/dom.js";
import { LivePicture } from "../shared/live.js";
import { flagsOf, withMinusSign } from "../shared/payload.js";
import { rendererOf } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";
import { fillBar, makeBar } from "../progress/element.js";
import { render as renderGrid } from "../tensor_grid/element.js";
import { Curves } from "./curves.js";

const say = textsOf("training/element");
const ABOVE = 1.06; // room for a line at the highest value

/** @extends {LivePicture<TrainingHeader>} */
class Training extends LivePicture {
  isSaved = true;
  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "training");
    this.bar = makeBar();
    this.losses = new Curves(say("loss"), this.tooltip, formatLoss);
    this.matches = new Curves(say("held_out"), this.tooltip, formatShare);
    /** @type {Side[]} */ this.sides = [];
    this.curves = makeElement("div", "training-curves", {}, [this.losses.element, this.matches.element]);
    this.frame = makeElement("div", "training", {}, [this.curves]);
    root.prepend(this.bar, this.frame);
    this.endings.push(() => this.keepSides(0));
  }

  receive() {
    const { bar, sides, arrays } = this.data;
    this.bar.hidden = bar === null;
    if (bar) fillBar(this.bar, bar);
    this.frame.hidden = sides.length === 0;
    this.frame.classList.toggle("training-pair", sides.length > 1);
    this.keepSides(sides.length);
    while (this.sides.length < sides.length) this.addSide();
    sides.forEach((side, i) => this.sides[i].show(side, flagsOf(arrays[`heads${i}`])));
    if (sides.length === 1) this.curves.prepend(this.sides[0].numbers);
  }

  addSide() {
    const side = new Side({ ...this.host, send() {} });
    this.sides.push(side);
    this.frame.append(side.element);
  }

  /** @param {number} count */
  keepSides(count) {
    for (const side of this.sides.splice(count)) side.destroy();
  }

  draw() {
    const { sides, n_steps: nSteps, moment, guessing } = this.data;
    if (sides.length === 0) return;
    const curves = this.curvesOf("losses");
    const highest = Math.max(guessing, ...curves.flatMap(({ values }) => [...values].filter(Number.isFinite)));
    this.losses.draw(curves, { nSteps, moment, top: ABOVE * highest, level: guessing }, this.theme);
    this.matches.draw(this.curvesOf("matches"), { nSteps, moment, top: ABOVE, level: null }, this.theme);
  }

  /** @param {string} name */
  curvesOf(name) {
    return this.data.sides.map((side, i) => {
      const { data } = this.data.arrays[`${name}${i}`];
      return { name: side.name, steps: data.subarray(0, data.length / 2), values: data.subarray(data.length / 2) };
    });
  }
}

/** One training at one moment. */
class Side {
  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.title = makeElement("h2");
    this.numbers = makeElement("div", "training-numbers");
    this.answer = makeElement("div", "training-answer");
    this.root = makeElement("div", "headlight");
    this.element = makeElement("section", "", {}, [this.answer, this.root]);
  }

  /** @param {SideHeader} side @param {Uint8Array | null} heads */
  show({ name, numbers, note, ...written }, heads) {
    setText(this.title, name);
    this.title.hidden = name === "";
    this.element.prepend(this.title, this.numbers);
    setChildren(this.numbers, numbers.map(([number, what]) => makeElement("span", "", {}, [makeElement("b", "", {}, [number]), what])));
    setChildren(this.answer, [...(heads ? answerNodes(written) : []), makeElement("small", "", {}, [note])]);
    this.root.hidden = !heads;
    if (!heads) return;
    if (this.heads) this.heads.update(heads);
    else this.heads = renderGrid(this.root, heads, this.host);
  }

  destroy() {
    this.heads?.destroy();
    this.element.remove();
    this.numbers.remove();
  }
}

/** The text, an arrow, and the tokens of the answer with those that are wrong marked.
 *  @param {Pick<SideHeader, "asked" | "answer" | "joint">} written */
function answerNodes({ asked, answer, joint: [between, end] }) {
  const tokens = answer.flatMap(([token, isRight], i) => [i ? between : "", makeElement("span", isRight ? "" : "wrong", {}, [token])]);
  const nothing = makeElement("small", "", {}, [say("nothing")]);
  return [makeElement("bdi", "", {}, [asked, " →"]), makeElement("bdi", "", {}, [...(tokens.length ? tokens : [nothing]), end])];
}

/** @param {number} value */
function formatLoss(value, isShort = false) {
  return withMinusSign(isShort ? String(Number(value.toPrecision(3))) : value.toFixed(3));
}

/** @param {number} value */
function formatShare(value, isShort = false) {
  return `${(100 * value).toFixed(isShort ? 0 : 1)}%`;
}

export const render = rendererOf(Training);
