/** @import { Cell, Header, Host, Limits, Mark, Matrix, PackedArray, PanelHost, Point } from "../types.d.ts" */
/** @import { CompareHeader } from "./types.d.ts" */

import { storedNumbers } from "../marks/cells.js";
import { makeScale } from "../marks/scale.js";
import { litPosition, marksOfCell } from "../shared/axis.js";
import { makeFold } from "../shared/controls.js";
import { makeElement, setText } from "../shared/dom.js";
import { LayeredPicture } from "../shared/fetched.js";
import { MatrixPanel } from "../shared/grid.js";
import { HeadControls } from "../shared/head_controls.js";
import { makeLegend } from "../shared/legend.js";
import { MaskPlanes } from "../shared/mask_planes.js";
import { cellText } from "../shared/payload.js";
import { rendererOf } from "../shared/picture.js";
import { tallestGrid } from "../shared/room.js";
import { describeMatrix, NO_KEY_LEFT } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { headColor } from "../shared/theme.js";
import { blockedText, cellPositionLine, tooltipLine } from "../shared/tooltip.js";

const say = textsOf("compare_grids/element");
const COMPARE_GAP = 24;
const TITLES = 60; // the height of what a head and its grids are called
const ROUNDING = 1e-6; // weights that are computed twice differ by less: no colour is for that
const SIDES = /** @type {const} */ (["a", "b", "difference"]);

/** @typedef {ReturnType<CompareGrids["decode"]>} Three */
/** @typedef {ReturnType<CompareGrids["makeSection"]>} Section */
/** @typedef {{ numbers: ArrayLike<number>, unit: number }} Numbered */

/** For each head three grids, A, B and B − A, whose cells are locked together; the head that changed most is first.
 *  @extends {LayeredPicture<CompareHeader>} */
