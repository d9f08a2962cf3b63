/**
 * The map of the model: blocks to click, the stages of the current block, Previous and Next, arrow keys.
 *
 * The highlight moves at once in the browser; Python hears of it as {path, seq}. What Python sends back counts only
 * if it is not older than the last thing the person did here.
 */

/** @import { Host } from "../types.d.ts" */
/** @import { Block, Layer, MapHeader, Model, PlacedStage, StageRow, Track } from "./types.d.ts" */

import { bringIntoView, childrenOf, clamp, countOf, makeElement, makeSvgElement, under } from "../shared/dom.js";
import { Events } from "../shared/events.js";
import { FetchedPicture } from "../shared/fetched.js";
import { hasModifier, isForPage } from "../shared/keys.js";
import { rendererOf } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";
import { tooltipLine } from "../shared/tooltip.js";
import { walkButton } from "../shared/walk.js";
import { zoomOf } from "../shared/zoom.js";
import { drawMap } from "./draw.js";
import { layoutMap } from "./layout.js";

const say = textsOf("stage_map/element");
const SEND_INTERVAL = 70;
const LARGEST_SCALE = 1.2;
const LOW_SCREEN = 800; // on which a second track is one line
const NARROW = 560;
const LEAST_MARGIN = 60; // between what is current and where it is cut off

/** A stage at its place. @param {StageRow} row @param {Pick<PlacedStage, "block" | "track" | "layer">} place */
function placed([end, title, role, shape = "", detail, label, also = []], place) {
  const path = end.startsWith(".") ? place.block.id + end : end;
  return { path, title, role: role || "neutral", shape, isDetail: detail === 1, label: label || title, also, ...place };
}

/** Every stage in order, with the block, layer and track it belongs to. @param {Model} model */
function flattenStages(model) {
  /** @type {PlacedStage[]} */
  const stages = [];
  /** @param {Block | null} block @param {Track | null} track @param {Layer | null} layer */
  const add = (block, track, layer) =>
    block?.stages.forEach((row) => stages.push(placed(row, { block, track, layer })));
  for (const track of model.tracks) {
    add(track.inputs, track, null);
    for (const layer of track.layers) layer.blocks.forEach((block) => add(block, track, layer));
    add(track.end, track, null);
  }
  add(model.output, null, null);
  return stages;
}

/** The place of a stage, in words: "Encoder · layer 0 · self-attention". @param {PlacedStage} stage */
function placeInWords({ track, layer, block }) {
  return [track?.title, layer?.label, block.label].filter(Boolean).join(" · ");
}

/** A stage named as seen from another: with its block when that is a different one.
 *  @param {PlacedStage} stage @param {PlacedStage} other */
function nameSeenFrom(stage, other) {
  return stage.block === other.block ? stage.title : `${stage.block.label} · ${stage.title}`;
}

/** The elements of the map, in the order of the page. @param {HTMLElement} root */
function buildMap(root) {
  const svg = makeSvgElement("svg", { "aria-hidden": "true" });
  const scroller = makeElement("div", "picture", {}, [svg]);
  const stageRow = makeElement("div", "stages", { role: "group", "aria-label": say("stages") });
  const previous = walkButton("previous", "‹");
  const next = walkButton("next", "›");
  const place = makeElement("div", "place");
  const counter = makeElement("div", "counter");
  const here = makeElement("div", "here", { "aria-live": "polite" }, [place, counter]);
  const walk = makeElement("div", "walk", {}, [previous, here, next]);
  const attributes = { tabindex: "0", role: "group", "aria-label": say("map") };
  const all = makeElement("button", "all", { type: "button" }, [say("all")]);
  const row = makeElement("div", "row", {}, [walk, stageRow, all]);
  const frame = makeElement("div", "stage-map", attributes, [scroller, row]);
  root.prepend(frame);
  return { svg, scroller, row, stageRow, all, previous, next, place, counter, frame };
}

