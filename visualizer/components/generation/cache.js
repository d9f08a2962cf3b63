/** The rows of K and V as a matrix: a row for each step, with what it computed and what it took from the cache. */

/** @import { StepsHeader } from "./types.d.ts" */

import { countOf } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";

const say = textsOf("generation/cache");
const [COMPUTED, FROM_CACHE] = [1, 0.3]; // a row that is not there is 0

/** The matrix of the steps up to one: the rows from the cache come first. @param {StepsHeader} data @param {number} index */
export function cacheMatrix({ labels, n_prompt: nPrompt, steps }, index) {
  const [rows, columns] = [index + 1, nPrompt + index];
  const values = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row += 1) {
    const first = row * columns;
    const computed = first + nPrompt + row - steps[row].computed;
    values.fill(FROM_CACHE, computed - steps[row].from_cache, computed);
    values.fill(COMPUTED, computed, first + nPrompt + row);
  }
  const numbers = steps.slice(0, rows).map((_, step) => String(step + 1));
  return {
    values,
    blocked: null,
    rows,
    columns,
    rowAxis: { name: say("step"), labels: numbers, sequence: null },
    columnAxis: { name: "key", labels: labels.slice(0, columns), sequence: null },
  };
}

/** One cell in words. @param {number} value */
export function cacheCellText(value) {
  return value === COMPUTED ? say("computed") : value ? say("from_cache") : say("not_there");
}

/** Each step up to one in words. @param {StepsHeader} data @param {number} index */
export function cacheRowTexts({ steps }, index) {
  return steps.slice(0, index + 1).map(({ computed, from_cache: kept }, step) =>
    say("row", { step: step + 1, computed, kept }));
}

/** The count of rows computed up to a step, with and without a cache. @param {StepsHeader} data @param {number} index */
export function cacheInWords({ cached, keys, own, n_prompt: nPrompt, steps: all }, index) {
  const steps = all.slice(0, index + 1);
  /** @param {number[]} counts */
  const sum = (counts) => counts.reduce((total, count) => total + count, 0);
  const ofSource = sum(steps.map((step) => step.source_computed));
  const [count, rows] = [countOf(steps.length, "step"), countOf(sum(steps.map((step) => step.computed)), "row")];
  if (!cached) {
    const more = own ? "" : say("of_source", { rows: ofSource });
    return say("without_cache", { steps: count, rows, more });
  }
  const more = own ? "" : say("of_source_instead", { rows: ofSource, without: keys.labels.length * steps.length });
  return say("with_cache", { steps: count, rows, without: sum(steps.map((_, step) => nPrompt + step)), more });
}