class CompareGrids extends LayeredPicture {
  isSaved = true;
  /** @type {{ a: MaskPlanes, b: MaskPlanes }} */ masks;
  /** @type {Three[]} */ decoded;
  /** @type {(Cell & { head: number }) | null} */ selected = null;
  /** @type {{ a: PackedArray, b: PackedArray }} */ decodedOf;
  /** @type {number | null} */ decodedLayer;
  /** @type {number} */ largestChange;
  /** @type {number[]} */ order;
  /** @type {{ a: Uint8Array, b: Uint8Array, blocked: Uint8Array } | null} */ both;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "compare_grids");
    /** @type {Section[]} */
    this.sections = []; // by rank: what is in sight stays in sight, and is drawn at once, whichever head it is of
    this.controls = new HeadControls(root, host, { draw: () => this.redraw(), move: () => this.move() });
    this.endings.push(() => this.controls.destroy());
    const { layers, chips, curve } = this.controls;
    this.weightLegend = makeLegend();
    this.differenceLegend = makeLegend();
    this.view = makeFold(say("view"), [chips.element, curve.element, this.dials.element]);
    const legends = makeElement("div", "compare-bar", {}, [this.weightLegend.element, this.differenceLegend.element]);
    const bar = makeElement("div", "compare-bar", {}, [this.dials.foremost, layers.element, this.view.element, legends]);
    this.rows = makeElement("div", "compare-rows");
    this.root.prepend(bar, this.rows);
  }

  /** The titles of A and B name their masks, where these can be pressed.
   *  @param {CompareHeader} header @param {Header} answer */
  headerWith(header, answer) {
    /** @param {"a" | "b"} name */
    const side = (name) => ({
      title: this.dials.has(`mask_${name}`) ? answer.titles[name] : header.sides[name].title,
      blocked_by: answer.blocked_by[name],
    });
    return { ...super.headerWith(header, answer), sides: { a: side("a"), b: side("b") } };
  }

  countNumbers() {
    return 2 * super.countNumbers();
  }

  receive() {
    const { a, b, blocked_a: blockedA, blocked_b: blockedB } = this.data.arrays;
    this.masks = { a: MaskPlanes.of(blockedA, this.masks?.a), b: MaskPlanes.of(blockedB, this.masks?.b) };
    if (this.controls.receive(this.data, a.shape)) this.dials.show(this.data.dials);
    if (this.decodedOf?.a !== a || this.decodedOf?.b !== b) this.decodedLayer = null;
    this.decodedOf = { a, b };
  }

  receiveMore() {
    const { a, b, blocked_a: blockedA, blocked_b: blockedB } = this.data.arrays;
    this.masks = { a: MaskPlanes.of(blockedA, this.masks.a), b: MaskPlanes.of(blockedB, this.masks.b) };
    this.decodedOf = { a, b }; // those of the layer shown are as they were
  }

  /** The cells that both block; kept while the same two are asked for, since heads often share them.
   *  @param {Uint8Array | null} a @param {Uint8Array | null} b */
  blockedInBoth(a, b) {
    if (!a || !b) return null;
    if (this.both && this.both.a === a && this.both.b === b) return this.both.blocked;
    const blocked = new Uint8Array(a.length);
    for (let i = 0; i < blocked.length; i++) blocked[i] = a[i] && b[i] ? 1 : 0;
    this.both = { a, b, blocked };
    return blocked;
  }

  /** The three matrices of each head of the layer shown. */
  matrices() {
    const { layer, size } = this.controls;
    if (this.decodedLayer !== layer) {
      this.decodedLayer = layer;
      this.largestChange = 0;
      this.decoded = Array.from({ length: size.heads }, (_, head) => this.decode(layer, head));
    }
    return this.decoded;
  }

  /** @param {number} layer @param {number} head */
  decode(layer, head) {
    const { controls, data, masks } = this;
    /** @param {"a" | "b"} side */
    const of = (side) => controls.matrix(data.arrays[side], masks[side], data.sides[side].blocked_by, layer, head);
    const [a, b] = [of("a"), of("b")];
    const moved = this.movedBetween(a, b) / a.rows;
    const blocked = this.blockedInBoth(a.blocked, b.blocked);
    const looks = { steps: null, blocked, blockedBy: [], emptyRows: null };
    return { a, b, difference: differenceOf(a, b, looks), moved };
  }

  /** The weight that B takes from the keys all together or, if that is more, gives to them: a query without a key has
   *  none to take. The largest change of the layer is found on the way.
   *  @param {Matrix} a @param {Matrix} b */
  movedBetween(a, b) {
    const [before, after] = [storedNumbers(a), storedNumbers(b)];
    const [first, second, unit] = [before.numbers, after.numbers, before.unit];
    let largest = 0;
    let taken = 0;
    let given = 0;
    for (let i = 0; i < first.length; i++) {
      const change = second[i] - first[i];
      const size = change < 0 ? -change : change;
      if (change < 0) taken += size;
      else if (change > 0) given += size;
      if (size > largest && size < Infinity) largest = size;
    }
    this.largestChange = Math.max(this.largestChange, largest * unit);
    return Math.max(taken, given) * unit;
  }

  scales() {
    const weight = this.controls.scale(this.theme);
    const change = this.largestChange > ROUNDING ? this.largestChange : 1;
    return { a: weight, b: weight, difference: makeScale(this.theme, "diverging", [-change, change]) };
  }

  draw() {
    const { controls } = this;
    const matrices = this.matrices();
    const scales = this.scales();
    controls.show(this.theme);
    const { choices, size } = controls;
    this.view.note(choices.shown.size < size.heads ? say("heads", { shown: choices.shown.size, heads: size.heads }) : "");
    const anyBlocked = Object.values(this.masks).some((masks) => masks.anyIn(controls.layer, controls.size.heads));
    this.weightLegend.update(scales.a, { text: "A, B", blocked: anyBlocked });
    this.differenceLegend.update(scales.difference, { text: "B − A" });
    this.arrange(matrices);
    const limits = this.limits();
    for (const section of this.sections) this.drawSection(section, matrices[section.head], scales, limits);
    this.select(this.selected);
  }

  /** One section for each head, from the one that changed most; while a dial is turned they keep their places.
   *  @param {Three[]} matrices */
  arrange(matrices) {
    const { choices, size } = this.controls;
    const isTurnedStill = this.data.isTurned && this.order.length === size.heads;
    if (!isTurnedStill) this.order = inOrder(matrices);
    const shown = this.order.filter((head) => choices.shown.has(head));
    while (this.sections.length < shown.length) this.sections.push(this.makeSection());
    while (this.sections.length > shown.length) this.sections.pop()?.element.remove();
    shown.forEach((head, rank) => {
      const section = this.sections[rank];
      section.head = head;
      section.element.dataset.head = String(head);
    });
  }

  makeSection() {
    /** @type {PanelHost} */
    const host = {
      hover: (panel, row, column, point) => this.hover(panel, section.head, row, column, point),
      leave: () => this.leave(),
      select: (_panel, row, column) => this.send(section.head, row, column),
    };
    const dot = makeElement("span", "matrix-dot");
    const text = makeElement("span");
    const panels = SIDES.map(() => new MatrixPanel(host));
    const moved = makeElement("span", "compare-moved");
    const heading = makeElement("div", "compare-heading", {}, [dot, text, moved]);
    const grids = makeElement("div", "compare-panels", {}, panels.map((panel) => panel.element));
    const element = makeElement("section", "compare-head", {}, [heading, grids]);
    this.rows.append(element);
    const section = { head: 0, element, dot, text, moved, panels };
    return section;
  }

  limits() {
    const side = this.width < 560 ? 1 : 3;
    const width = Math.min((this.width - COMPARE_GAP * (side - 1)) / side, 420);
    this.rows.style.setProperty("--columns", String(side));
    const tallest = tallestGrid(this.rows, this.controls.size.rows) - TITLES;
    return { width, height: 420, tallest, cell: 44 };
  }

  /** @param {Section} section @param {Three} matrices @param {ReturnType<CompareGrids["scales"]>} scales
   *  @param {Limits} limits */
  drawSection({ head, dot, text, moved, panels }, matrices, scales, limits) {
    const name = this.controls.title(head);
    const titles = { a: this.data.sides.a.title, b: this.data.sides.b.title, difference: "B − A" };
    dot.style.background = headColor(this.theme, head);
    setText(text, name);
    setText(moved, movedText(matrices.moved));
    SIDES.forEach((side, i) => {
      panels[i].show(matrices[side], {
        scale: scales[side],
        title: titles[side],
        valueName: "weight",
        limits,
        labelled: true,
        description: () => describeMatrix(`${name}, ${titles[side]}, ${this.controls.layerName()}`, matrices[side]),
      });
    });
    this.differenceLegend.element.classList.toggle("legend-lined", !panels[2].geometry.numbers);
  }

  move() {
    this.redraw();
    this.announce(`${this.data.key} layer ${this.controls.layer}`);
  }

  /** @param {number} head @param {number} row @param {number} column */
  send(head, row, column) {
    this.select({ head, row, column });
    this.controls.select(head, row, column);
  }

  /** @param {(Cell & { head: number }) | null} cell */
  select(cell) {
    this.selected = cell;
    for (const { head, panels } of this.sections) {
      for (const panel of panels) panel.select(cell?.head === head ? cell : null);
    }
  }

  /** @param {MatrixPanel} panel @param {number} head @param {number} row @param {number} column
   *  @param {Point} point */
  hover(panel, head, row, column, point) {
    this.lightAll(row, column);
    const marks = marksOfCell(this.data.rows, this.data.columns, row, column);
    this.pointAt(this.describe(head, row, column), point, marks);
    const { a, b } = this.decoded[head];
    this.wantExact(panel, { a, b }, head, row, column, () => this.hover(panel, head, row, column, point));
  }

  /** All three values of one cell, and what blocks it on either side.
   *  @param {number} head @param {number} row @param {number} column */
  describe(head, row, column) {
    const { a, b, difference } = this.decoded[head]; // as drawn: another layer may be under way
    const i = row * a.columns + column;
    return [
      tooltipLine("tooltip-head", this.controls.title(head)),
      cellPositionLine(this.data.rows, this.data.columns, row, column),
      compareLine("A", cellText(a, i), noteOn(a, row, i)),
      compareLine("B", cellText(b, i), noteOn(b, row, i)),
      compareLine("B − A", signedNumber(difference, i), ""),
    ];
  }

  /** @param {Mark[]} marks */
  onHover(marks) {
    this.lightAll(litPosition(this.data.rows, "query", marks), litPosition(this.data.columns, "key", marks));
  }

  /** @param {number} row @param {number} column */
  lightAll(row, column) {
    for (const { panels } of this.sections) for (const panel of panels) panel.light(row, column);
  }
}

