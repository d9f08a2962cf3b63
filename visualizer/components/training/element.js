/** A training, or two side by side: curves, the answer to a text, and every head of an attention. */

import { makeElement, setChildren, setText } from "../shared/dom.js";
import { LivePicture } from "../shared/live.js";
import { floats, withMinusSign } from "../shared/payload.js";
import { startPicture } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";
import { fillBar, makeBar } from "../progress/element.js";
import { render as renderGrid } from "../tensor_grid/element.js";
import { Curves } from "./curves.js";

const say = textsOf("training/element");
const HIGHEST_SHARE = 1.05; // room for a line at 100%
const AROUND = 1.08; // the same above the highest loss

class Training extends LivePicture {
  constructor(root, host) {
    super(root, host, "training");
    this.bar = makeBar();
    this.losses = new Curves(say("loss"), this.tooltip, formatLoss);
    this.matches = new Curves(say("held_out"), this.tooltip, formatShare);
    this.sides = [];
    this.curves = makeElement("div", "training-curves", {}, [this.losses.element, this.matches.element]);
    this.frame = makeElement("div", "training", {}, [this.curves]);
    root.prepend(this.bar, this.frame);
    this.endings.push(() => this.keepSides(0));
  }

  receive() {
    const { bar, sides, arrays, key } = this.data;
    this.bar.hidden = bar === null;
    if (bar) fillBar(this.bar, bar);
    this.frame.hidden = sides.length === 0;
    this.frame.classList.toggle("training-pair", sides.length > 1);
    this.keepSides(sides.length);
    while (this.sides.length < sides.length) this.addSide();
    sides.forEach((side, i) => this.sides[i].show(side, arrays[`heads${i}`]?.data, `${key}_${i}`));
    for (const side of this.sides) side.element.prepend(side.title, side.numbers);
    if (sides.length === 1) this.curves.prepend(this.sides[0].numbers);
  }

  addSide() {
    const side = new Side({ ...this.host, send() {} });
    this.sides.push(side);
    this.frame.append(side.element);
  }

  keepSides(count) {
    for (const side of this.sides.splice(count)) side.destroy();
  }

  draw() {
    const { sides, n_steps: nSteps, moment, guessing, losses, matches } = this.data;
    if (sides.length === 0) return;
    const width = Math.floor(this.losses.element.clientWidth);
    const curves = this.curvesOf("losses");
    const highest = Math.max(guessing, ...curves.flatMap(({ values }) => [...values].filter(Number.isFinite)));
    const level = { value: guessing, name: say("guessing", { loss: guessing.toFixed(2) }) };
    this.losses.draw({ nSteps, moment, curves, top: AROUND * highest, words: losses, level }, width, this.theme);
    const share = { curves: this.curvesOf("matches"), top: HIGHEST_SHARE, words: matches, level: null };
    this.matches.draw({ nSteps, moment, ...share }, width, this.theme);
  }

  curvesOf(name) {
    const { sides, arrays } = this.data;
    return sides.map((side, i) => ({
      name: side.name,
      steps: arrays[`${name}${i}_steps`].data,
      values: floats(arrays[`${name}${i}`]),
    }));
  }
}

/** One training at one moment. */
class Side {
  constructor(host) {
    this.host = host;
    this.title = makeElement("h3", "training-name");
    this.numbers = makeElement("div", "training-numbers");
    this.answer = makeElement("div", "training-answer");
    this.problem = makeElement("p", "training-problem", { role: "alert" });
    this.root = makeElement("div", "headlight");
    this.element = makeElement("section", "training-side", {}, [this.answer, this.problem, this.root]);
  }

  show({ name, numbers, written, problem }, heads, key) {
    setText(this.title, name);
    this.title.hidden = name === "";
    setChildren(this.numbers, numbers.map(([number, what]) => makeElement("span", "", {}, [makeElement("b", "", {}, [number]), what])));
    setText(this.problem, problem);
    this.answer.hidden = this.root.hidden = !written;
    this.root.dataset.key = key;
    if (!written) return;
    setChildren(this.answer, answerNodes(written));
    if (this.heads) this.heads.update(heads);
    else this.heads = renderGrid(this.root, heads, this.host);
  }

  destroy() {
    this.heads?.destroy();
    this.element.remove();
    this.numbers.remove();
  }
}

/** The text, an arrow, the tokens of the answer with those that are wrong marked, and what there is to say of it. */
function answerNodes({ asked, tokens, joint, ended, note }) {
  const written = tokens.flatMap(([token, isRight], i) => [i ? joint : "", makeElement("span", isRight ? "" : "wrong", {}, [token])]);
  const nothing = makeElement("span", "training-note", {}, [say("nothing")]);
  return [
    makeElement("span", "training-asked", {}, [`${asked} →`]),
    makeElement("span", "", {}, [...(tokens.length ? written : [nothing]), ended ? "" : "…"]),
    makeElement("span", "training-note", {}, [note]),
  ];
}

function formatLoss(value, isTick = false) {
  return withMinusSign(isTick ? String(Number(value.toPrecision(3))) : value.toFixed(3));
}

function formatShare(value, isTick = false) {
  return `${(100 * value).toFixed(isTick ? 0 : 1)}%`;
}

/** Draw the picture in `root`. */
export function render(root, bytes, host) {
  return startPicture(Training, root, bytes, host);
}
