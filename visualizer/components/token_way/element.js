/** @import { Host, Mark, Point, TooltipLine } from "../types.d.ts" */
/** @import { Target, WayHeader, WayNumbers, WayView } from "./types.d.ts" */

/**
 * One token's way from left to right, on a narrow page downwards.
 *
 * The numbers of all tokens are here: the arrow keys go to another token at once, and the host hears of it once the
 * person pauses. Pointing at a part shows its numbers, a click leads to its stage.
 */

import { clamp, makeElement, makeSvgElement, oncePerFrame, setText, tokenSpan, under } from "../shared/dom.js";
import { ShownEvents } from "../shared/events.js";
import { FetchedPicture } from "../shared/fetched.js";
import { chosenQuery } from "../shared/hover.js";
import { hasModifier, isForPage } from "../shared/keys.js";
import { must } from "../shared/must.js";
import { floats, formatNumber } from "../shared/payload.js";
import { rendererOf } from "../shared/picture.js";
import { Reading } from "../shared/reading.js";
import { roomBelow } from "../shared/room.js";
import { lineText } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { tooltipLine } from "../shared/tooltip.js";
import { drawWay } from "./draw.js";
import { layoutWay } from "./layout.js";
import { chance, percent, shortNorm, strongest } from "./words.js";

const say = textsOf("token_way/element");
const PAGE_STEPS = { ArrowLeft: -1, ArrowRight: 1 };
/** @type {Record<string, number>} */
const STEPS = { ...PAGE_STEPS, Home: -Infinity, End: Infinity };
/** @type {Record<string, number>} */
const PART_STEPS = { ArrowUp: -1, ArrowDown: 1 };
const MOST_WEIGHTS = 8;
/** @type {Record<string, number>} */
const LAYER_STEPS = { PageUp: -1, PageDown: 1 };
const FADED = 48; // pixels at the side where more of the picture is
const BELOW = 64; // pixels below the picture for the line that checks it

/** @extends {FetchedPicture<WayHeader>} */
class TokenWay extends FetchedPicture {
  isSaved = true;

  get seen() {
    return { selected: this.token };
  }

