/** The picture as SVG: the band of the residual stream, what is added to it, what is read, and what would be answered. */

/** @import { Answer, Bar, Part, Stop, WayBox, WayView } from "./types.d.ts" */

import { textContext } from "../marks/pen.js";
import { shortened } from "../marks/text.js";
import { clamp, makeSvgElement } from "../shared/dom.js";
import { must } from "../shared/must.js";
import { textsOf } from "../shared/texts.js";
import { headColor } from "../shared/theme.js";
import { namedKeys, READABLE } from "./layout.js";
import { shortNorm } from "./words.js";

const say = textsOf("token_way/draw");
const RIBBON = 12; // of the weight 1
const LEAST_WEIGHT = 0.02;
const [LEAST_NAMED, UPRIGHT] = [11, 26]; // the widths of a bar that has a name above it, and that has its norm upright
const LEAST_COUNTED = 14; // the room for the number of a head below narrow bars, of which only some have theirs
const WIDEST_LIST = 128;
const HEADING = 260; // of all lists: the others stand beside the first one, whose heading it is
const CERTAIN = 44; // the bar of probability 1: as long as the narrowest list has room for
const [LEAST_KEY, WIDEST_KEY] = [18, 44];
/** @type {Record<string, string>} */
const SHORT_NAMES = { feed_forward: say("feed_forward"), embedding: say("embedding"), position: say("position") };

/** Everything of one token's way. @param {WayView} view */
export function drawWay(view) {
  const { boxes } = view.layout;
  /** @type {Node[]} */
  const nodes = [drawBand(view)];
  view.stops.forEach((stop, index) => nodes.push(...drawStop(view, stop, index, boxes[index])));
  nodes.push(...drawEnd(view));
  return nodes;
}

/** A text that fits a width.
 *  @param {WayView} view @param {string} text @param {number} x @param {number} y @param {number} width
 *  @param {string} className */
function label(view, text, x, y, width, className, attributes = {}) {
  const size = className.includes("small") ? 10 : 11.5;
  const context = textContext(`500 ${size}px ${view.theme.font}`);
  return makeSvgElement("text", { x, y, class: className, ...attributes }, [shortened(context, text, Math.max(8, width))]);
}

/** Half the height of the band where its norm is a number. @param {WayView} view @param {number} norm */
function half(view, norm) {
  return Math.max(1, (norm / view.numbers.largestStream) * view.layout.heights.widest) / 2;
}

/** The band through every box: in each it grows or shrinks to the sum, and a norm of a layer brings it to another.
 *  @param {WayView} view */
function drawBand(view) {
  const { layout, stops, numbers } = view;
  const pieces = stops.map((_, index) => {
    const { x, y, width } = layout.boxes[index];
    const middle = y + view.layout.heights.band;
    const before = half(view, index ? numbers.stream(index - 1) : numbers.sum(0));
    const [sum, after] = [half(view, numbers.sum(index)), half(view, numbers.stream(index))];
    const points = [[x, before], [x + width * 0.4, before], [x + width * 0.6, sum], [x + width * 0.86, sum], [x + width, after]];
    return bandPath(points, middle);
  });
  const { x, y, width } = layout.end;
  if (!layout.isStacked) {
    const last = half(view, numbers.stream(stops.length - 1));
    pieces.push(bandPath([[x, last], [x + width * 0.08, last]], y + view.layout.heights.band));
  }
  return makeSvgElement("path", { d: pieces.join(" "), class: "band" });
}

/** @param {number[][]} points @param {number} middle */
function bandPath(points, middle) {
  const upper = points.map(([x, size]) => `${x},${middle - size}`);
  const lower = points.map(([x, size]) => `${x},${middle + size}`).reverse();
  return `M${[...upper, ...lower].join("L")}Z`;
}

/** @param {WayView} view @param {Stop} stop @param {number} index @param {WayBox} box */
function drawStop(view, stop, index, box) {
  const { x, y, width } = box;
  /** @type {Node[]} */
  const nodes = [];
  const title = width < READABLE ? shortTitle(stop.title, width) : stop.title;
  const top = y + (stop.keys || !view.layout.isStacked ? 11 : 82);
  nodes.push(label(view, title, x + 4, top, width - 6, "way-title small"));
  if (view.layout.isNarrow && stop.keys && stop.layer !== null) nodes.push(makeSvgElement("rect", { x, y, width, height: 16, class: "place", "data-layer": stop.layer }));
  const bars = placeBars(view, stop, box);
  if (stop.keys) nodes.push(...drawReading(view, stop, index, box, bars));
  nodes.push(...bars.flatMap((bar) => drawBar(view, bar)));
  nodes.push(drawPlace(view, stop, index, box));
  if (index < view.stops.length - 1) nodes.push(...drawLens(view, index, lensBox(view, index, box))); // the last is the end
  return nodes;
}

