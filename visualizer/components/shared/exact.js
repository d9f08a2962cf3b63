/** @import { Matrix } from "../types.d.ts" */

import { fetchNumbers } from "./arrivals.js";
import { Follower } from "./follower.js";

const REST = 20; // milliseconds on one cell: those that the pointer only passes are not asked for

/** @typedef {{ address: string, matrices: Record<string, Matrix>, index: number, say: () => void }} Wanted */

/**
 * The exact numbers of the cells that are pointed at, where they came in steps. They are kept with their matrices; until
 * they are there, and where they cannot be fetched, the number that came stands for them.
 */
export class ExactNumbers {
  constructor() {
    this.follower = new Follower((wanted) => this.fetch(wanted));
    this.forget();
  }

  /**
   * A cell is pointed at: `say()` once its numbers are there, unless another one is by then.
   * wanted: {address, matrices, index, say}; `matrices` by the names of their numbers in the answer.
   * @param {Wanted} wanted
   */
  want(wanted) {
    this.forget();
    if (!wanted.address || Object.values(wanted.matrices).every(({ exact }) => !exact || exact.get(wanted.index) !== undefined)) return;
    this.wanted = wanted;
    this.timer = setTimeout(() => this.follower.follow(wanted), REST);
  }

  /** Nothing is pointed at. */
  forget() {
    clearTimeout(this.timer);
    this.follower.stop();
    this.wanted = null;
  }

  /** @param {Wanted} wanted */
  async fetch(wanted) {
    const answer = await fetchNumbers(wanted.address).catch(() => null);
    if (!answer) return;
    for (const [name, { exact }] of Object.entries(wanted.matrices)) exact?.set?.(wanted.index, answer.arrays[name].data[0]);
    if (this.wanted === wanted) wanted.say();
  }
}

/** The address of the exact numbers of one cell, from that of its picture.
 *  @param {string} address @param {number} layer @param {number[]} place */
export function addressOfCell(address, layer, place) {
  const [path, query] = address.split("?");
  const parameters = new URLSearchParams(query);
  for (const [name, value] of Object.entries({ precision: "exact", layers: layer, at: place.join(",") })) {
    parameters.set(name, String(value));
  }
  return `${path}?${parameters}`;
}
