import { makeSlider } from "../shared/controls.js";
import { makeElement, setText } from "../shared/dom.js";

const STEPS = 20; // to each side of 1
const LARGEST = 10;

/**
 * The temperature: what the scores are divided by before the softmax, from 0.1 to 10.
 * `drag()` is called for every place of the dial, `rest()` when a person lets go of it.
 */
export class Dial {
  constructor({ drag, rest }) {
    this.temperature = 1;
    this.slider = makeSlider("dial-slider", "temperature", (step) => {
      this.show(atStep(step));
      drag();
    });
    this.slider.max = String(2 * STEPS);
    this.slider.addEventListener("change", rest);
    this.text = makeElement("output", "dial-text");
    const title = "Divides the scores before the softmax: below 1 sharpens the weights, above 1 evens them out.";
    this.element = makeElement("label", "dial", { title }, ["Temperature", this.slider, this.text]);
  }

  show(temperature) {
    this.temperature = temperature;
    this.slider.value = String(STEPS + Math.round(STEPS * (Math.log(temperature) / Math.log(LARGEST))));
    this.slider.setAttribute("aria-valuetext", String(temperature));
    setText(this.text, temperature.toFixed(2));
  }

  /** Where the numbers of this place of the dial are. */
  addressFrom(address) {
    return this.temperature === 1 ? address : `${address}&score=${encodeURIComponent(`score / ${this.temperature}`)}`;
  }
}

function atStep(step) {
  return Math.round(100 * LARGEST ** (step / STEPS - 1)) / 100;
}
