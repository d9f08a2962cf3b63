/** Bars that grow by themselves, each below a line of words. */

/** @import { Host } from "../types.d.ts" */
/** @import { Bar, ProgressHeader } from "./types.d.ts" */

import { childrenOf, clamp, makeElement, setText } from "../shared/dom.js";
import { LivePicture } from "../shared/live.js";
import { rendererOf } from "../shared/picture.js";

/** @extends {LivePicture<ProgressHeader>} */
class Progress extends LivePicture {
  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "progress");
    this.above = makeElement("p", "progress-note");
    this.below = makeElement("p", "progress-note");
    this.bars = makeElement("div", "progress-bars");
    root.prepend(makeElement("div", "progress", {}, [this.above, this.bars, this.below]));
  }

  receive() {
    const { above, below, bars, role } = this.data;
    setText(this.above, above);
    setText(this.below, below);
    while (this.bars.childElementCount > bars.length) this.bars.lastElementChild?.remove();
    while (this.bars.childElementCount < bars.length) this.bars.append(makeBar());
    bars.forEach((bar, i) => fillBar(childrenOf(this.bars)[i], bar, role));
  }
}

/** A line of words and a bar below it. */
export function makeBar() {
  const track = makeElement("div", "progress-track", { "aria-valuemin": 0, "aria-valuemax": 100 }, [makeElement("div")]);
  return makeElement("div", "progress-bar", {}, [makeElement("bdi"), track]);
}

/** Have a bar say and show how far it is. @param {HTMLElement} element @param {Bar} bar */
export function fillBar(element, { label, text, fraction }, role = "progressbar") {
  const [words, track] = element.children;
  const percent = clamp(100 * fraction, 0, 100);
  setText(words, text);
  const said = { role, "aria-label": label, "aria-valuetext": text, "aria-valuenow": Math.round(percent) };
  for (const [name, value] of Object.entries(said)) track.setAttribute(name, String(value));
  childrenOf(track)[0].style.width = `${percent}%`;
}

export const render = rendererOf(Progress);