/** @extends {FetchedPicture<MapHeader>} */
class StageMap extends FetchedPicture {
  isSaved = true;
  /** @type {Model} */ model;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "stage_map");
    this.nodes = buildMap(root);
    this.events = new Events(host);
    this.version = "";
    this.modelNumber = 0;
    /** @type {PlacedStage[]} */ this.stages = [];
    /** @type {Record<string, boolean>} */ this.verdicts = {};
    this.index = 0;
    /** @type {string | null} */ this.openLayer = null;
    this.drawn = "";
    /** @type {Block | null} */ this.rowOf = null;
    this.showsAll = false;
    this.lastSent = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this.timer = undefined;
    const { svg, stageRow, all, previous, next } = this.nodes;
    previous.onclick = () => go(this, shownFrom(this, -1));
    next.onclick = () => go(this, shownFrom(this, 1));
    all.onclick = () => {
      this.showsAll = !this.showsAll;
      show(this);
    };
    svg.onclick = (event) => clickPicture(this, event);
    svg.onpointermove = (event) => showTip(this, event);
    svg.onpointerleave = () => this.tooltip.hide();
    stageRow.onclick = (event) => clickStage(this, event);
    this.hearKeys((event) => pressKey(this, event));
    this.endings.push(() => clearTimeout(this.timer));
  }

  /** Take over what Python sent; of a stage that is older than the person's last step, only the model. */
  receive() {
    const { model, current, verdicts, seq } = this.data;
    const herePath = this.stages[this.index]?.path;
    const version = JSON.stringify([model, verdicts]);
    if (version !== this.version) {
      Object.assign(this, { version, model, verdicts, stages: flattenStages(model), rowOf: null, openLayer: null });
      this.modelNumber += 1;
    }
    /** @param {string} path */
    const indexOf = (path) => this.stages.findIndex((stage) => stage.path === path || stage.also.includes(path));
    const isOlder = !this.events.areKnown(seq) && indexOf(herePath) >= 0;
    this.index = Math.max(0, indexOf(isOlder ? herePath : current));
  }

  draw() {
    if (this.stages.length > 0) show(this);
  }
}

/** Go to a stage because the person asked for it, and tell Python. @param {StageMap} map @param {number} index */
function go(map, index) {
  const bounded = clamp(index, 0, map.stages.length - 1);
  if (bounded === map.index) return;
  map.index = bounded;
  map.events.count();
  show(map);
  tellPython(map);
}

/** Send where we are: at once after a pause, else when the interval is over, so that the last place always arrives.
 *  @param {StageMap} map */
function tellPython(map) {
  const wait = map.lastSent + SEND_INTERVAL - performance.now();
  clearTimeout(map.timer);
  if (wait > 0) {
    map.timer = setTimeout(() => tellPython(map), wait);
    return;
  }
  map.lastSent = performance.now();
  map.host.send("stage", { path: map.stages[map.index].path, seq: map.events.seq });
}

/** Draw everything that depends on the current stage. @param {StageMap} map */
export function show(map) {
  drawPicture(map);
  markPicture(map);
  map.nodes.row.hidden = !map.data.with_stages;
  map.nodes.frame.classList.toggle("beside-path", !map.data.with_stages);
  showStageRow(map);
  showWalk(map);
}

/** Redraw the picture, but only when its layout changes. @param {StageMap} map */
function drawPicture(map) {
  const available = map.nodes.scroller.clientWidth;
  const openLayers = new Set([map.stages[map.index].layer?.id, map.openLayer].filter((id) => typeof id === "string"));
  const slimTracks = new Set(slimNames(map, openLayers));
  const signature = [available, map.modelNumber, ...openLayers, "", ...slimTracks].join();
  if (signature === map.drawn || available === 0) return;
  map.drawn = signature;
  const layout = layoutMap(map.model, openLayers, available, slimTracks);
  const scale = clamp(available / layout.width, 1, LARGEST_SCALE);
  map.nodes.svg.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
  map.nodes.svg.setAttribute("width", String(layout.width * scale));
  map.nodes.svg.setAttribute("height", String(layout.height * scale));
  map.nodes.svg.replaceChildren(...drawMap(layout));
}

/** The tracks that are drawn as one low line: on a low screen those in which nothing is looked at or open.
 *  @param {StageMap} map @param {Set<string>} openLayers */
