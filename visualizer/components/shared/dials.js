import { makeSlider } from "./controls.js";
import { makeElement, setText } from "./dom.js";

const PAUSE = 400; // milliseconds after which a dial that is moved by keys rests

/**
 * The dials of a picture. turn(): one of them is somewhere else; rest(name, value): a person has let go of it, or has
 * not touched its keys for a while.
 */
export class Dials {
  constructor({ turn, rest }) {
    this.turn = turn;
    this.rest = rest;
    this.dials = new Map();
    this.foremost = makeElement("div", "dials");
    this.element = makeElement("div", "dials");
  }

  destroy() {
    for (const dial of this.dials.values()) dial.destroy();
  }

  /** Show the dials of a header: {name, label, help, value, least, most, parameters, is_foremost} each. */
  show(described) {
    const names = described.map(({ name }) => name);
    for (const [name, dial] of this.dials) {
      if (names.includes(name)) continue;
      dial.destroy();
      dial.element.remove();
      this.dials.delete(name);
    }
    for (const one of described) {
      if (!this.dials.has(one.name)) this.dials.set(one.name, new Dial(one.name, this));
      this.dials.get(one.name).show(one);
    }
    for (const [place, isForemost] of [[this.foremost, true], [this.element, false]]) {
      const here = described.filter((one) => one.is_foremost === isForemost);
      const inOrder = here.map(({ name }) => this.dials.get(name).element);
      if (inOrder.some((element, i) => element !== place.children[i])) place.replaceChildren(...inOrder);
      place.hidden = here.length === 0;
    }
  }

  /** Where the numbers are of all dials as they stand, from the address without them. */
  addressFrom(address) {
    const parameters = [...this.dials.values()].map((dial) => dial.parameter()).filter(Boolean);
    return [address, ...parameters].join("&");
  }
}

/** A number on a slider: in whole steps, or, for the temperature, in equal ratios on both sides of 1. */
class Dial {
  constructor(name, { turn, rest }) {
    this.name = name;
    this.steps = name === "temperature" ? RATIOS : WHOLE;
    this.slider = makeSlider("dial-slider", name, (step) => {
      this.set(this.steps.valueAt(step));
      turn();
    });
    this.text = makeElement("output", "dial-text");
    this.label = makeElement("span");
    this.element = makeElement("label", "dial", { "data-dial": name }, [this.label, this.slider, this.text]);
    this.isByKeys = false;
    this.timer = 0;
    const tell = () => {
      clearTimeout(this.timer);
      this.timer = 0;
      rest(name, this.value);
    };
    this.slider.addEventListener("pointerdown", () => (this.isByKeys = false));
    this.slider.addEventListener("keydown", () => (this.isByKeys = true));
    this.slider.addEventListener("change", () => {
      clearTimeout(this.timer);
      if (this.isByKeys) this.timer = setTimeout(tell, PAUSE);
      else tell();
    });
    this.slider.addEventListener("blur", () => this.timer && tell());
  }

  destroy() {
    clearTimeout(this.timer);
  }

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

const WHOLE = {
  valueAt: (step) => step,
  stepOf: (value) => value,
  textOf: (value) => String(value),
  parameterOf: (name, value) => `${name}=${value}`,
};

const TENFOLD = 20; // steps from 1 to 10

const RATIOS = {
  valueAt: (step) => Math.round(100 * 10 ** (step / TENFOLD)) / 100,
  stepOf: (value) => Math.round(TENFOLD * Math.log10(value)),
  textOf: (value) => value.toFixed(2),
  parameterOf: (_, value) => (value === 1 ? "" : `score=${encodeURIComponent(`score / ${value}`)}`),
};