/** The heads, from the one that changed most to the one that changed least. @param {Three[]} matrices */
function inOrder(matrices) {
  return matrices.map((_, head) => head).sort((a, b) => matrices[b].moved - matrices[a].moved || a - b);
}

/** B − A as a matrix, subtracted when its numbers are first asked for: of most heads they are not in sight.
 *  @param {Matrix} a @param {Matrix} b @param {Pick<Matrix, "steps" | "blocked" | "blockedBy" | "emptyRows">} looks */
function differenceOf(a, b, looks) {
  const { rows, columns, rowAxis, columnAxis, dtype } = a;
  /** @type {Float32Array | undefined} */
  let values;
  return {
    get values() {
      return (values ??= subtracted(storedNumbers(a), storedNumbers(b)));
    },
    ...{ rows, columns, rowAxis, columnAxis, dtype },
    ...looks,
    exact: exactDifference(a.exact, b.exact),
  };
}

/** The exact differences of the cells of which both numbers are known.
 *  @param {Matrix["exact"]} a @param {Matrix["exact"]} b */
function exactDifference(a, b) {
  /** @param {number} i */
  const get = (i) => {
    const [before, after] = [a?.get(i), b?.get(i)];
    return before === undefined || after === undefined ? undefined : Math.fround(after - before);
  };
  return { get };
}

