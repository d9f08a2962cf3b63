/** Drawing the laid-out map as SVG. Colours and fonts are the style sheet's, by class and by data-role. */

/** @import { Point } from "../types.d.ts" */
/** @import { BlockBox, MapLayout, PlacedLayer, PlacedTrack, Wire } from "./types.d.ts" */

import { makeSvgElement } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";
import { labelLines, MARGIN } from "./layout.js";

const say = textsOf("stage_map/draw");
const CORNER = 7;

/** Path data through points, the corners rounded. @param {Point[]} points */
function roundedPath(points) {
  const parts = [`M${points[0].x} ${points[0].y}`];
  for (let index = 1; index < points.length - 1; index += 1) {
    const [before, corner, after] = points.slice(index - 1, index + 2);
    const start = towards(corner, before);
    const end = towards(corner, after);
    parts.push(`L${start.x} ${start.y}Q${corner.x} ${corner.y} ${end.x} ${end.y}`);
  }
  const last = points[points.length - 1];
  parts.push(`L${last.x} ${last.y}`);
  return parts.join("");
}

/** The point on the way from `from` to `to` where a rounded corner begins. @param {Point} from @param {Point} to */
function towards(from, to) {
  const distance = Math.hypot(to.x - from.x, to.y - from.y);
  const share = distance === 0 ? 0 : Math.min(CORNER, distance / 2) / distance;
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
}

/** A small filled triangle whose tip is at a point; `direction` is "right" or "down".
 *  @param {Point} tip @param {"right" | "down"} direction @param {string} className */
function arrowHead(tip, direction, className) {
  const { x, y } = tip;
  const d = direction === "right" ? `M${x} ${y}l-5 -3.2v6.4z` : `M${x} ${y}l-3.2 -5h6.4z`;
  return makeSvgElement("path", { d, class: `head ${className}` });
}

/** A straight piece of the residual stream, with an arrow head unless it is plain. @param {Wire} wire */
function drawWire({ x1, x2, y, plain }) {
  const line = makeSvgElement("path", { d: `M${x1} ${y}H${x2}`, class: "wire" });
  return plain ? [line] : [line, arrowHead({ x: x2, y }, "right", "wire")];
}

/** A residual connection: branch dot, arc, arrow head. @param {PlacedLayer["residuals"][number]} residual */
function drawResidual({ branch, points }) {
  return [
    makeSvgElement("circle", { cx: branch.x, cy: branch.y, r: 2.4, class: "branch" }),
    makeSvgElement("path", { d: roundedPath(points), class: "residual" }),
    arrowHead(points[points.length - 1], "down", "residual"),
  ];
}

/** The points of a link moved sideways by `shift`, so that two links can run side by side.
 *  @param {Point[]} link @param {number} shift */
function shiftLink([start, corner, turn, above, end], shift) {
  const along = above.x < turn.x ? -shift : shift;
  return [
    { x: start.x, y: start.y + shift },
    { x: corner.x - shift, y: corner.y + shift },
    { x: turn.x - shift, y: turn.y + along },
    { x: above.x - shift, y: above.y + along },
    { x: end.x - shift, y: end.y },
  ];
}

/** A link between tracks: two lines side by side, for the keys and the values that cross over.
 *  @param {Point[]} points */
function drawLink(points) {
  return Object.entries({ key: 3, value: -3 }).flatMap(([role, shift]) => {
    const moved = shiftLink(points, shift);
    const line = makeSvgElement("path", { d: roundedPath(moved), class: "link", "data-role": role });
    const head = arrowHead(moved[moved.length - 1], "down", "link");
    head.dataset.role = role;
    return [line, head];
  });
}

/** Words over the beginning of the links. @param {Point[][]} links @param {PlacedTrack[]} tracks */
function drawLinkCaption(links, tracks) {
  if (links.length === 0) return [];
  const y = links[0][2].y - 9;
  return [drawText(say("memory"), tracks[0].right, y, "caption end")];
}

/** One line of text. @param {string} content @param {number} x @param {number} y @param {string} className */
function drawText(content, x, y, className) {
  return makeSvgElement("text", { x, y, class: className }, [content]);
}

/** The lines of a block's name, centred in its box. @param {BlockBox} box */
function drawBlockName(box) {
  const lines = labelLines(box.block.label);
  const lineHeight = 13;
  const x = box.x + box.width / 2;
  const firstY = box.y + box.height / 2 - ((lines.length - 1) * lineHeight) / 2;
  return lines.map((line, index) => drawText(line, x, firstY + index * lineHeight, "name"));
}

/** A block that can be clicked; in a closed layer only a bar to be seen. @param {BlockBox} box */
function drawBlock(box) {
  const radius = { labelled: 7, pills: 4, closed: 2, slim: 2 }[box.form];
  const { x, y, width, height, block } = box;
  const group = makeSvgElement("g", { class: `block ${box.form}`, "data-role": block.role, "data-block": block.id });
  group.append(makeSvgElement("rect", { x, y, width, height, rx: radius }));
  if (box.form === "labelled") group.append(...drawBlockName(box));
  return group;
}

/** A layer: frame with its name, wires, arcs and blocks. @param {PlacedLayer} placed */
function drawLayer(placed) {
  const isSlim = placed.form === "slim";
  const className = isSlim ? "layer closed slim" : `layer ${placed.form}`;
  const group = makeSvgElement("g", { class: className, "data-layer": placed.layer.id });
  group.append(...drawFrame(placed));
  if (isSlim) return group;
  group.append(...placed.wires.flatMap(drawWire), ...placed.residuals.flatMap(drawResidual));
  group.append(...placed.boxes.map(drawBlock));
  return group;
}

/** The rounded frame; a closed one shows the bare number. @param {PlacedLayer} placed */
function drawFrame({ frame, form, layer }) {
  if (!frame) return [];
  const { x, y, width, height } = frame;
  const closed = form !== "labelled" && form !== "pills";
  const label = frame.label ?? (form === "closed" ? layer.label.replace(/^\D+/u, "") : layer.label);
  const textX = closed ? x + width / 2 : x + 9;
  return [
    makeSvgElement("rect", { x, y, width, height, rx: closed ? 6 : 10, class: "frame" }),
    drawText(label, textX, y + (form === "slim" ? 15 : 13), closed ? "layer-name middle" : "layer-name"),
  ];
}

/** One track: its title, the wires between its elements, the elements. @param {PlacedTrack} placed */
function drawTrack(placed) {
  const group = makeSvgElement("g", { class: "track", "data-track": placed.track.name });
  if (placed.track.title) group.append(drawText(placed.track.title, MARGIN, placed.top + 15, "title"));
  group.append(...placed.wires.flatMap(drawWire));
  group.append(...placed.layers.map(drawLayer), ...placed.boxes.map(drawBlock));
  return group;
}

/** The whole picture, with the links between the frames and the blocks they end at. @param {MapLayout} layout */
export function drawMap(layout) {
  const links = makeSvgElement("g", { class: "links" });
  links.append(...layout.links.flatMap(drawLink), ...drawLinkCaption(layout.links, layout.tracks));
  return [...layout.tracks.map(drawTrack), links];
}