/** "layer 3 · self-attention" as "3 self" or, with less room, "3"; nothing over a feed-forward network.
 *  @param {string} title @param {number} width */
function shortTitle(title, width) {
  const [, layer, kind] = title.match(/layer (\d+) · (self|cross)/) ?? [null, "", ""];
  return width < 46 ? layer : `${layer} ${kind}`.trim();
}

/** A bar for each part that was added; with many the room for one becomes less.
 *  @param {WayView} view @param {Stop} stop @param {WayBox} box */
function placeBars(view, stop, { x, y, width }) {
  const each = Math.min(44, (width - 8) / stop.parts.length);
  const left = x + (width - each * stop.parts.length) / 2;
  return stop.parts.map((part, i) => {
    const norm = view.numbers.norm(part);
    const size = Math.max(1, (norm / view.numbers.largestPart) * view.layout.heights.longest);
    const reach = each >= UPRIGHT ? 27 : 40; // above it stand its name and, where there is no room, its norm on end
    return { part, norm, x: left + each * i, width: each, top: y + view.layout.heights.bars - size, size, reach, box: { x, width } };
  });
}

/** @param {WayView} view @param {Part} part */
function colorOf(view, { kind, head }) {
  if (head !== null) return headColor(view.theme, head);
  return { feed_forward: "var(--hl-feed_forward)", bias: "var(--hl-muted)" }[kind] ?? "var(--hl-query)";
}

/** A few letters for a part that is no head; of several embeddings the names.
 *  @param {WayView} view @param {Part} part */
function nameAbove({ parts }, { kind, label: name }) {
  const isOneOfSeveral = kind === "embedding" && parts.filter((part) => part.kind === kind).length > 1;
  return isOneOfSeveral ? name : SHORT_NAMES[kind] ?? kind;
}

/** @param {WayView} view @param {Bar} bar */
function drawBar(view, { part, norm, x, width, top, size, reach, box }) {
  const about = view.parts[part];
  const rect = makeSvgElement("rect", {
    x: x + width * 0.15, y: top, width: width * 0.7, height: size, rx: Math.min(2, width / 6), fill: colorOf(view, about),
  });
  const area = makeSvgElement("rect", { x, y: top - reach, width, height: size + reach + 14, class: "reach" });
  const stem = makeSvgElement("line", {
    x1: x + width / 2, x2: x + width / 2, y1: top + size, y2: top + size + 14, class: "stem",
  });
  const nodes = [area, stem, rect];
  if (width >= LEAST_NAMED) {
    const name = about.head === null ? nameAbove(view, about) : String(about.head);
    const middle = clamp(x + width / 2, box.x + 8, box.x + box.width - 8);
    nodes.push(label(view, name, middle, top - reach + 12, Math.max(width, 24), "small middle"));
    const turned = width < UPRIGHT ? { transform: `rotate(-90 ${middle + 3} ${top - 3})`, x: middle + 3 } : { x: middle };
    const where = { y: top - 3, class: width < UPRIGHT ? "small norm" : "small middle norm", ...turned };
    nodes.push(makeSvgElement("text", where, [shortNorm(norm)]));
  } else if (about.head !== null && about.head % Math.ceil(LEAST_COUNTED / width) === 0) {
    nodes.push(label(view, String(about.head), x + width / 2, top + size + 23, LEAST_COUNTED, "small middle"));
  }
  return [makeSvgElement("g", { class: "part", "data-part": part }, nodes)];
}

/** The tokens that are read, and a ribbon from each to the heads that read it, as wide as its weight.
 *  @param {WayView} view @param {Stop} stop @param {number} index @param {WayBox} box @param {Bar[]} bars */
function drawReading(view, stop, index, { x, y, width }, bars) {
  const { labels } = must(stop.keys, "nothing is read");
  const heads = bars.filter(({ part }) => view.parts[part].head !== null);
  const rows = heads.map(({ part }) => view.numbers.weights(index, view.parts[part].head ?? 0));
  const named = namedKeys(rows, Math.max(1, Math.floor((width - 6) / keyWidth(view, labels))));
  const others = rows[0].length - named.length;
  const slots = named.length + (others > 0 ? 1 : 0);
  const each = (width - 6) / slots;
  /** @param {number} slot */
  const middle = (slot) => x + 3 + each * (slot + 0.5);
  /** @type {Node[]} */
  const nodes = [];
  heads.forEach((bar, i) => {
    named.forEach((key, slot) => nodes.push(...ribbon(view, bar, middle(slot), y, rows[i][key])));
  });
  if (each < LEAST_KEY) return nodes; // the ribbons alone: names would stand over each other
  named.forEach((key, slot) => nodes.push(label(view, labels[key], middle(slot), y + view.layout.heights.read - 12, each - 3, "small middle token-read", { "data-key": key })));
  if (others > 0) nodes.push(label(view, `+${others}`, middle(named.length), y + view.layout.heights.read - 12, each + 12, "small middle muted"));
  return nodes;
}

