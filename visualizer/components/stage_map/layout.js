/**
 * The places of everything on the map. Pure arithmetic: a model and a width in, boxes and lines out, in pixels.
 *
 * A layer has one of three forms: "labelled" (named blocks, residual arrows), "pills" (one small clickable block
 * each) and "closed" (a narrow frame that opens on a click).
 */

/** @import { Block, BlockBox, Form, Frame, Item, Layer, Model, PlacedTrack, Track, Wire } from "./types.d.ts" */

import { must } from "../shared/must.js";

export const MARGIN = 6;
const BLOCK_HEIGHT = 42;
const TITLE_HEIGHT = 19;
const ARC_HEIGHT = 17;
const FRAME_PADDING = 14;
const FRAME_BOTTOM = 9;
const GAP_BETWEEN_BLOCKS = 15;
const GAP_BETWEEN_LAYERS = 20;
const GAP_BETWEEN_CLOSED = 6;
const CHANNEL_HEIGHT = 34;
const PILL_WIDTH = 13;
const PILL_GAP = 4;
const PILL_PADDING = 9;
const CLOSED_WIDTH = 22;
const CHARACTER_WIDTH = 6.5;
const BRANCH_OFFSET = 5;
const TICK_PITCH = 7;
/** @type {Form[]} */
const FORMS = ["labelled", "pills", "closed"];
const SLIM = { height: 22, gap: 12, padding: 16, title: 8 };

/** The label in at most two lines: broken after its first hyphen, or at the space that makes them shortest.
 *  @param {string} label */
export function labelLines(label) {
  const hyphen = label.indexOf("-");
  if (hyphen >= 0) return [label.slice(0, hyphen + 1), label.slice(hyphen + 1)];
  const words = label.split(" ");
  const broken = words.map((_, n) => [words.slice(0, n).join(" "), words.slice(n).join(" ")].filter(Boolean));
  return broken.sort((one, other) => longest(one) - longest(other))[0];
}

/** @param {string[]} lines */
function longest(lines) {
  return Math.max(...lines.map((line) => line.length));
}

/** Width of a named block: its longest line and some air. @param {Block} block */
function blockWidth(block) {
  return Math.max(40, Math.round(longest(labelLines(block.label)) * CHARACTER_WIDTH + 16));
}

/** True if the layer has a frame of its own; the nameless layer of a part traced alone has none.
 *  @param {Layer} layer */
function isFramed(layer) {
  return layer.label !== "";
}

/** Width of a layer in one of the three forms. @param {Layer} layer @param {Form} form */
function layerWidth(layer, form) {
  const count = layer.blocks.length;
  if (form === "closed") return CLOSED_WIDTH;
  if (form === "pills") return count * PILL_WIDTH + (count - 1) * PILL_GAP + 2 * PILL_PADDING;
  const blocks = layer.blocks.reduce((sum, block) => sum + blockWidth(block), 0);
  return blocks + (count - 1) * GAP_BETWEEN_BLOCKS + 2 * FRAME_PADDING;
}

/** The room before the element at `index`: closed neighbours stand close together.
 *  @param {Item[]} items @param {number} index */
function gapBefore(items, index) {
  if (index === 0) return 0;
  const bothClosed = items[index].form === "closed" && items[index - 1].form === "closed";
  return bothClosed ? GAP_BETWEEN_CLOSED : GAP_BETWEEN_LAYERS;
}

/** The elements of a track from left to right, each with its width.
 *  @param {Track} track @param {Block | null} output @param {(layer: Layer) => Form} formOf */
function trackItems(track, output, formOf) {
  /** @type {Item[]} */
  const items = [];
  /** @param {Block | null} block */
  const add = (block) => block && items.push({ block, form: "labelled", width: blockWidth(block) });
  add(track.inputs);
  for (const layer of track.layers) {
    const form = formOf(layer);
    items.push({ layer, form, width: layerWidth(layer, form) });
  }
  add(track.end);
  add(output);
  return items;
}

/** Total width of a row of elements with the gaps between them. @param {Item[]} items */
function rowWidth(items) {
  return items.reduce((sum, item, index) => sum + item.width + gapBefore(items, index), 0);
}

/** The track's elements, the layers that are not open in the roomiest form that fits the width.
 *  @param {Track} track @param {Block | null} output @param {Set<string>} openLayers @param {number} available */
function fitTrack(track, output, openLayers, available) {
  /** @param {Form} form */
  const withOthers = (form) =>
    trackItems(track, output, (layer) => (openLayers.has(layer.id) || !isFramed(layer) ? "labelled" : form));
  return FORMS.map(withOthers).find((items) => rowWidth(items) <= available) ?? withOthers("closed");
}

/** Boxes of a layer's blocks inside its frame, by the layer's form.
 *  @param {Layer} layer @param {Form} form @param {Frame} frame @returns {BlockBox[]} */