function slimNames(map, openLayers) {
  const { tracks } = map.model;
  const { scroller } = map.nodes;
  const isLarge = window.innerHeight / zoomOf(scroller) >= LOW_SCREEN && scroller.clientWidth >= NARROW;
  if (tracks.length === 1 || isLarge) return [];
  const current = map.stages[map.index].track ?? tracks[tracks.length - 1];
  /** @param {Track} track */
  const isOpen = (track) => track.layers.some(({ id }) => openLayers.has(id));
  return tracks.filter((track) => track.name !== current.name && !isOpen(track)).map(({ name }) => name);
}

/** Light the current block and bring it into view. @param {StageMap} map */
function markPicture(map) {
  const current = map.stages[map.index].block.id;
  for (const group of map.nodes.svg.querySelectorAll("[data-block]")) {
    group.classList.toggle("current", group.getAttribute("data-block") === current);
  }
  const block = map.nodes.svg.querySelector(".block.current");
  if (block) bringIntoView(map.nodes.scroller, block, LEAST_MARGIN);
}

/** True if a stage stands in the row of its block: a detail does with all the others, or while it is looked at.
 *  @param {StageMap} map @param {number} index */
function isInRow(map, index) {
  return map.showsAll || index === map.index || !map.stages[index].isDetail;
}

/** The next stage in a direction that stands in the row of its block; past an end there is none.
 *  @param {StageMap} map @param {number} direction */
function shownFrom(map, direction) {
  let index = map.index + direction;
  while (map.stages[index] && !isInRow(map, index)) index += direction;
  return index;
}

/** The stages of the current block as chips. @param {StageMap} map */
function showStageRow(map) {
  const { block } = map.stages[map.index];
  if (map.rowOf !== block) {
    map.rowOf = block;
    const first = map.stages.findIndex((stage) => stage.block === block);
    map.nodes.stageRow.replaceChildren(...block.stages.map((_, offset) => stageChip(map, first + offset)));
    map.nodes.row.dataset.role = block.role;
  }
  const { all } = map.nodes;
  all.hidden = !map.stages.some((stage) => stage.block === block && stage.isDetail);
  all.title = map.showsAll ? say("show_main") : say("show_all", { count: block.stages.length, block: block.label });
  all.setAttribute("aria-pressed", String(map.showsAll));
  for (const chip of childrenOf(map.nodes.stageRow)) {
    const isCurrent = Number(chip.dataset.index) === map.index;
    chip.hidden = !isInRow(map, Number(chip.dataset.index));
    chip.setAttribute("aria-current", isCurrent ? "step" : "false");
    if (isCurrent) bringIntoView(map.nodes.stageRow, chip, LEAST_MARGIN);
  }
}

/** One chip of the row, with a tick or a cross where its numbers were published.
 *  @param {StageMap} map @param {number} index */
function stageChip(map, index) {
  const stage = map.stages[index];
  const checked = [stage.path, ...stage.also].find((path) => path in map.verdicts);
  const isRight = checked !== undefined && map.verdicts[checked];
  const said = checked === undefined ? "" : isRight ? say("published") : say("not_published");
  const attributes = {
    type: "button",
    title: [`${stage.label} ${stage.shape}`.trim(), said].filter(Boolean).join(", "),
    "data-index": index,
    "data-role": stage.role,
    "data-code": stage.label,
  };
  const chip = makeElement("button", "stage", attributes, [stage.title]);
  if (said) chip.append(makeElement("span", "verdict", { role: "img", "aria-label": said }, [isRight ? "✓" : "✗"]));
  return chip;
}

/** Previous, Next and the counter. @param {StageMap} map */
function showWalk(map) {
  const here = map.stages[map.index];
  map.nodes.place.textContent = placeInWords(here);
  const { counter } = map.nodes;
  counter.textContent = placeOf(map.index + 1, map);
  counter.style.minWidth = `${placeOf(map.stages.length, map).length}ch`;
  showNeighbour(map.nodes.previous, map.stages[shownFrom(map, -1)], here, say("previous"));
  showNeighbour(map.nodes.next, map.stages[shownFrom(map, 1)], here, say("next"));
}

/** The words "stage 3 of 1,248". @param {number} stage @param {StageMap} map */
function placeOf(stage, map) {
  return say("place", { stage: stage.toLocaleString("en"), stages: map.stages.length.toLocaleString("en") });
}

