/** @import { DialHeader } from "../types.d.ts" */

import { makeFold, makeSlider } from "./controls.js";
import { childrenOf, makeElement, setText, under } from "./dom.js";
import { textsOf } from "./texts.js";

const say = textsOf("shared/dials");

/** @typedef {{ turn: () => void, rest: (name: string, value: any) => void }} Turns */

/**
 * The dials of a picture, and the names that are pressed there. turn(): one of them is somewhere else;
 * rest(name, value): a person has let go of it, at a key each time.
 */
export class Dials {
  /** @param {Turns} turns */
  constructor({ turn, rest }) {
    this.turn = turn;
    this.rest = rest;
    /** @type {Map<string, Dial | Pressed>} */ this.dials = new Map();
    this.foremost = makeElement("div", "dials");
    this.element = makeElement("div", "dials");
  }

  /** Show the dials of a header, and its names to press. @param {DialHeader[]} described */
  show(described) {
    const names = described.map(({ name }) => name);
    for (const [name, dial] of this.dials) {
      if (names.includes(name)) continue;
      dial.element.remove();
      this.dials.delete(name);
    }
    for (const one of described) {
      const form = formOf(one);
      const known = this.dials.get(one.name);
      const dial = known?.form === form ? known : new (one.offered ? Pressed : Dial)(one, this);
      this.dials.set(one.name, dial);
      dial.show(one);
    }
    for (const place of [this.foremost, this.element]) {
      const here = described.filter((one) => one.is_foremost === (place === this.foremost));
      const inOrder = here.flatMap(({ name }) => this.dials.get(name)?.element ?? []);
      if (inOrder.some((element, i) => element !== place.children[i])) place.replaceChildren(...inOrder);
      place.hidden = here.length === 0;
    }
  }

  /** @param {string} name */
  has(name) {
    return this.dials.has(name);
  }

  /** The address of the numbers of all dials as they stand, from the address without them.
   *  @param {string} address */
  addressFrom(address) {
    const parameters = [...this.dials.values()].map((dial) => dial.parameter()).filter(Boolean);
    return [address, ...parameters].join("&");
  }
}

/** What a dial is made of once: one of another form, as that of another model, takes its place.
 *  @param {DialHeader} described */
function formOf({ offered, is_folded: isFolded }) {
  return JSON.stringify([offered, isFolded]);
}

/** A number on a slider: in whole steps, or, for the temperature, in equal ratios on both sides of 1. */
class Dial {
  value = 0;
  least = 0;
  /** @type {string[]} */ parameters = [];

  /** @param {DialHeader} described @param {Turns} turns */
  constructor(described, { turn, rest }) {
    const { name } = described;
    this.name = name;
    this.form = formOf(described);
    this.steps = name === "temperature" ? RATIOS : WHOLE;
    this.slider = makeSlider("dial-slider", name, (step) => {
      this.set(this.steps.valueAt(step));
      turn();
    });
    this.text = makeElement("output", "dial-text");
    this.label = makeElement("span");
    this.element = makeElement("label", "dial", { "data-dial": name }, [this.label, this.slider, this.text]);
    this.slider.addEventListener("change", () => rest(name, this.value));
  }

  /** @param {DialHeader} described */
  show({ label, help, value, least, most, parameters }) {
    this.parameters = parameters;
    this.least = least;
    setText(this.label, label);
    this.element.title = help;
    this.slider.setAttribute("aria-label", label);
    this.slider.min = String(this.steps.stepOf(least));
    this.slider.max = String(this.steps.stepOf(most));
    this.set(value);
  }

  /** @param {number} value */
  set(value) {
    this.value = value;
    this.slider.value = String(this.steps.stepOf(value));
    this.slider.setAttribute("aria-valuetext", String(value));
    setText(this.text, this.steps.textOf(value));
  }

  parameter() {
    return this.parameters[this.value - this.least] ?? this.steps.parameterOf(this.name, this.value);
  }
}

/** Names, any of which are pressed; folded, the label says which are. */
class Pressed {
  /** @type {string[]} */ value = [];
  /** @type {string | undefined} */ parameterName;

  /** @param {DialHeader} described @param {Turns} turns */
  constructor(described, { turn, rest }) {
    const { name, offered = {}, is_folded: isFolded } = described;
    this.name = name;
    this.form = formOf(described);
    this.offered = offered;
    this.label = makeElement("span");
    const names = Object.entries(offered).map(([one, text]) =>
      makeElement("button", "segment", { type: "button", "data-name": one }, [text]),
    );
    this.names = makeElement("span", "segments", { role: "group" }, names);
    this.fold = isFolded ? makeFold(this.label, [this.names]) : null;
    const inside = this.fold ? [this.fold.element] : [this.label, this.names];
    this.element = makeElement("div", "dial", { "data-dial": name }, inside);
    this.names.addEventListener("click", (event) => {
      const { name: pressed } = under(event, "button")?.dataset ?? {};
      if (!pressed) return;
      this.set(this.value.includes(pressed) ? this.value.filter((one) => one !== pressed) : [...this.value, pressed]);
      turn();
      rest(name, this.value);
    });
  }

  /** @param {DialHeader} described */
  show({ parameter, label, help, value }) {
    this.parameterName = parameter;
    setText(this.label, label);
    this.element.title = help;
    this.names.setAttribute("aria-label", label);
    this.set(value);
  }

  /** @param {string[]} value */
  set(value) {
    this.value = value;
    const chosen = value.map((one) => this.offered[one].toLowerCase()).join(", ");
    this.fold?.note(say("chosen", { chosen: chosen || say("none") }));
    for (const button of childrenOf(this.names)) button.setAttribute("aria-pressed", String(value.includes(button.dataset.name ?? "")));
  }

  parameter() {
    return `${this.parameterName}=${this.value.join(",") || "none"}`;
  }
}

const WHOLE = {
  valueAt: (/** @type {number} */ step) => step,
  stepOf: (/** @type {number} */ value) => value,
  textOf: (/** @type {number} */ value) => String(value),
  parameterOf: (/** @type {string} */ name, /** @type {number} */ value) => `${name}=${value}`,
};

const TENFOLD = 20; // steps from 1 to 10

const RATIOS = {
  valueAt: (/** @type {number} */ step) => Math.round(100 * 10 ** (step / TENFOLD)) / 100,
  stepOf: (/** @type {number} */ value) => Math.round(TENFOLD * Math.log10(value)),
  textOf: (/** @type {number} */ value) => value.toFixed(2),
  parameterOf: (/** @type {string} */ _, /** @type {number} */ value) => (value === 1 ? "" : `score=${encodeURIComponent(`score / ${value}`)}`),
};