/** The rest of `b` without `a`; both are numbers that stand for themselves times one unit.
 *  @param {Numbered} a @param {Numbered} b */
function subtracted(a, b) {
  const values = new Float32Array(a.numbers.length);
  for (let i = 0; i < values.length; i++) values[i] = (b.numbers[i] - a.numbers[i]) * a.unit;
  return values;
}

/** The share of a query's weight that lies elsewhere in B than in A, in the mean of all queries.
 *  @param {number} moved */
function movedText(moved) {
  if (moved < 5e-7) return say("none_moved");
  return moved < 0.001 ? say("little_moved") : say("moved", { percent: (100 * moved).toFixed(1) });
}

/** One row of the tooltip's small table. @param {string} name @param {string} number @param {string} note */
function compareLine(name, number, note) {
  return tooltipLine(
    "tooltip-value compare-line",
    makeElement("span", "compare-name", {}, [name]),
    makeElement("b", "", {}, [number]),
    makeElement("span", "tooltip-note", {}, [note]),
  );
}

/** The reason why a cell has no weight on one side, "" when nothing blocks it.
 *  @param {Matrix} matrix @param {number} row @param {number} i */
function noteOn({ blocked, blockedBy, emptyRows }, row, i) {
  if (emptyRows?.[row]) return NO_KEY_LEFT;
  return blocked?.[i] ? blockedText(blocked[i], blockedBy ?? []) : "";
}

/** A difference with its sign. @param {Matrix} difference @param {number} i */
function signedNumber(difference, i) {
  const text = cellText(difference, i);
  return (difference.exact?.get(i) ?? difference.values[i]) > 0 ? (text.startsWith("≈") ? `≈+${text.slice(1)}` : `+${text}`) : text;
}

export const render = rendererOf(CompareGrids);
