/** A picture in words, row by row, for who does not see it: written once the picture stands, so that it waits for none. */

import { makeElement, whenIdle } from "./dom.js";
import { textsOf } from "./texts.js";

const say = textsOf("shared/reading");
const AFTER_THE_PICTURE = 600; // milliseconds without another picture until it is put into words
const MOST_LINES = 256; // lines in words; of a longer picture the others are counted

export class Reading {
  constructor() {
    this.element = makeElement("ul", "visually-hidden reading");
  }

  /** The words are of a picture that is not shown any more: nobody is to read it. */
  forget() {
    if (!this.element.hasAttribute("aria-busy")) this.element.setAttribute("aria-busy", "true");
    if (this.element.firstChild) this.element.replaceChildren();
    clearTimeout(this.timer);
    this.end?.();
  }

  /**
   * Write the rows of a picture, unless another is shown by then.
   * @param {string} name what they are the rows of
   * @param {() => string[]} lines makes one text for each row
   */
  writeSoon(name, lines) {
    this.forget();
    this.timer = setTimeout(() => {
      this.end = whenIdle(() => this.write(name, lines()));
    }, AFTER_THE_PICTURE);
  }

  /** @param {string} name @param {string[]} lines */
  write(name, lines) {
    const said = lines.slice(0, MOST_LINES);
    if (lines.length > MOST_LINES) said.push(say("more", { rows: lines.length - MOST_LINES }));
    this.element.setAttribute("aria-label", say("label", { name }));
    this.element.replaceChildren(...said.map((text) => makeElement("li", "", {}, [text])));
    this.element.removeAttribute("aria-busy");
  }
}
