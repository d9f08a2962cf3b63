/**
 * A model's writing, one token at a time, forward and back: the tokens so far, the probabilities of the next one,
 * the attention row that it rests on, the mask as it grows, and the rows of K and V.
 *
 * All steps are here already: going from one to another asks the server for nothing.
 */

/** @import { Host, Matrix, PaletteName, TooltipLine } from "../types.d.ts" */
/** @import { StepsHeader } from "./types.d.ts" */

import { makeScale } from "../marks/scale.js";
import { marksOfCell } from "../shared/axis.js";
import { makeLayerControl, makeSlider } from "../shared/controls.js";
import { clamp, makeElement, setText, tokenSpan } from "../shared/dom.js";
import { ShownEvents } from "../shared/events.js";
import { MatrixPanel } from "../shared/grid.js";
import { isForPage } from "../shared/keys.js";
import { rowsWithoutKey } from "../shared/mask_planes.js";
import { floats } from "../shared/payload.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { describeCell, describeMatrix, describeRows } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { blockedText, cellPositionLine, tooltipLine } from "../shared/tooltip.js";
import { makeBars } from "./bars.js";
import { cacheCellText, cacheInWords, cacheMatrix, cacheRowTexts } from "./cache.js";

const say = textsOf("generation/steps");
/** @type {Record<string, number>} */
const STEP_KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
const LARGEST_CELL = 30; // below the size at which a cell of the mask would show its number
const WIDEST_NAME = 0.4; // of the picture, what the names of the heads may take where it is narrow
const EARLIER_ROW = 0.3; // of the mask's rows, those before the new one are paler

/** @extends {Picture<StepsHeader>} */
class GenerationSteps extends Picture {
  isSaved = true;
  index = 0;
  layer = 0;

