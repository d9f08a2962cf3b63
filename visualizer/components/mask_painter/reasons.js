/** @import { Pen, Theme } from "../types.d.ts" */
/** @import { Reason } from "./types.d.ts" */

import { hatchTile, tiled } from "../marks/hatch.js";
import { contextOf } from "../marks/pen.js";
import { childrenOf, countOf, makeElement, setText } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";
import { parseColor } from "../shared/theme.js";

const say = textsOf("mask_painter/reasons");

// From which size of cells on stripes are so far apart and so wide, in pixels, and how much of their colours the ground
// between them has. The smallest cells still show a piece of a stripe each.
const STRIPES = [
  { cell: 14, spacing: 7, width: 2, tint: 0.16 },
  { cell: 6, spacing: 5, width: 2, tint: 0.16 },
  { cell: 0, spacing: 4, width: 1, tint: 0.28 },
];

/*
 * The masks that block a cell are bits of one number: bit i is reasons[i], and the painting is the last. A reason is
 * {name, label}.
 */

/** The bits of every cell: what the other masks block, and what is painted.
 *  @param {Uint8Array} painted @param {Uint8Array} others @param {Reason[]} reasons */
export function blockedBits(painted, others, reasons) {
  const bit = 1 << (reasons.length - 1);
  const bits = new Uint16Array(others);
  for (let i = 0; i < bits.length; i++) if (painted[i]) bits[i] |= bit;
  return bits;
}

/** The reasons that bits stand for. @param {number} bits @param {Reason[]} reasons */
export function reasonsOf(bits, reasons) {
  return reasons.filter((_, index) => bits & (1 << index));
}

/** The number of cells that each reason blocks.
 *  @param {ArrayLike<number> & Iterable<number>} bits @param {Reason[]} reasons */
export function countsOf(bits, reasons) {
  return reasons.map((_, index) => {
    let count = 0;
    for (const cell of bits) count += (cell >> index) & 1;
    return count;
  });
}

/** "causal, padding". @param {Reason[]} reasons */
export function namesOf(reasons) {
  return reasons.map(({ label }) => label).join(", ");
}

/** The colour of a reason's stripes, for style sheets. @param {Reason} reason */
export function reasonVariable({ name }) {
  return `var(--hl-mask-${name})`;
}

/** The stripes of cells of one size, kept once they are drawn. */
export class Hatches {
  /** @param {Reason[]} reasons @param {Theme} theme @param {number} cellWidth @param {number} pixelRatio */
  constructor(reasons, theme, cellWidth, pixelRatio) {
    this.reasons = reasons;
    this.theme = theme;
    this.stripes = STRIPES.find(({ cell }) => cellWidth >= cell) ?? STRIPES[STRIPES.length - 1];
    this.pixelRatio = pixelRatio;
    this.patterns = new Map();
  }

  /**
   * The fill of a cell with these bits: stripes in the colours of its reasons, one after the other. Without a known
   * reason it is the plain hatch: cells can be painted after their reasons have changed and before all is drawn anew.
   * @param {number} bits @param {Pen} context
   */
  patternOf(bits, context) {
    if (!this.patterns.has(bits)) this.patterns.set(bits, tiled(context, this.makeTile(bits), this.theme.hatch_ground));
    return this.patterns.get(bits);
  }

  /** @param {number} bits */
  makeTile(bits) {
    const colors = reasonsOf(bits, this.reasons).map((reason) => parseColor(this.theme.masks[reason.name]));
    if (!colors.length) return hatchTile(this.theme, this.pixelRatio);
    const [spacing, width] = [this.stripes.spacing, this.stripes.width].map((size) => Math.round(size * this.pixelRatio));
    const ground = mixedColor(parseColor(this.theme.hatch_ground), meanColor(colors), this.stripes.tint);
    const size = spacing * colors.length;
    const image = new ImageData(size, size);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < pixels.length; i++) {
      const along = ((i % size) + Math.floor(i / size)) % size;
      pixels[i] = pixelOfParts(along % spacing < width ? colors[Math.floor(along / spacing)] : ground);
    }
    const tile = new OffscreenCanvas(size, size);
    contextOf(tile).putImageData(image, 0, 0);
    return tile;
  }
}

/** @param {number[][]} colors */
function meanColor(colors) {
  return [0, 1, 2].map((part) => colors.reduce((sum, color) => sum + color[part], 0) / colors.length);
}

/** @param {number[]} first @param {number[]} second @param {number} share */
function mixedColor(first, second, share) {
  return first.map((part, i) => Math.round(part + share * (second[i] - part)));
}

/** The canvas pixel (opaque, ABGR) of red, green and blue. @param {number[]} parts */
function pixelOfParts([red, green, blue]) {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/** The colours present, each with the number of cells that its mask blocks. */
export function makeReasonLegend() {
  const element = makeElement("ul", "reasons", { "aria-label": say("legend") });
  return {
    element,
    /** @param {Reason[]} reasons @param {number[]} counts */
    update(reasons, counts) {
      while (element.children.length > reasons.length) element.lastChild?.remove();
      reasons.forEach((reason, index) => {
        const entry = childrenOf(element)[index] ?? element.appendChild(makeReasonEntry());
        entry.hidden = counts[index] === 0;
        entry.style.setProperty("--reason", reasonVariable(reason));
        setText(entry.children[1], reason.label);
        setText(entry.children[2], countOf(counts[index], "cell"));
      });
      element.hidden = counts.every((count) => count === 0);
    },
  };
}

function makeReasonEntry() {
  return makeElement("li", "reason", {}, [
    makeElement("span", "reason-swatch", { "aria-hidden": "true" }),
    makeElement("span", "reason-name"),
    makeElement("span", "reason-count"),
  ]);
}