function placeBlocks(layer, form, frame) {
  if (form === "closed") return placeTicks(layer, frame);
  const isPill = form === "pills";
  const gap = isPill ? PILL_GAP : GAP_BETWEEN_BLOCKS;
  const height = isPill ? BLOCK_HEIGHT - 10 : BLOCK_HEIGHT;
  let x = frame.x + (isPill ? PILL_PADDING : FRAME_PADDING);
  return layer.blocks.map((block) => {
    const width = isPill ? PILL_WIDTH : blockWidth(block);
    const box = { block, form, x, y: frame.wire - height / 2, width, height };
    x += width + gap;
    return box;
  });
}

/** The blocks of a closed layer as a stack of small bars, only to be seen.
 *  @param {Layer} layer @param {Frame} frame @returns {BlockBox[]} */
function placeTicks(layer, frame) {
  const pitch = Math.min(TICK_PITCH, (BLOCK_HEIGHT + FRAME_BOTTOM) / layer.blocks.length);
  const height = pitch * 0.6;
  const top = frame.wire - (layer.blocks.length * pitch - (pitch - height)) / 2;
  return layer.blocks.map((block, index) => ({
    block,
    form: "closed",
    x: frame.x + 6,
    y: top + index * pitch,
    width: frame.width - 12,
    height,
  }));
}

/** Residual arrows of a labelled layer: up from the wire, over the sub-layer, down into the sum.
 *  @param {Layer} layer @param {BlockBox[]} boxes @param {Frame} frame */
function placeResiduals(layer, boxes, frame) {
  const boxOf = new Map(boxes.map((box) => [box.block.id, box]));
  const arcTop = frame.wire - BLOCK_HEIGHT / 2 - ARC_HEIGHT + 4;
  return layer.residuals.map(([from, to]) => {
    const start = boxOf.get(from);
    const end = must(boxOf.get(to), `no block ${to}`);
    const startX = start ? start.x + start.width + BRANCH_OFFSET : frame.x + BRANCH_OFFSET;
    const endX = end.x + end.width / 2;
    return {
      branch: { x: startX, y: frame.wire },
      points: [
        { x: startX, y: frame.wire },
        { x: startX, y: arcTop },
        { x: endX, y: arcTop },
        { x: endX, y: end.y },
      ],
    };
  });
}

/**
 * The straight wires between neighbouring boxes of one row, but to those that do not read their neighbour.
 * @returns {Wire[]}
 * @param {BlockBox[]} boxes @param {number} wire
 */
function joinBoxes(boxes, wire) {
  return boxes.slice(1).flatMap((box, index) => {
    const previous = boxes[index];
    return box.block.apart ? [] : [{ x1: previous.x + previous.width, x2: box.x, y: wire }];
  });
}

/**
 * One layer at its place: frame, blocks, wires and residual arrows. No wire joins a block to nothing: the stream
 * `comesIn` where something is before the layer, and `goesOn` where something is after it.
 * @param {Item & { layer: Layer }} item @param {number} x @param {number} top @param {number} wire
 * @param {{ comesIn: boolean, goesOn: boolean }} around
 */
function placeLayer(item, x, top, wire, { comesIn, goesOn }) {
  const height = wire - top + BLOCK_HEIGHT / 2 + FRAME_BOTTOM;
  const frame = { x, y: top, width: item.width, height, wire };
  const boxes = placeBlocks(item.layer, item.form, frame);
  const labelled = item.form === "labelled";
  const first = boxes[0];
  const last = boxes[boxes.length - 1];
  const wires = joinBoxes(boxes, wire);
  if (comesIn || isFramed(item.layer)) wires.unshift({ x1: frame.x, x2: first.x, y: wire });
  if (goesOn) wires.push({ x1: last.x + last.width, x2: frame.x + frame.width, y: wire, plain: true });
  return {
    layer: item.layer,
    form: item.form,
    frame: isFramed(item.layer) ? frame : null,
    boxes,
    wires: labelled ? wires : [],
    residuals: labelled ? placeResiduals(item.layer, boxes, frame) : [],
  };
}

/** True if a wire runs on through the element's edge to the first block inside. @param {Item} item */
function goesOnInside({ layer, form }) {
  return layer !== undefined && form === "labelled";
}

/** The room over a track's blocks: for titles and for residual arrows, where it has any. @param {Track} track */
function headroom(track) {
  const titles = track.title || track.layers.some(isFramed) ? TITLE_HEIGHT : 0;
  const arcs = track.layers.some((layer) => layer.residuals.length > 0) ? ARC_HEIGHT : 0;
  return titles + arcs;
}

/**
 * A track at its height, with nothing in it yet.
 * @param {Track} track @param {number} wire @param {number} top
 * @returns {PlacedTrack}
 */
function emptyTrack(track, wire, top) {
  return { track, wire, top, layers: [], boxes: [], wires: [], right: MARGIN };
}

/** One track at its place; from all but the last one, links lead on.
 *  @param {Track} track @param {Item[]} items @param {number} top @param {boolean} isLast */
