/**
 * The tree of a beam search: one column for each length, the most probable hypotheses on top. Pointing at a node or
 * walking to it with the arrow keys shows its tokens and its score, and lights the way to it.
 */

/** @import { Host, Pen } from "../types.d.ts" */
/** @import { TreeHeader, TreeNode } from "./types.d.ts" */

import { textContext } from "../marks/pen.js";
import { shortened } from "../marks/text.js";
import { clamp, makeElement, makeSvgElement, tokenSpan, under } from "../shared/dom.js";
import { ShownEvents } from "../shared/events.js";
import { hasModifier } from "../shared/keys.js";
import { formatNumber, withMinusSign } from "../shared/payload.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";

const say = textsOf("generation/tree");
const ROW = 30;
const NODE_HEIGHT = 23;
const NODE_ROOM = { least: 38, most: 150, number: 42 }; // of a label, and beside it of the number, in pixels
const COLUMN_GAP = 30;
const TREE_TOP = 22;

/** @extends {Picture<TreeHeader>} */
class GenerationTree extends Picture {
  isSaved = true;
  /** @type {ReturnType<typeof placeNodes>} */ places;
  /** @type {SVGElement[]} */ items;
  /** @type {(SVGElement | null)[]} */ edges;
  nodeWidth = 0;
  labelRoom = 0;
  chosen = 0;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "generation_tree");
    this.svg = makeSvgElement("svg", { class: "tree-svg", role: "tree", "aria-label": say("tree") });
    this.scroller = makeElement("div", "tree-scroller", {}, [this.svg]);
    this.detail = makeElement("div", "tree-detail", { "aria-live": "polite" });
    this.legend = makeElement("div", "tree-legend", {}, [
      makeElement("span", "tree-key tree-key-kept", {}, [say("kept")]),
      makeElement("span", "tree-key tree-key-pruned", {}, [say("pruned")]),
      makeElement("span", "tree-key tree-key-finished", {}, [say("finished")]),
      makeElement("span", "tree-key tree-key-best", {}, [say("way")]),
    ]);
    this.results = makeElement("ol", "tree-results", { "aria-label": say("results") });
    root.prepend(this.results, this.detail, this.legend, this.scroller);
    this.svg.addEventListener("keydown", (event) => this.pressKey(event));
    this.svg.addEventListener("pointerleave", () => this.show(this.chosen));
    this.events = new ShownEvents(root, host, () => {
      const node = this.chosen === this.data.best[0] ? -1 : this.chosen;
      return { node: String(node) };
    });
    this.endings.push(() => this.events.destroy());
  }

  /** Take Python's node, unless the person has chosen another one since Python last heard of it. */
  receive() {
    const { nodes, best, node, seq } = this.data;
    if (this.events.areKnown(seq)) this.chosen = node < 0 ? best[0] : node;
    if (this.chosen >= nodes.length) this.chosen = best[0];
    this.measureLabels();
    this.places = placeNodes(nodes, this.nodeWidth + COLUMN_GAP);
    this.drawTree();
    this.drawResults();
    this.show(this.chosen);
  }

  /** Nodes are as wide as their longest label needs, up to a limit. */
  measureLabels() {
    const context = this.textContext();
    const widest = Math.max(...this.data.nodes.map(({ label }) => context.measureText(label).width));
    this.labelRoom = clamp(Math.ceil(widest), NODE_ROOM.least, NODE_ROOM.most);
    this.nodeWidth = this.labelRoom + NODE_ROOM.number;
  }

  textContext() {
    return textContext(`600 12px ${getComputedStyle(this.root).fontFamily}`);
  }

  drawTree() {
    const context = this.textContext();
    const { nodes } = this.data;
    const deepest = nodes[nodes.length - 1].depth;
    const rows = Math.max(...this.places.map(({ row }) => row)) + 1;
    const column = this.nodeWidth + COLUMN_GAP;
    const [width, height] = [(deepest + 1) * column, TREE_TOP + rows * ROW];
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
      this.svg.setAttribute(name, String(value));
    }
    const heads = Array.from({ length: deepest }, (_, step) => columnHead(step + 1, (step + 1) * column + 4));
    // The pruned first, so that the others lie above them.
    const order = nodes.map((_, index) => index).sort((a, b) => Number(nodes[a].kept) - Number(nodes[b].kept));
    this.edges = nodes.map((node, index) => (node.parent === null ? null : this.makeEdge(node, index)));
    this.items = nodes.map((node, index) => this.makeNode(node, index, context));
    /** @param {(SVGElement | null)[]} list */
    const inOrder = (list) => order.map((index) => list[index]).filter((one) => one !== null);
    this.svg.replaceChildren(...heads, ...inOrder(this.edges), ...inOrder(this.items));
  }

  /** The texts that were finished or cut off, as a list. */
  drawResults() {
    const { nodes, best } = this.data;
    this.results.replaceChildren(...best.map((index, rank) => {
      const node = nodes[index];
      const button = makeElement("button", "tree-result", { type: "button", "data-index": index }, [
        makeElement("span", "tree-rank", {}, [`${rank + 1}.`]),
        tokensOf(node),
        makeElement("span", "tree-facts", {}, [say("score", { score: formatNumber(node.score) })]),
      ]);
      button.onclick = () => this.keep(index);
      return makeElement("li", "", {}, [button]);
    }));
  }

  /** @param {TreeNode} node @param {number} index */
  makeEdge(node, index) {
    const [from, to] = [this.places[node.parent ?? 0], this.places[index]];
    const [x1, x2] = [from.x + this.nodeWidth, to.x];
    const bend = (x1 + x2) / 2;
    const d = `M${x1} ${from.y} C${bend} ${from.y} ${bend} ${to.y} ${x2} ${to.y}`;
    return makeSvgElement("path", { class: `tree-edge ${stateOf(node)}`, d });
  }

  /** @param {TreeNode} node @param {number} index @param {Pen} context */
  makeNode(node, index, context) {
    const { x, y } = this.places[index];
    const size = { width: this.nodeWidth, height: NODE_HEIGHT };
    const box = makeSvgElement("rect", { x, y: y - NODE_HEIGHT / 2, ...size, rx: 6 });
    const text = `\u2068${shortened(context, node.label, this.labelRoom)}\u2069`;
    const label = makeSvgElement("text", { class: "tree-label", x: x + 7, y: y + 4 }, [text]);
    const number = makeSvgElement("text", { class: "tree-number", x: x + this.nodeWidth - 5, y: y + 4 });
    if (node.parent !== null) number.append(treeNumber(node.total));
    const item = makeSvgElement("g", {
      class: `tree-node ${stateOf(node)}`,
      role: "treeitem",
      tabindex: "-1",
      "data-index": index,
      "aria-label": this.inWords(index),
    }, [box, label, number]);
    item.addEventListener("pointerenter", () => this.show(index));
    item.addEventListener("click", () => this.choose(index));
    item.addEventListener("focus", () => this.show(index));
    return item;
  }

  /** Choose a node of the tree. @param {number} index */
  choose(index) {
    this.keep(index);
    this.items[index].focus();
  }

  /** Keep showing a node when the pointer leaves; the host hears of it once the person pauses.
   *  @param {number} index */
  keep(index) {
    this.chosen = index;
    this.events.changed();
    this.show(index);
  }

  /** Light the way to a node and say what it is. @param {number} index */
  show(index) {
    const { nodes } = this.data;
    const way = new Set();
    for (let at = /** @type {number | null} */ (index); at !== null; at = nodes[at].parent) way.add(at);
    this.items.forEach((item, at) => {
      item.classList.toggle("on-way", way.has(at));
      item.setAttribute("tabindex", at === index ? "0" : "-1");
      item.setAttribute("aria-selected", String(at === index));
    });
    for (const result of this.results.querySelectorAll("button")) {
      result.setAttribute("aria-pressed", String(Number(result.dataset.index) === index));
    }
    this.edges.forEach((edge, at) => edge?.classList.toggle("on-way", way.has(at)));
    this.describe(index);
  }

  /** @param {number} index */
  describe(index) {
    const node = this.data.nodes[index];
    const facts = node.parent === null ? say("prompt") : factsOf(node);
    this.detail.replaceChildren(
      tokensOf(node),
      makeElement("span", "tree-facts", {}, [facts]),
      makeElement("span", `tree-state ${stateOf(node)}`, {}, [this.stateInWords(index)]),
    );
  }

  /** @param {number} index */
  stateInWords(index) {
    const node = this.data.nodes[index];
    const rank = this.data.best.indexOf(index) + 1;
    if (rank > 0) return say("result", { rank, end: node.finished ? say("finished") : say("cut_off") });
    if (node.parent === null) return say("start");
    return node.kept ? say("kept") : say("why_pruned");
  }

  /** @param {number} index */
  inWords(index) {
    const node = this.data.nodes[index];
    const text = node.text.join(" ") || node.label;
    return say("node", { text, state: this.stateInWords(index), score: formatNumber(node.score) });
  }

  /** Left to the parent, right to the best continuation, up and down along the column.
   *  @param {KeyboardEvent} event */
  pressKey(event) {
    const item = under(event, ".tree-node");
    if (!item || hasModifier(event)) return;
    const index = Number(item.dataset.index);
    if (event.key === "Enter" || event.key === " ") this.choose(index);
    else {
      const target = this.neighbour(index, event.key);
      if (target === undefined || target === null) return;
      this.items[target].focus();
    }
    event.preventDefault();
  }

  /** @param {number} index @param {string} key */
  neighbour(index, key) {
    const { nodes } = this.data;
    const { row } = this.places[index];
    /** @param {number} depth @param {number} other */
    const at = (depth, other) => nodes.findIndex((node, i) => node.depth === depth && this.places[i].row === other);
    if (key === "ArrowLeft") return nodes[index].parent;
    if (key === "ArrowRight") {
      const children = nodes.map((_, i) => i).filter((i) => nodes[i].parent === index);
      return children.sort((a, b) => this.places[a].row - this.places[b].row)[0];
    }
    if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
    const found = at(nodes[index].depth, row + (key === "ArrowDown" ? 1 : -1));
    return found === -1 ? index : found;
  }
}