  get seen() {
    return { step: this.index };
  }

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "generation_steps");
    this.bars = makeBars();
    this.layerControl = makeLayerControl((layer) => {
      this.layer = layer;
      this.events.changed();
      this.drawAttention();
    });
    this.attention = this.makePanel((row, column) => this.describeWeight(row, column));
    this.mask = this.makePanel((row, column) => this.describeMask(row, column));
    this.cache = this.makePanel((row, column) => this.describeCache(row, column));
    this.hearKeys((event) => this.pressKey(event));
    this.events = new ShownEvents(root, host, () => this.shown());
    this.endings.push(() => this.events.destroy());
    /** @param {string} name @param {string} text @param {() => void} go */
    const button = (name, text, go) => {
      const attributes = { type: "button", "aria-label": name, title: name };
      const element = makeElement("button", "transport-button", attributes, [text]);
      element.onclick = go;
      return element;
    };
    this.back = button(say("back"), "‹", () => this.go(this.index - 1));
    this.forward = button(say("forward"), "›", () => this.go(this.index + 1));
    this.slider = makeSlider("transport-slider", say("step"), (step) => this.go(step));
    this.place = makeElement("output", "transport-place");
    const hint = makeElement("span", "transport-hint", {}, [say("keys")]);
    this.transport = makeElement("div", "transport", {}, [
      this.back, this.slider, this.forward, this.place, hint,
    ]);
    this.tokens = makeElement("ol", "written", { "aria-label": say("written") });
    this.sentence = makeElement("p", "step-sentence", { "aria-live": "polite" });
    this.attentionTitle = makeElement("h2", "part-title");
    this.attentionNote = makeElement("p", "part-note");
    const attention = makeElement("section", "chosen-by", {}, [
      this.attentionTitle, this.attentionNote, this.layerControl.element, this.attention.element,
    ]);
    this.maskNote = makeElement("p", "part-note");
    const mask = makeElement("section", "growing-mask", {}, [
      makeElement("h2", "part-title", {}, [say("mask_title")]), this.maskNote, this.mask.element,
    ]);
    this.cacheNote = makeElement("p", "part-note cache-sum");
    const cache = makeElement("section", "cache-rows", {}, [
      makeElement("h2", "part-title", {}, [say("cache_title")]), this.cacheNote, this.cache.element,
    ]);
    const parts = [this.bars.element, attention, mask, cache];
    this.parts = makeElement("div", "step-parts", {}, parts);
    this.root.prepend(this.transport, this.tokens, this.sentence, this.parts);
  }

  /** A matrix with a note beside the pointer. @param {(row: number, column: number) => TooltipLine[]} describe */
  makePanel(describe) {
    return new MatrixPanel({
      hover: (panel, row, column, point) => {
        panel.light(row, column);
        const { rowAxis, columnAxis } = panel.matrix;
        this.pointAt(describe(row, column), point, marksOfCell(rowAxis, columnAxis, row, column));
      },
      leave: () => this.leave(),
      select: () => {},
    });
  }

  /** Take Python's step and layer, unless the person has changed them since Python last heard of it. */
  receive() {
    const last = this.data.arrays.weights.shape[1] - 1;
    if (this.events.areKnown(this.data.seq)) {
      this.index = this.data.step;
      this.layer = this.data.row_layer < 0 ? last : this.data.row_layer;
    }
    this.index = clamp(this.index, 0, this.data.steps.length - 1);
    this.layer = clamp(this.layer, 0, last);
  }

  /** Go to a step. @param {number} index */
  go(index) {
    this.index = clamp(index, 0, this.data.steps.length - 1);
    this.events.changed();
    this.tooltip.hide();
    this.redraw();
  }

  shown() {
    const last = this.data.arrays.weights.shape[1] - 1;
    return { step: String(this.index), row_layer: String(this.layer === last ? -1 : this.layer) };
  }

  /** The arrow keys of the page step, unless something that has the focus uses them itself.
   *  @param {KeyboardEvent} event */
  pressKey(event) {
    if (!(event.key in STEP_KEYS) || !isForPage(event)) return;
    event.preventDefault();
    this.go(this.index + STEP_KEYS[event.key]);
  }

  draw() {
    const { data, index } = this;
    this.drawTransport();
    this.drawTokens();
    setText(this.sentence, data.steps[index].sentence);
    this.bars.update(data.steps[index], data.sampled);
    this.drawAttention();
    this.drawMask();
    this.drawCache();
    this.restLights();
  }

  drawTransport() {
    const last = this.data.steps.length - 1;
    this.back.disabled = this.index === 0;
    this.forward.disabled = this.index === last;
    this.slider.max = String(last);
    this.slider.value = String(this.index);
    this.slider.disabled = last === 0;
    const text = say("place", { step: this.index + 1, steps: last + 1 });
    this.slider.setAttribute("aria-valuetext", text);
    setText(this.place, text);
  }

  drawTokens() {
    const { labels, n_prompt: nPrompt, steps } = this.data;
    const shown = labels.slice(0, nPrompt + this.index + 1);
    const someKept = steps.some(({ kept }) => kept);
    this.tokens.replaceChildren(...shown.map((label, place) => {
      const prompt = { title: `\u2068${label}\u2069` };
      if (place < nPrompt) return makeElement("li", "written-token written-prompt", prompt, [tokenSpan(label)]);
      const step = place - nPrompt;
      const isNew = step === this.index;
      const again = someKept && !steps[step].kept ? say("again") : "";
      const title = say("token", { step: step + 1, token: `\u2068${label}\u2069`, again });
      const tag = isNew ? "span" : "button"; // where one is already, there is nothing to go to
      const go = makeElement(tag, "written-go", { type: isNew ? null : "button", title }, [tokenSpan(label)]);
      if (!isNew) go.onclick = () => this.go(step);
      const item = makeElement("li", "written-token", isNew ? { "aria-current": "step" } : {}, [go]);
      item.classList.toggle("written-new", isNew);
      item.classList.toggle("written-again", someKept && !steps[step].kept);
      return item;
    }));
    this.tokens.scrollTop = this.tokens.scrollHeight;
  }

  /** The attention rows of this step: one row for each head of the layer. */
  drawAttention() {
    const { data, index } = this;
    const [, nLayers, nHeads, nKeys] = data.arrays.weights.shape;
    const nSeen = data.own ? data.n_prompt + index : nKeys;
    this.layerControl.set(this.layer, nLayers);
    setText(this.attentionTitle, data.title);
    const reading = data.labels[data.n_prompt + index - 1];
    setText(this.attentionNote, say("last_row", { token: `\u2068${reading}\u2069` }));
    const values = new Float32Array(nHeads * nSeen);
    const blocked = new Uint8Array(nHeads * nSeen);
    const start = (index * nLayers + this.layer) * nHeads * nKeys;
    for (let head = 0; head < nHeads; head += 1) {
      const from = start + head * nKeys;
      values.set(floats(data.arrays.weights, from, from + nSeen), head * nSeen);
      blocked.set(this.blockedKeys(nSeen), head * nSeen);
    }
    this.showMatrix(this.attention, {
      values,
      blocked,
      rows: nHeads,
      columns: nSeen,
      rowAxis: { name: "head", labels: data.heads, sequence: null, longest: this.width * WIDEST_NAME },
      columnAxis: { ...data.keys, labels: data.keys.labels.slice(0, nSeen) },
      blockedBy: data.own ? data.blocked_by : ["padding"],
    }, { cell: 44, cellHeight: 18, name: data.title });
  }

  /** The keys that the row of this step may not see. @param {number} nSeen */
  blockedKeys(nSeen) {
    const { data, index } = this;
    if (!data.own) return data.arrays.keys_blocked.data;
    const size = data.arrays.blocked.shape[0];
    const row = data.n_prompt + index - 1;
    return data.arrays.blocked.data.subarray(row * size, row * size + nSeen);
  }

  /** The mask over the tokens read in this step; the row of the last token is new. */
  drawMask() {
    const { data, index } = this;
    const size = data.arrays.blocked.shape[0];
    const nRead = data.n_prompt + index;
    const blocked = new Uint8Array(nRead * nRead);
    const values = new Float32Array(nRead * nRead).fill(EARLIER_ROW);
    values.fill(1, (nRead - 1) * nRead);
    for (let row = 0; row < nRead; row += 1) {
      blocked.set(data.arrays.blocked.data.subarray(row * size, row * size + nRead), row * nRead);
    }
    const labels = data.labels.slice(0, nRead);
    const token = `\u2068${labels.at(-1)}\u2069`;
    setText(this.maskNote, index ? say("new_row", { size: nRead, token }) : say("first_mask", { size: nRead, token }));
    const matrix = {
      values,
      blocked,
      rows: nRead,
      columns: nRead,
      rowAxis: { name: "query", labels, sequence: null },
      columnAxis: { name: "key", labels, sequence: null },
      blockedBy: data.blocked_by,
    };
    const said = { ...matrix, values: new Float32Array(nRead * nRead).fill(1) };
    this.showMatrix(this.mask, matrix, { cell: LARGEST_CELL, cellHeight: 0, name: say("mask"), said });
  }

  /** The rows of K and V of each step so far. */
  drawCache() {
    const { data, index } = this;
    setText(this.cacheNote, cacheInWords(data, index));
    const look = { cell: 20, cellHeight: 14, name: say("cache_title"), palette: /** @type {PaletteName} */ ("sequential_neutral") };
    this.showMatrix(this.cache, cacheMatrix(data, index), { ...look, rowTexts: () => cacheRowTexts(data, index) });
  }

  /** Draw a matrix; `said` is what its words say of it, where it is drawn otherwise.
   *  @param {MatrixPanel} panel @param {Omit<Matrix, "emptyRows" | "dtype">} matrix
   *  @param {{ cell: number, cellHeight: number, name: string, said?: { values: Float32Array }, palette?: PaletteName,
   *    rowTexts?: () => string[] }} look */
  showMatrix(panel, matrix, { cell, cellHeight, name, said = matrix, palette = "sequential", rowTexts }) {
    const emptyRows = rowsWithoutKey(matrix.blocked, matrix.rows, matrix.columns);
    const width = Math.min(panel.element.parentElement?.clientWidth ?? 0, 620);
    const whole = { ...matrix, emptyRows, dtype: this.data.arrays.weights.dtype };
    panel.show(whole, {
      scale: makeScale(this.theme, palette, [0, 1]),
      valueName: "weight",
      limits: { width, height: 420, cell, cellHeight },
      labelled: true,
      description: () => describeMatrix(name, { ...whole, values: said.values }),
      rowTexts: rowTexts ?? (() => describeRows({ ...whole, values: said.values })),
    });
  }

  onHover() {
    this.restLights();
  }

  /** With the pointer elsewhere, the new row of the mask is the one that is lit. */
  restLights() {
    this.attention.light(-1, -1);
    this.mask.light(this.data.n_prompt + this.index - 1, -1);
    this.cache.light(this.index, -1);
  }

  /** @param {number} row @param {number} column */
  describeWeight(row, column) {
    return describeCell(this.attention.matrix, "weight", row, column);
  }

  /** @param {number} row @param {number} column */
  describeMask(row, column) {
    const { rowAxis, columnAxis, blocked, blockedBy, columns } = this.mask.matrix;
    const bits = blocked?.[row * columns + column];
    const text = bits ? blockedText(bits, blockedBy ?? []) : say("allowed");
    return [cellPositionLine(rowAxis, columnAxis, row, column), tooltipLine("tooltip-note", text)];
  }

  /** @param {number} row @param {number} column */
  describeCache(row, column) {
    const { rowAxis, columnAxis, values, columns } = this.cache.matrix;
    const value = values[row * columns + column];
    return [cellPositionLine(rowAxis, columnAxis, row, column), tooltipLine("tooltip-note", cacheCellText(value))];
  }
}

export const render = rendererOf(GenerationSteps);
