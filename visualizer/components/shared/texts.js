/** Sentences and labels, which stand in `texts.json` by the module that says them; `{n}` in one is left open. */

import TEXTS from "../texts.json" with { type: "json" };

const OPEN = /\{(\w+)\}/;

/**
 * The texts of a module, for `const say = textsOf("generation/bars")`: `say(name, given)` is a text with what it
 * leaves open, `say.parts(name, given)` its parts, where nodes are given.
 * @template {keyof typeof TEXTS} Module
 * @param {Module} module
 */
export function textsOf(module) {
  const named = /** @type {any} */ (TEXTS[module]);
  /** @param {keyof (typeof TEXTS)[Module]} name @param {Record<string, any>} given */
  const parts = (name, given = {}) => named[name].split(OPEN).map((/** @type {string} */ part, /** @type {number} */ i) => (i % 2 ? given[part] : part));
  /** @param {keyof (typeof TEXTS)[Module]} name @param {Record<string, any>} given */
  const say = (name, given = {}) => parts(name, given).join("");
  return Object.assign(say, { parts });
}
