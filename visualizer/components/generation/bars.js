/** The probabilities of the next token as bars, the most likely first, the chosen one marked, the tail gathered. */

/** @import { Bar, Step, Tail } from "./types.d.ts" */

import { clamp, makeElement, setText, tokenSpan } from "../shared/dom.js";
import { formatNumber } from "../shared/payload.js";
import { textsOf } from "../shared/texts.js";

const say = textsOf("generation/bars");

/** The list of bars; `update(step, sampled)` shows those of a step. */
export function makeBars() {
  const note = makeElement("div", "bars-note");
  const list = makeElement("ol", "bars-list");
  const element = makeElement("section", "next-token", {}, [
    makeElement("h2", "part-title", {}, [say("title")]),
    note,
    list,
  ]);
  /** @param {Step} step @param {boolean} sampled */
  const update = ({ bars, tail }, sampled) => {
    const what = sampled ? say("sampled") : say("most_likely");
    const barred = bars.filter((bar) => bar.never).map((bar) => `\u2068${bar.label}\u2069`);
    const never = barred.length ? say("barred", { tokens: barred.join(say("and")) }) : "";
    setText(note, `${what}${never}`);
    const rows = bars.map((bar) => barRow(bar, sampled));
    if (tail.count > 0) rows.push(tailRow(tail, sampled));
    list.replaceChildren(...rows);
  };
  return { element, update };
}

/** One token: its rank, its text, its bar, its number. @param {Bar} bar @param {boolean} sampled */
function barRow(bar, sampled) {
  const word = bar.chosen ? say("chosen") : say("never");
  const mark = bar.chosen || bar.never ? [makeElement("span", "bar-mark", {}, [word])] : [];
  const row = makeElement("li", bar.chosen ? "bar-row bar-chosen" : "bar-row", {}, [
    makeElement("span", "bar-rank", {}, [String(bar.rank)]),
    makeElement("span", "bar-label", {}, [tokenSpan(bar.label)]),
    track(bar, sampled),
    makeElement("span", "bar-number", {}, [percent(bar.share)]),
    ...mark,
  ]);
  row.classList.toggle("bar-out", bar.share === 0 || bar.never);
  row.title = `\u2068${bar.label}\u2069: ${exactly(bar.share, bar.probability, sampled)}`;
  return row;
}

/** All the other tokens in one row. @param {Tail} tail @param {boolean} sampled */
function tailRow(tail, sampled) {
  const others = tail.count === 1 ? say("one_other") : say("others", { count: tail.count });
  return makeElement("li", "bar-row bar-tail", {}, [
    makeElement("span", "bar-rank"),
    makeElement("span", "bar-label", {}, [others]),
    track(tail, sampled),
    makeElement("span", "bar-number", {}, [percent(tail.share)]),
  ]);
}

/** The bar itself, and the model's own probability as an outline where it is another.
 *  @param {Pick<Bar, "share" | "probability">} bar @param {boolean} sampled */
function track({ share, probability }, sampled) {
  const filled = makeElement("span", "bar-fill");
  filled.style.width = `${100 * clamp(share, 0, 1)}%`;
  const parts = [filled];
  if (sampled) {
    const outline = makeElement("span", "bar-outline");
    outline.style.width = `${100 * clamp(probability, 0, 1)}%`;
    parts.push(outline);
  }
  return makeElement("span", "bar-track", { "aria-hidden": "true" }, parts);
}

/** A share as a person reads it: never 0% or 100% where it is neither. @param {number} share */
function percent(share) {
  if (share === 0 || share === 1) return `${100 * share}%`;
  if (share < 1e-4) return "< 0.01%";
  if (share > 0.9999) return "> 99.99%";
  return `${(100 * share).toFixed(share < 0.01 || share > 0.99 ? 2 : 1)}%`;
}

/** All digits of a share. @param {number} share @param {number} probability @param {boolean} sampled */
function exactly(share, probability, sampled) {
  const own = say("own", { probability: formatNumber(probability) });
  return sampled ? say("drawn_with", { share: formatNumber(share), own }) : own;
}