/** The room for the name of a token that is read. @param {WayView} view @param {string[]} labels */
function keyWidth({ theme }, labels) {
  const context = textContext(`500 10px ${theme.font}`);
  return clamp(Math.max(...labels.map((text) => context.measureText(text).width)) + 8, LEAST_KEY, WIDEST_KEY);
}

/** @param {WayView} view @param {Bar} bar @param {number} from @param {number} y @param {number} weight */
function ribbon(view, bar, from, y, weight) {
  if (!(weight >= LEAST_WEIGHT)) return [];
  const [to, start, end] = [bar.x + bar.width / 2, y + view.layout.heights.read - 7, bar.top - (bar.width < LEAST_NAMED ? 2 : bar.reach)];
  const bend = (start + end) / 2;
  const d = `M${from},${start}C${from},${bend} ${to},${bend} ${to},${end}`;
  const look = { stroke: colorOf(view, view.parts[bar.part]), "stroke-width": weight * Math.min(RIBBON, bar.width) };
  return [makeSvgElement("path", { d, class: "ribbon", "data-of": bar.part, ...look })];
}

/** The place on the band that leads to the stage of the stream.
 *  @param {WayView} view @param {Stop} stop @param {number} index @param {WayBox} box */
function drawPlace(view, stop, index, { x, y, width }) {
  const size = half(view, view.numbers.sum(index));
  return makeSvgElement("rect", {
    x: x + width * 0.5, y: y + view.layout.heights.band - size - 2, width: width * 0.45, height: 2 * size + 4, class: "place", "data-stop": index,
  });
}

/** The place of the answers of a stop: where its own box is too narrow, those of a feed-forward under its layer.
 *  @param {WayView} view @param {number} index @param {WayBox} box */
function lensBox(view, index, box) {
  const next = view.layout.boxes[index + 1];
  const isUnderNext = view.stops[index].keys && next && !view.stops[index + 1].keys && next.width < 52;
  if ((box.width >= 52 && !isUnderNext) || index === 0) return box;
  if (view.stops[index].keys) return null;
  const before = view.layout.boxes[index - 1];
  return { x: before.x, y: before.y, width: before.width + box.width };
}

/** @param {WayView} view @param {number} index @param {WayBox | null} box */
function drawLens(view, index, box) {
  const likely = box && view.numbers.likely(index);
  if (!likely) return [];
  const count = box.width < 52 ? 1 : 4;
  const top = box.y + view.layout.heights.lens;
  const lines = likely.slice(0, count).flatMap((one, i) => answer(view, one, i, box, top, index));
  return index > 0 ? lines : [label(view, say("lens"), box.x + 4, top - 6, HEADING, "way-title small"), ...lines];
}

/** One line: a likely token, its probability, and a bar as long: in every list of the picture on one scale.
 *  @param {WayView} view @param {Answer} answer @param {number} i @param {Pick<WayBox, "x" | "width">} box
 *  @param {number} top @param {number | "end"} index */
function answer(view, { token, probability }, i, { x, width }, top, index) {
  const y = top + 20 * i;
  const room = Math.min(width - 8, WIDEST_LIST);
  const nodes = [
    makeSvgElement("rect", { x: x + 4, y, width: Math.max(1, CERTAIN * probability), height: 16, rx: 2, class: "answer" }),
    label(view, token, x + 7, y + 12, room - (room > 58 ? 34 : 2), i === 0 ? "answer-text first" : "answer-text"),
  ];
  if (room > 58) nodes.push(makeSvgElement("text", { x: x + 4 + room - 3, y: y + 12, class: "small end muted" }, [probability.toFixed(2)]));
  return [makeSvgElement("g", { class: "answers", "data-lens": index }, nodes)];
}

/** The goal after the last stop: the prediction, or who reads the stream. @param {WayView} view */
function drawEnd(view) {
  const { x, y, width } = view.layout.end;
  const left = x + width * (view.layout.isStacked ? 0 : 0.1);
  const box = { x: left, y, width: x + width - left };
  const likely = view.numbers.likely(view.stops.length - 1);
  const top = y + (likely ? view.layout.heights.band - 24 : view.layout.heights.band + 4);
  const title = label(view, view.end[0], left + 4, top, box.width - 6, "way-title");
  const lines = likely ? likely.flatMap((one, i) => answer(view, one, i, box, top + 8, "end")) : [];
  return [makeSvgElement("g", { class: "answers", "data-lens": "end" }, [title]), ...lines];
}