  /** @type {WayView} */ shown;
  count = 0;
  /** @type {{ size: string, room: number }} */ measured;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "token_way");
    this.token = 0;
    this.layer = 0;
    /** @type {number | undefined} */ this.lit = undefined;
    this.version = "";
    /** @type {number | null} */ this.cursor = null;
    this.heading = makeElement("div", "way-heading");
    this.svg = makeSvgElement("svg", { "aria-hidden": "true" });
    this.scroller = makeElement("div", "way-layers", {}, [this.svg]);
    this.live = makeElement("div", "visually-hidden", { "aria-live": "polite" });
    this.frame = makeElement("div", "token-way", { tabindex: "0", role: "application", "aria-label": say("keys") }, [this.heading, this.scroller]);
    this.reading = new Reading();
    root.prepend(this.frame, this.live, this.reading.element);
    this.events = new ShownEvents(root, host, () => ({ query: this.token, layer: this.layer }));
    this.endings.push(() => this.events.destroy(), () => this.reading.forget());
    this.svg.onpointermove = (event) => this.onPointer(event);
    this.svg.onpointerleave = () => this.leave();
    this.svg.onclick = (event) => this.open(this.targetOf(event));
    this.frame.onkeydown = (event) => this.onKey(event);
    this.frame.onblur = () => {
      this.leave();
      setText(this.live, "");
    };
    this.hearKeys((event) => event.key in PAGE_STEPS && isForPage(event) && this.onKey(event)); // wherever the focus is
    const fit = oncePerFrame(() => this.data && this.redraw()); // to a window that is higher or lower
    window.addEventListener("resize", fit, this.untilEnd);
  }

  /** Take over what Python sent, unless the person has gone to another token since. */
  receive() {
    const { selected, layer, seq, first } = this.data;
    this.count = this.data.arrays.sums.shape[1];
    const before = this.token;
    const isKnown = this.events.areKnown(seq);
    if (isKnown) this.layer = layer;
    this.token = clamp(isKnown ? selected : this.token, first, first + this.count - 1);
    const version = JSON.stringify([this.data.parts, this.data.stops, this.data.tokens]);
    if (version !== this.version || this.token !== before) {
      this.version = version;
      this.cursor = null;
      this.hear([]);
    }
  }

  /** The numbers of the token that is drawn. @returns {WayNumbers} */
  numbersOfToken() {
    const { arrays, vocabulary, first } = this.data;
    const at = this.token - first;
    /** @param {string} name */
    const read = (name) => {
      const numbers = floats(arrays[name]);
      return (/** @type {number} */ row) => numbers[row * this.count + at];
    };
    const norm = read("norms");
    return {
      norm, share: read("shares"), sum: read("sums"), stream: read("streams"),
      logit: arrays.logits ? read("logits") : null,
      largestStream: Math.max(...floats(arrays.sums), ...floats(arrays.streams)),
      largestPart: Math.max(...this.drawnParts().map(norm), 1e-30), // one scale for all bars that are in sight
      weights: (stop, head) => {
        const array = arrays[`weights${stop}`];
        const keys = array.shape[2];
        const start = (head * this.count + at) * keys;
        return floats(array, start, start + keys);
      },
      likely: (stop) => this.likelyAt(stop, at, vocabulary),
    };
  }

  /** @param {number} stop @param {number} at @param {Record<string, string>} vocabulary */
  likelyAt(stop, at, vocabulary) {
    const { likely, probabilities } = this.data.arrays;
    if (!likely) return null;
    const [, , count] = likely.shape;
    const start = (stop * this.count + at) * count;
    const found = floats(probabilities, start, start + count);
    return Array.from(found, (probability, i) => ({ token: vocabulary[likely.data[start + i]], probability }));
  }

  draw() {
    const { stops, parts, end } = this.data;
    const layout = layoutWay(stops, this.width, this.room(), this.layer, Boolean(this.data.arrays.likely));
    this.shown = { stops, parts, end, layout, theme: this.theme, numbers: this.numbersOfToken() };
    this.svg.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
    this.svg.setAttribute("width", String(layout.width));
    this.svg.setAttribute("height", String(layout.height));
    this.svg.replaceChildren(...drawWay(this.shown));
    if (layout.isNarrow) this.scrollToLayer();
    this.bringOut(this.data.light);
    this.light(this.lit);
    this.showHeading();
    this.reading.writeSoon(say("reading"), () => this.inWords());
  }

  /** The pixels down to the foot of the window, as they are when its size changes. */
  room() {
    const size = `${innerWidth} ${innerHeight} ${this.width}`;
    if (size !== this.measured?.size) {
      this.measured = { size, room: roomBelow(this.svg) - BELOW };
    }
    return this.measured.room;
  }

  /** Scroll until the layer that is opened is in sight. */
  scrollToLayer() {
    const { layout, stops } = this.shown;
    const boxes = layout.boxes.filter((_, index) => stops[index].layer === this.layer);
    if (boxes.length === 0) return;
    const [first, last] = [boxes[0], boxes[boxes.length - 1]];
    const least = last.x + last.width + FADED - this.width;
    this.scroller.scrollLeft = Math.min(Math.max(this.scroller.scrollLeft, least), first.x - FADED);
  }

  /** One text for each part, in the order of the model, and one for the stream after each step. */
  inWords() {
    /** @param {TooltipLine[]} lines */
    const said = (lines) => lines.map(lineText).join(", ");
    return this.data.stops.flatMap(({ parts }, stop) => [
      ...parts.map((part) => said(this.describePart(part))),
      said(this.describeStop(stop)),
    ]);
  }

  /** The picture in a sentence. */
  showHeading() {
    const { tokens, stops } = this.data;
    const { numbers, parts } = this.shown;
    const answer = numbers.likely(stops.length - 1)?.[0];
    const index = this.token;
    const token = tokenSpan(tokens.labels[this.token]);
    const said = answer
      ? this.saidOfAnswer(index, token, tokenSpan(answer.token), chance(answer.probability))
      : say.parts("unanswered", { index, token, end: this.data.end[0] });
    const most = strongest(parts.map((part, index) => ({ ...part, norm: numbers.norm(index), index })));
    if (most) {
      const place = stops.find((stop) => stop.parts.includes(most.index));
      said.push(say("most", { head: most.label, place: place?.title.replace(" · ", ", "), norm: shortNorm(most.norm) }));
    }
    this.heading.replaceChildren(...said, makeElement("span", "hint", {}, [say("hint"), this.shown.layout.isNarrow ? say("layers") : ""]));
  }

  /** @param {number} index @param {Node} token @param {Node} answer @param {string} probability */
  saidOfAnswer(index, token, answer, probability) {
    if (this.data.expects_next) return say.parts("predicts", { index, token, answer, probability });
    return say.parts("answers", { index, token, answer, probability });
  }

  /** The part or the stop that the pointer is on. @param {Event} event @returns {Target | null} */
  targetOf(event) {
    const part = under(event, "[data-part]")?.dataset.part ?? under(event, "[data-of]")?.dataset.of;
    if (part !== undefined) return { part: Number(part) };
    const layer = under(event, "[data-layer]")?.dataset.layer;
    if (layer !== undefined) return { layer: Number(layer) };
    const stop = under(event, "[data-stop]")?.dataset.stop ?? under(event, "[data-lens]")?.dataset.lens;
    if (stop === undefined) return null;
    return stop === "end" ? { end: true } : { stop: Number(stop) };
  }

  /** @param {Target | null} target */
  open(target) {
    if (!target) return;
    if (target.layer !== undefined) {
      this.openLayer(target.layer);
      return;
    }
    const part = target.part === undefined ? null : this.data.parts[target.part];
    const stop = target.stop === undefined ? null : this.data.stops[target.stop];
    const path = part?.path ?? stop?.path ?? this.data.end[1];
    const head = part && part.head !== null ? { head: part.head } : {};
    this.leave();
    this.events.send("open", { path, query: this.token, ...head });
  }

  /** @param {PointerEvent} event */
  onPointer(event) {
    this.point(this.targetOf(event), { x: event.clientX, y: event.clientY });
  }

  /** Show the numbers of a part or a stop, and light the tokens that it reads.
   *  @param {Target | null} target @param {Point} at */
  point(target, at) {
    this.light(target?.part);
    if (target?.part !== undefined) this.pointAt(this.describePart(target.part), at, this.marks(target.part));
    else if (target?.stop !== undefined) this.pointAt(this.describeStop(target.stop), at, this.marks());
    else this.leave();
  }

  /** @param {number} [part] @returns {Mark[]} */
  marks(part) {
    const own = { sequence: this.data.tokens.sequence ?? "", index: this.token, role: "query" };
    const { head } = part === undefined ? { head: null } : this.data.parts[part];
    const stop = this.data.stops.findIndex(({ keys, parts }) => keys && parts.some((one) => one === part));
    const sequence = this.data.stops[stop]?.keys?.sequence;
    if (head === null || !sequence) return [own];
    const row = this.shown.numbers.weights(stop, head);
    return [own, { sequence, index: row.indexOf(Math.max(...row)), role: "key" }];
  }

  /** @param {number} index */
  describePart(index) {
    const { numbers } = this.shown;
    const part = this.data.parts[index];
    const stop = this.data.stops.findIndex(({ parts }) => parts.includes(index));
    const lines = [
      tooltipLine("tooltip-head", this.data.stops[stop].title),
      tooltipLine("tooltip-value", makeElement("b", "", {}, [part.label])),
      tooltipLine("tooltip-value", say("norm", { norm: formatNumber(numbers.norm(index)), share: percent(numbers.share(index)) })),
    ];
    const answer = numbers.likely(this.data.stops.length - 1)?.[0];
    if (numbers.logit && answer) {
      const logit = formatNumber(numbers.logit(index));
      lines.push(tooltipLine("tooltip-value", ...say.parts("logit", { logit, answer: tokenSpan(answer.token) })));
    }
    return part.head === null ? lines : [...lines, ...this.describeRow(stop, part.head)];
  }

  /** The largest weights of a head, in the order of the text. @param {number} stop @param {number} head */
  describeRow(stop, head) {
    const { labels } = must(this.data.stops[stop].keys, "nothing is read");
    const row = [...this.shown.numbers.weights(stop, head)];
    const order = row.map((_, key) => key).sort((a, b) => row[b] - row[a] || a - b);
    const named = order.slice(0, MOST_WEIGHTS).sort((a, b) => a - b);
    const lines = named.map((key) => tooltipLine("tooltip-value way-weight",
      makeElement("span", "way-weight-bar", { style: `width: ${Math.round(60 * row[key])}px` }),
      ` ${row[key].toFixed(2)} ${key} `, tokenSpan(labels[key])));
    const rest = order.slice(MOST_WEIGHTS).reduce((sum, key) => sum + row[key], 0);
    if (row.length > MOST_WEIGHTS) lines.push(tooltipLine("tooltip-note", say("others", { count: row.length - MOST_WEIGHTS, sum: rest.toFixed(2) })));
    return lines;
  }

  /** @param {number} index */
  describeStop(index) {
    const { numbers } = this.shown;
    const lines = [
      tooltipLine("tooltip-head", say("after", { stop: this.data.stops[index].title })),
      tooltipLine("tooltip-value", say("stream", { norm: formatNumber(numbers.sum(index)) })),
    ];
    if (numbers.sum(index) !== numbers.stream(index)) {
      lines.push(tooltipLine("tooltip-value", say("normed", { norm: formatNumber(numbers.stream(index)) })));
    }
    const likely = numbers.likely(index);
    if (likely) lines.push(tooltipLine("tooltip-note", say("lens")));
    for (const { token, probability } of likely ?? []) {
      lines.push(tooltipLine("tooltip-value", `${probability.toFixed(3)} `, tokenSpan(token)));
    }
    return lines;
  }

  /** Bring one part out among the others; undefined for none, or for the one that a path leads to.
   *  @param {number | undefined} part */
  light(part) {
    this.lit = part;
    const shown = part ?? (typeof this.data.light === "number" ? this.data.light : undefined);
    this.svg.classList.toggle("lit", shown !== undefined);
    for (const node of this.svg.querySelectorAll(".current")) node.classList.remove("current");
    if (shown === undefined) return;
    for (const node of this.svg.querySelectorAll(`[data-part="${shown}"], [data-of="${shown}"]`)) node.classList.add("current");
  }

  /** Draw a light around what a path leads to: the stream, the prediction, or a part by its number.
   *  @param {string | number} what */
  bringOut(what) {
    this.svg.querySelector(".band")?.classList.toggle("spot", what === "stream");
    const found = { prediction: '[data-lens="end"]' }[what] ?? (typeof what === "number" ? `[data-part="${what}"] .reach` : null);
    const boxes = found ? [.../** @type {NodeListOf<SVGGraphicsElement>} */ (this.svg.querySelectorAll(found))].map((node) => node.getBBox()) : [];
    if (boxes.length === 0) return;
    const [left, top] = [Math.min(...boxes.map(({ x }) => x)) - 2, Math.min(...boxes.map(({ y }) => y)) - 2];
    const right = Math.max(...boxes.map(({ x, width }) => x + width)) + 2;
    const bottom = Math.max(...boxes.map(({ y, height }) => y + height)) + 2;
    const frame = { x: left, y: top, width: right - left, height: bottom - top, rx: 5, class: "spot" };
    this.svg.append(makeSvgElement("rect", frame));
  }

  /** @param {Mark[]} marks */
  onHover(marks) {
    const query = chosenQuery(marks, this.data.tokens.sequence);
    if (query !== null) this.follow(query);
    this.light(undefined);
    const keys = new Set(marks.filter(({ role }) => role !== "query").map(({ index }) => String(index)));
    for (const node of this.svg.querySelectorAll("[data-key]")) node.classList.toggle("marked", keys.has(node.getAttribute("data-key") ?? ""));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (hasModifier(event)) return;
    if (event.key in STEPS) this.go(this.token + STEPS[event.key]);
    else if (event.key in LAYER_STEPS && this.shown.layout.isNarrow) this.openLayer(this.layer + LAYER_STEPS[event.key]);
    else if (event.key in PART_STEPS) this.walk(PART_STEPS[event.key]);
    else if (event.key === "Enter" && this.cursor !== null) this.open({ part: this.drawnParts()[this.cursor] });
    else if (event.key === "Escape") this.leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Go to another token because the person asked for it. @param {number} token */
  go(token) {
    if (!this.follow(token)) return;
    this.leave();
    if (this.frame.matches(":focus")) setText(this.live, this.heading.textContent);
    this.events.changed();
  }

  /** Give another layer the room to be read. @param {number} layer */
  openLayer(layer) {
    if (layer === this.layer || !this.data.stops.some((stop) => stop.layer === layer)) return;
    this.layer = layer;
    this.draw();
    this.leave();
    this.events.changed();
  }

  /** Draw another token; the host hears of it from where it was chosen. Returns whether it is another one.
   *  @param {number} token */
  follow(token) {
    const { first } = this.data;
    const bounded = clamp(token, first, first + this.count - 1);
    if (bounded === this.token) return false;
    this.token = bounded;
    this.draw();
    return true;
  }

  drawnParts() {
    return this.data.stops.flatMap(({ parts }) => parts);
  }

  /** To the part before (-1) or after (1). @param {number} step */
  walk(step) {
    const parts = this.drawnParts();
    this.cursor = this.cursor === null ? 0 : clamp(this.cursor + step, 0, parts.length - 1);
    const part = parts[this.cursor];
    const box = must(this.svg.querySelector(`[data-part="${part}"]`), `no part ${part}`).getBoundingClientRect();
    this.point({ part }, { x: box.right, y: box.bottom });
    this.light(part);
    setText(this.live, this.describePart(part).map(lineText).join(", "));
  }
}

export const render = rendererOf(TokenWay);