/** The place of each node: in the column of its length, the most probable on top.
 *  @param {TreeNode[]} nodes @param {number} column */
function placeNodes(nodes, column) {
  const columns = Map.groupBy(nodes.map((_, index) => index), (index) => nodes[index].depth);
  /** @type {{ row: number, x: number, y: number }[]} */
  const places = [];
  for (const [depth, indices] of columns) {
    indices.sort((a, b) => Number(nodes[b].kept) - Number(nodes[a].kept) || nodes[b].total - nodes[a].total || a - b);
    indices.forEach((index, row) => {
      places[index] = { row, x: depth * column + 4, y: TREE_TOP + (row + 0.5) * ROW };
    });
  }
  return places;
}

/** @param {number} step @param {number} x */
function columnHead(step, x) {
  return makeSvgElement("text", { class: "tree-head", x, y: 14 }, [say("column", { step })]);
}

/** @param {TreeNode} node */
function stateOf(node) {
  if (!node.kept) return "is-pruned";
  return node.finished ? "is-finished" : "is-kept";
}

/** A sum of log-probabilities with two digits after the point. @param {number} value */
function treeNumber(value) {
  const size = Math.abs(value);
  if (size < 0.005) return "≈ 0";
  return withMinusSign(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2));
}

/** The tokens that a node has written. @param {TreeNode} node */
function tokensOf(node) {
  const tokens = node.text.map((label) => makeElement("span", "tree-token", {}, [tokenSpan(label)]));
  return makeElement("span", "tree-text", {}, tokens);
}

/** The numbers of a node. @param {TreeNode} node */
function factsOf({ score, total, probability }) {
  const [scored, sum, last] = [score, total, probability].map((number) => formatNumber(number));
  return say("facts", { score: scored, sum, last });
}

export const render = rendererOf(GenerationTree);