/** A button that names the stage it leads to, beside the pointer and to who cannot see.
 *  @param {HTMLButtonElement} button @param {PlacedStage | undefined} neighbour @param {PlacedStage} here
 *  @param {string} word */
function showNeighbour(button, neighbour, here, word) {
  const name = neighbour ? nameSeenFrom(neighbour, here) : "";
  button.disabled = !neighbour;
  const said = `${word}: ${name || say("none")}`;
  button.title = said;
  button.setAttribute("aria-label", said);
}

/** A click in the picture: a closed layer opens, a block goes to its most telling stage, a frame closes again.
 *  @param {StageMap} map @param {Event} event */
function clickPicture(map, event) {
  const layer = under(event, "[data-layer]");
  if (layer?.classList.contains("closed")) {
    map.openLayer = layer.dataset.layer ?? null;
    show(map);
    return;
  }
  const block = under(event, "[data-block]");
  if (block?.dataset.block) goToBlock(map, block.dataset.block);
  else if (layer && layer.dataset.layer === map.openLayer) {
    map.openLayer = null;
    show(map);
  }
}

/** Go to the stage that says most about a block; a block that is current already keeps its stage.
 *  @param {StageMap} map @param {string} blockId */
function goToBlock(map, blockId) {
  if (map.stages[map.index].block.id === blockId) return;
  go(map, map.stages.findIndex((stage) => stage.block.id === blockId && stage.path === stage.block.telling));
}

/** A click on a chip. @param {StageMap} map @param {Event} event */
function clickStage(map, event) {
  const chip = under(event, "[data-index]");
  if (chip) go(map, Number(chip.dataset.index));
}

/** Arrow keys work anywhere on the page where they have no other meaning; Home, End and page keys on the map.
 *  @param {StageMap} map @param {KeyboardEvent} event */
function pressKey(map, event) {
  const isInside = event.composedPath().includes(map.nodes.frame);
  if (event.defaultPrevented || event.shiftKey || hasModifier(event) || !(isInside || isForPage(event))) return;
  const index = indexAfterKey(map, event.key, isInside);
  if (index === null) return;
  event.preventDefault();
  go(map, index);
}

/** The stage that a key leads to, null when the key means nothing here.
 *  @param {StageMap} map @param {string} key @param {boolean} isInside */
function indexAfterKey(map, key, isInside) {
  if (key === "ArrowLeft") return map.index - 1;
  if (key === "ArrowRight") return map.index + 1;
  if (!isInside) return null;
  if (key === "Home") return 0;
  if (key === "End") return map.stages.length - 1;
  if (key === "PageUp") return neighbourBlock(map, -1);
  if (key === "PageDown") return neighbourBlock(map, 1);
  return null;
}

/** The telling stage of the block before (-1) or after (1) the current one.
 *  @param {StageMap} map @param {number} direction */
function neighbourBlock(map, direction) {
  const { block } = map.stages[map.index];
  let index = map.index;
  while (map.stages[index]?.block === block) index += direction;
  const other = map.stages[index]?.block;
  return other ? map.stages.findIndex((stage) => stage.path === other.telling) : map.index;
}

/** The words at the pointer: a block's full name, stages and shape, or what a click on a closed layer does.
 *  @param {StageMap} map @param {PointerEvent} event */
function showTip(map, event) {
  const lines = tipLines(map, event);
  if (lines.length > 0) map.tooltip.show(lines.map((line) => tooltipLine("", line)), event.clientX, event.clientY);
  else map.tooltip.hide();
}

/** The lines of the tooltip for what the pointer is on. @param {StageMap} map @param {Event} event */
function tipLines(map, event) {
  const layer = under(event, "[data-layer]");
  if (layer?.classList.contains("closed")) {
    const inside = map.stages.find((stage) => stage.layer?.id === layer.dataset.layer);
    return [[inside?.track?.title, inside?.layer?.label].filter(Boolean).join(" · "), say("open")];
  }
  const id = under(event, "[data-block]")?.dataset.block;
  const telling = map.stages.find((stage) => stage.block.id === id && stage.path === stage.block.telling);
  if (!telling) return [];
  const counted = countOf(telling.block.stages.length, "stage");
  return [placeInWords(telling), `${telling.label}  ${telling.shape}`.trim(), counted];
}

export const render = rendererOf(StageMap);
