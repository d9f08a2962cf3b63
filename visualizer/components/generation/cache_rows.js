/** The rows of K and V that each step computed, and those from the cache: a strip of cells per step. */

/** @import { Step, StepsHeader } from "./types.d.ts" */

import { countOf, makeElement, setText } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";

const say = textsOf("generation/cache_rows");

/** The strips; `update(data, index)` shows the steps up to `index`. */
export function makeCacheRows() {
  const sum = makeElement("p", "part-note cache-sum");
  const fromCache = legendEntry("cache-kept", say("kept"));
  const computed = legendEntry("cache-computed", say("computed"));
  const legend = makeElement("div", "cache-legend", {}, [computed, fromCache]);
  const strips = makeElement("div", "cache-strips");
  const element = makeElement("section", "cache-rows", {}, [
    makeElement("h3", "part-title", {}, [say("title")]),
    sum,
    legend,
    strips,
  ]);
  /** @param {StepsHeader} data @param {number} index */
  const update = (data, index) => {
    const seen = data.steps.slice(0, index + 1);
    const read = seen.map((_, step) => data.n_prompt + step);
    fromCache.hidden = !data.cached;
    setText(sum, rowsInWords(data, seen, read));
    const widest = data.n_prompt + data.steps.length - 1;
    strips.replaceChildren(...seen.map((step, at) => cacheStrip(data, step, at, read[at], widest, at === index)));
  };
  return { element, update };
}

/** One colour and what it says. @param {string} kind @param {string} text */
function legendEntry(kind, text) {
  return makeElement("span", "cache-entry", {}, [makeElement("span", `cache-swatch ${kind}`), text]);
}

/** The count of rows computed up to this step, with and without a cache.
 *  @param {StepsHeader} data @param {Step[]} seen @param {number[]} read */
function rowsInWords({ cached, keys, own }, seen, read) {
  const without = read.reduce((total, count) => total + count, 0);
  const computed = seen.reduce((total, step) => total + step.computed, 0);
  const source = own ? 0 : keys.labels.length;
  const sourceComputed = seen.reduce((total, step) => total + step.source_computed, 0);
  const [steps, rows] = [countOf(seen.length, "step"), countOf(computed, "row")];
  if (!cached) {
    const more = own ? "" : say("of_source", { rows: sourceComputed });
    return say("without_cache", { steps, rows, more });
  }
  const more = own ? "" : say("of_source_instead", { rows: sourceComputed, without: source * seen.length });
  return say("with_cache", { steps, rows, without, more });
}

/** The rows of one step: from the cache first, then those computed.
 *  @param {StepsHeader} data @param {Step} step @param {number} at @param {number} nRead @param {number} widest
 *  @param {boolean} isCurrent */
function cacheStrip(data, step, at, nRead, widest, isCurrent) {
  const kept = nRead - step.computed;
  const cells = makeElement("span", "cache-cells", {}, [...runOf("cache-kept", kept), ...runOf("cache-computed", step.computed)]);
  cells.style.setProperty("--widest", String(widest));
  cells.classList.toggle("cache-dense", widest > 60);
  const label = say("strip", { step: at + 1, computed: step.computed, kept });
  const name = isCurrent ? "cache-strip cache-current" : "cache-strip";
  const row = makeElement("div", name, { role: "img", "aria-label": label, title: label }, [
    makeElement("span", "cache-step", {}, [String(at + 1)]),
    cells,
  ]);
  if (!data.own) row.append(sourceRun(data, step));
  return row;
}

/** So many cells of a kind, if any. @param {string} kind @param {number} count */
function runOf(kind, count) {
  if (count === 0) return [];
  const run = makeElement("span", `cache-run ${kind}`);
  run.style.setProperty("--count", String(count));
  return [run];
}

/** The rows of the source: all of them computed, or all of them from the cache.
 *  @param {StepsHeader} data @param {Step} step */
function sourceRun({ keys }, step) {
  const isComputed = step.source_computed > 0;
  return makeElement("span", `cache-source ${isComputed ? "cache-computed" : "cache-kept"}`, {}, [
    say("source", { rows: keys.labels.length }),
  ]);
}