function placeTrack(track, items, top, isLast) {
  const wire = top + headroom(track) + BLOCK_HEIGHT / 2;
  const placed = emptyTrack(track, wire, top);
  let x = MARGIN;
  /** @type {number | null} */
  let previousRight = null;
  items.forEach((item, index) => {
    x += gapBefore(items, index);
    if (previousRight !== null) placed.wires.push({ x1: previousRight, x2: x, y: wire, plain: goesOnInside(item) });
    if (item.layer) {
      const goesOn = !isLast || index < items.length - 1;
      placed.layers.push(placeLayer(item, x, top, wire, { comesIn: index > 0, goesOn }));
    } else {
      const y = wire - BLOCK_HEIGHT / 2;
      placed.boxes.push({ block: item.block, form: "labelled", x, y, width: item.width, height: BLOCK_HEIGHT });
    }
    x += item.width;
    previousRight = x;
  });
  placed.right = x;
  return placed;
}

/** A track as one low line of names, for a low screen on which the other one is looked at.
 *  @param {Track} track @param {Block | null} output @param {number} top @param {number} available */
function placeSlimTrack(track, output, top, available) {
  const labels = [track.inputs, ...track.layers, track.end, output].flatMap((one) => one?.label ?? []);
  const needed = labels.reduce((sum, label) => sum + label.length * CHARACTER_WIDTH + SLIM.padding + SLIM.gap, 0);
  const isLong = needed + track.title.length * CHARACTER_WIDTH > available;
  const wire = top + SLIM.height / 2;
  const placed = emptyTrack(track, wire, top);
  let x = MARGIN + Math.round(track.title.length * CHARACTER_WIDTH * 1.1) + SLIM.title;
  /** @param {string} label */
  const place = (label) => {
    const width = Math.round(label.length * CHARACTER_WIDTH) + SLIM.padding;
    if (placed.right > MARGIN) placed.wires.push({ x1: placed.right, x2: x, y: wire });
    const box = { x, y: top, width, height: SLIM.height };
    placed.right = x + width;
    x = placed.right + SLIM.gap;
    return box;
  };
  /** @param {Block | null} block */
  const addBlock = (block) => block && placed.boxes.push({ block, form: "labelled", ...place(block.label) });
  addBlock(track.inputs);
  for (const layer of track.layers) {
    const label = isLong ? layer.label.replace(/^\D+/u, "") : layer.label;
    const frame = { ...place(label), wire, label };
    /** @type {BlockBox[]} */
    const boxes = layer.blocks.map((block) => ({ block, form: "closed", ...frame }));
    placed.layers.push({ layer, form: "slim", frame, boxes, wires: [], residuals: [] });
  }
  addBlock(track.end);
  addBlock(output);
  return placed;
}

/** Every block's box by its id. @param {PlacedTrack[]} tracks */
function boxesById(tracks) {
  const boxes = tracks.flatMap((track) => [...track.boxes, ...track.layers.flatMap((layer) => layer.boxes)]);
  return new Map(boxes.map((box) => [box.block.id, box]));
}

/** The end of a link: onto a block that is drawn as one, else onto the frame of its closed layer.
 *  @param {PlacedTrack[]} tracks @param {BlockBox} box */
function landing(tracks, box) {
  if (box.form !== "closed") return { x: box.x + box.width / 2, y: box.y };
  const layer = tracks.flatMap((track) => track.layers).find((placed) => placed.boxes.includes(box));
  const frame = must(layer?.frame, "no frame");
  return { x: frame.x + frame.width / 2, y: frame.y };
}

/** Links run through the channel under the first track: out of its end, along, and down to each target.
 *  @param {Model["links"]} links @param {PlacedTrack[]} tracks */
function placeLinks(links, tracks) {
  if (links.length === 0) return [];
  const [source] = tracks;
  const channel = tracks[1].top - 11;
  const exit = source.right + 14;
  const boxes = boxesById(tracks);
  return links.map(([, target]) => {
    const end = landing(tracks, must(boxes.get(target), `no block ${target}`));
    return [
      { x: source.right, y: source.wire },
      { x: exit, y: source.wire },
      { x: exit, y: channel },
      { x: end.x, y: channel },
      end,
    ];
  });
}

/**
 * Lay out the whole map.
 * @param {Model} model
 * @param {Set<string>} openLayers ids of the layers whose blocks are drawn with names
 * @param {number} available width in pixels
 * @param {Set<string>} slimTracks names of the tracks that are one low line
 */
export function layoutMap(model, openLayers, available, slimTracks = new Set()) {
  const room = available - 2 * MARGIN - (model.links.length > 0 ? 18 : 0);
  let top = MARGIN;
  const tracks = model.tracks.map((track, index) => {
    const isLast = index === model.tracks.length - 1;
    const output = isLast ? model.output : null;
    const isSlim = slimTracks.has(track.name);
    const placed = isSlim
      ? placeSlimTrack(track, output, top, room)
      : placeTrack(track, fitTrack(track, output, openLayers, room), top, isLast);
    top = placed.wire + (isSlim ? SLIM.height / 2 : BLOCK_HEIGHT / 2 + FRAME_BOTTOM) + CHANNEL_HEIGHT;
    return placed;
  });
  const right = Math.max(0, ...tracks.map((track) => track.right));
  return {
    tracks,
    links: placeLinks(model.links, tracks),
    width: right + MARGIN + (model.links.length > 0 ? 18 : 0),
    height: top - CHANNEL_HEIGHT + MARGIN,
  };
}
