/** Lines of words: prose, symbols of a formula, shapes. What opens the glossary is a button. */

/** @import { Host } from "../types.d.ts" */
/** @import { WordsHeader } from "./types.d.ts" */

import { wordNodes } from "../shared/define.js";
import { makeElement } from "../shared/dom.js";
import { Picture, rendererOf } from "../shared/picture.js";

/** @extends {Picture<WordsHeader>} */
class Words extends Picture {
  content = "";

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "words");
    this.list = makeElement("div");
    root.prepend(this.list);
  }

  /** Write the lines, unless the same stand there already: a button that has the focus keeps it. */
  receive() {
    const { look, lines } = this.data;
    const content = JSON.stringify([look, lines]);
    if (content === this.content) return;
    this.content = content;
    this.list.className = `words words-${look}`;
    this.list.replaceChildren(...lines.map((line) => makeElement("div", "line", {}, wordNodes(line))));
  }
}

export const render = rendererOf(Words);
