/** The places of all parts of the picture, in CSS pixels. */

/** @import { Stop } from "./types.d.ts" */

const NARROW = 640;
const NARROWEST = 120; // a column that opens or closes is narrower for a moment, and shows a part
const START = 92;
const END = 116;
const LEAST_LAYER = 26;
export const READABLE = 80; // a stop that is narrower has a short title, and of narrow layers one is opened
const LEAST = { read: 44, bars: 176, band: 222, lens: 262, whole: 352, longest: 66, widest: 46 };
const MOST_MORE = 330; // pixels that a high window gives it beyond the least

/**
 * The height of everything, the longest bar and the widest band. More room goes to the ribbons first, then to
 * the bars and the band. Where no tokens are predicted, nothing stands below the band.
 * @param {number} room the pixels that the picture may be high @param {boolean} hasLens
 */
export function heightsOf(room, hasLens) {
  const more = Math.min(Math.max(room - LEAST.whole, 0), MOST_MORE);
  /** @param {keyof typeof LEAST} name @param {number} share */
  const at = (name, share) => Math.round(LEAST[name] + share * more);
  return {
    read: LEAST.read, bars: at("bars", 0.7), band: at("band", 0.85), lens: at("lens", 1),
    whole: at(hasLens ? "whole" : "lens", 1),
    longest: at("longest", 0.3), widest: at("widest", 0.2),
  };
}

/**
 * A box {x, y, width, top, height} for each stop and one for the end: side by side, or one below the other where there
 * is no room. What reads tokens gets twice the room of what does not; where all are narrow, one layer has half of it all.
 * @param {Pick<Stop, "keys" | "layer">[]} stops @param {number} width
 * @param {number} room the pixels that it may be high where the stops stand side by side
 * @param {number} layer the layer that is opened where all are narrow
 * @param {boolean} hasLens whether the likely tokens stand below
 */
export function layoutWay(stops, width, room, layer, hasLens) {
  if (width < NARROW) return stacked(stops, Math.max(width, NARROWEST), heightsOf(0, hasLens));
  const added = stops.slice(1);
  const free = width - START - END;
  const isNarrow = 2 * unitOf(added, free) < READABLE;
  const opened = isNarrow ? added.filter((stop) => stop.layer === layer) : [];
  const wide = unitOf(opened, free / 2);
  const narrow = unitOf(added.filter((stop) => !opened.includes(stop)), opened.length ? free / 2 : free);
  const boxes = [{ x: 0, y: 0, width: START }];
  let x = START;
  for (const stop of added) {
    const box = { x, y: 0, width: shareOf(stop) * (opened.includes(stop) ? wide : narrow) };
    boxes.push(box);
    x += box.width;
  }
  const end = { x, y: 0, width: END };
  const heights = heightsOf(room, hasLens);
  return { boxes, end, width: end.x + END, height: heights.whole, heights, isStacked: false, isNarrow };
}

/** @param {Pick<Stop, "keys">} stop */
function shareOf({ keys }) {
  return keys ? 2 : 1;
}

/** The width of one share, where stops share a width. @param {Pick<Stop, "keys">[]} stops @param {number} width */
function unitOf(stops, width) {
  return Math.max(LEAST_LAYER / 2, width / stops.reduce((sum, stop) => sum + shareOf(stop), 0));
}

/** One below the other; what reads nothing has no room for what is read.
 *  @param {Pick<Stop, "keys">[]} stops @param {number} width @param {ReturnType<typeof heightsOf>} heights */
function stacked(stops, width, heights) {
  let y = 0;
  const boxes = stops.map(({ keys }) => {
    const skipped = keys ? 0 : 70;
    const box = { x: 0, y: y - skipped, width };
    y += heights.whole - skipped;
    return box;
  });
  const list = heights.whole - heights.lens;
  y -= list; // the last stop has no list of its own: the end follows
  return { boxes, end: { x: 0, y: y - heights.band + 40, width }, width, height: y + list + 50, heights, isStacked: true, isNarrow: false };
}

/**
 * The keys that are named, in the order of the text: those that get most of the weights of any head.
 * @param {Float32Array[]} rows one row of weights for each head
 * @param {number} most
 */
export function namedKeys(rows, most) {
  const count = rows[0].length;
  const largest = Array.from({ length: count }, (_, key) => Math.max(...rows.map((row) => row[key])));
  const order = largest.map((_, key) => key).sort((a, b) => largest[b] - largest[a] || a - b);
  return order.slice(0, count <= most ? count : Math.max(1, most - 1)).sort((a, b) => a - b);
}
