import {
  headLooks, headTitle, makeCurveControl, makeHeadChips, makeLayerControl, shownHeads, Teller,
  writtenLooks,
} from "../shared/controls.js";
import { announcePainted, clamp, makeElement, oncePerFrame, setText } from "../shared/dom.js";
import { describeMatrix, litPosition, marksOfCell, MatrixPanel } from "../shared/grid.js";
import { publishHover, subscribeHover } from "../shared/hover.js";
import { makeLegend } from "../shared/legend.js";
import { MaskPlanes } from "../shared/mask_planes.js";
import { makeScale } from "../shared/matrix_pixels.js";
import { floats, formatNumber, unpack } from "../shared/payload.js";
import { applyTheme, headColor } from "../shared/theme.js";
import { blockedText, cellPositionLine, makeTooltip, tooltipLine } from "../shared/tooltip.js";

const COMPARE_GAP = 24;
const SIDES = ["a", "b", "difference"];

/** For each head three grids, A, B and B − A, whose cells are locked together; the head that changed most is first. */
class CompareGrids {
  constructor(root, host) {
    this.root = root;
    this.host = host;
    this.heads = [];
    this.seq = -1;
    this.build();
    this.stopHover = subscribeHover((detail) => this.onHover(detail));
    this.resize = new ResizeObserver(oncePerFrame(() => this.onResize()));
    this.resize.observe(root);
    this.teller = new Teller(root, () => this.tellShown());
  }

  destroy() {
    clearTimeout(this.timer);
    this.teller.stop();
    this.resize.disconnect();
    this.stopHover();
    this.tooltip.hide();
  }

  build() {
    this.tooltip = makeTooltip(this.root);
    this.layerControl = makeLayerControl((layer) => this.choose(layer));
    this.chips = makeHeadChips((shown) => this.change({ shown: shownHeads(shown, this.size.heads) }));
    this.curve = makeCurveControl((curve) => this.change({ curve }));
    this.weightLegend = makeLegend();
    this.differenceLegend = makeLegend();
    const bar = makeElement("div", "compare-bar", {}, [this.layerControl.element, this.chips.element]);
    this.legends = makeElement("div", "compare-legends", {}, [
      this.weightLegend.element,
      this.differenceLegend.element,
      this.curve.element,
    ]);
    this.rows = makeElement("div", "compare-rows");
    this.root.prepend(makeElement("div", "compare-top", {}, [bar, this.legends]), this.rows);
  }

  /** Take new data and draw it. */
  update(bytes) {
    this.data = unpack(bytes);
    this.theme = applyTheme(this.root, this.host);
    const [layers, heads, rows, columns] = this.data.arrays.a.shape;
    this.size = { layers, heads, rows, columns };
    this.followPython();
    this.choices = headLooks(this.looks, heads, columns);
    this.masks = { a: new MaskPlanes(this.data.arrays.blocked_a), b: new MaskPlanes(this.data.arrays.blocked_b) };
    this.decodedLayer = null;
    this.draw();
    announcePainted("compare_grids", this.data.key);
  }

  followPython() {
    if (this.data.seq >= this.seq) {
      this.seq = this.data.seq;
      this.layer = this.data.layer;
      this.looks = this.data.looks;
    }
    this.layer = clamp(this.layer, 0, this.size.layers - 1);
  }

  /** What is blocked in a head of the layer shown; the difference is hatched where both sides are. */
  masksOf(head) {
    const a = this.masks.a.at(this.layer, head);
    const b = this.masks.b.at(this.layer, head);
    return { a, b, difference: { blocked: this.blockedInBoth(a.blocked, b.blocked), emptyRows: null } };
  }

  /** The cells that both block; kept while the same two are asked for, since heads often share them. */
  blockedInBoth(a, b) {
    if (!a || !b) return null;
    if (this.both?.a !== a || this.both.b !== b) {
      this.both = { a, b, blocked: a.map((bits, i) => (bits && b[i] ? 1 : 0)) };
    }
    return this.both.blocked;
  }

  /** The three matrices of each head of the layer shown. */
  matrices() {
    if (this.decodedLayer !== this.layer) {
      this.decodedLayer = this.layer;
      this.largestChange = 0;
      this.decoded = Array.from({ length: this.size.heads }, (_, head) => this.decode(head));
    }
    return this.decoded;
  }

  decode(head) {
    const { heads, rows, columns } = this.size;
    const start = (this.layer * heads + head) * rows * columns;
    const { a, b } = this.data.arrays;
    const numbers = { a: floats(a, start, start + rows * columns), b: floats(b, start, start + rows * columns) };
    const { difference, taken } = this.differenceOf(numbers.a, numbers.b);
    const masks = this.masksOf(head);
    const matrix = (values, side) => ({
      values,
      rows,
      columns,
      dtype: a.dtype,
      rowAxis: this.data.rows,
      columnAxis: this.data.columns,
      blockedBy: this.data.sides[side]?.blocked_by ?? [],
      ...masks[side],
    });
    return {
      a: matrix(numbers.a, "a"),
      b: matrix(numbers.b, "b"),
      difference: { ...matrix(difference, "difference"), marksSign: true },
      moved: taken / rows,
    };
  }

  /**
   * B − A, and the weight that B takes from the keys all together; the largest change of the layer, which all heads'
   * scale needs, is found on the way.
   */
  differenceOf(a, b) {
    const difference = new Float32Array(a.length);
    let largest = this.largestChange;
    let taken = 0;
    for (let i = 0; i < a.length; i++) {
      const change = b[i] - a[i];
      difference[i] = change;
      const size = change < 0 ? -change : change;
      if (change < 0) taken += size;
      if (size > largest && size < Infinity) largest = size;
    }
    this.largestChange = largest;
    return { difference, taken };
  }

  scales() {
    const largest = this.data.layer_max[this.layer];
    const weight = makeScale(this.theme, "sequential", [0, largest > 0.5 ? 1 : largest || 1], this.choices.curve);
    const change = this.largestChange || 1;
    return { a: weight, b: weight, difference: makeScale(this.theme, "diverging", [-change, change]) };
  }

  draw() {
    this.width = this.root.clientWidth;
    if (!this.width) return;
    const matrices = this.matrices();
    const scales = this.scales();
    this.layerControl.set(this.layer, this.size.layers);
    this.chips.set(this.data.head_names[this.layer], this.theme, this.choices.shown);
    this.curve.set(this.choices.curve);
    const anyBlocked = Object.values(this.masks).some((masks) => masks.anyIn(this.layer, this.size.heads));
    this.weightLegend.update(scales.a, { text: "A, B", blocked: anyBlocked });
    this.differenceLegend.update(scales.difference, { text: "B − A" });
    this.arrange(matrices);
    const limits = this.limits();
    this.drawHeads((head) => this.drawHead(head, matrices[head], scales, limits));
    this.select(this.selected);
  }

  /** Draw at once the heads that can be seen, and the others in slices, so that nothing waits for them. */
  drawHeads(drawHead) {
    clearTimeout(this.timer);
    const shown = this.order.filter((head) => this.choices.shown.has(head));
    const later = [];
    // Asked one by one: a head that is drawn for the first time pushes those after it down.
    for (const head of shown) {
      if (this.isInView(head)) drawHead(head);
      else later.push(head);
    }
    const drawNext = () => {
      if (!later.length) return;
      drawHead(later.shift());
      this.timer = setTimeout(drawNext, 0);
    };
    this.timer = setTimeout(drawNext, 0);
  }

  isInView(head) {
    const box = this.heads[head].element.getBoundingClientRect();
    return box.top < window.innerHeight && box.bottom > 0;
  }

  /** One row of panels for each head, from the one that changed most to the one that changed least. */
  arrange(matrices) {
    while (this.heads.length < this.size.heads) this.heads.push(this.makeHead(this.heads.length));
    while (this.heads.length > this.size.heads) this.heads.pop().element.remove();
    this.heads.forEach(({ element }, head) => (element.hidden = !this.choices.shown.has(head)));
    this.order = matrices.map((_, head) => head).sort((a, b) => matrices[b].moved - matrices[a].moved || a - b);
    this.order.forEach((head, rank) => {
      const { element } = this.heads[head];
      if (this.rows.children[rank] !== element) this.rows.insertBefore(element, this.rows.children[rank]);
    });
  }

  makeHead(head) {
    const host = {
      hover: (panel, row, column, point) => this.hover(head, row, column, point),
      leave: () => this.leave(),
      select: (panel, row, column) => this.send(head, row, column),
    };
    const dot = makeElement("span", "matrix-dot");
    const text = makeElement("span");
    const panels = SIDES.map(() => new MatrixPanel(host));
    const moved = makeElement("span", "compare-moved");
    const heading = makeElement("div", "compare-heading", {}, [dot, text, moved]);
    const grids = makeElement("div", "compare-panels", {}, panels.map((panel) => panel.element));
    const element = makeElement("section", "compare-head", { "data-head": head }, [heading, grids]);
    this.rows.append(element);
    return { element, dot, text, moved, panels };
  }

  limits() {
    const side = this.width < 560 ? 1 : 3;
    const width = Math.min((this.width - COMPARE_GAP * (side - 1)) / side, 420);
    this.rows.style.setProperty("--columns", side);
    return { width, height: 420, cell: 44 };
  }

  drawHead(head, matrices, scales, limits) {
    const { dot, text, moved, panels } = this.heads[head];
    const name = headTitle(head, this.data.head_names[this.layer][head]);
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
        description: () => describeMatrix(`${name}, ${titles[side]}, layer ${this.layer}`, matrices[side]),
      });
    });
    this.differenceLegend.element.classList.toggle("legend-lined", !panels[2].geometry.numbers);
  }

  onResize() {
    if (this.data && this.root.clientWidth !== this.width) this.draw();
  }

  choose(layer) {
    if (layer === this.layer) return;
    this.layer = layer;
    this.seq += 1;
    this.teller.changed();
    this.draw();
    announcePainted("compare_grids", `${this.data.key} layer ${layer}`);
  }

  /** Draw heads in another way; Python hears of it later, see `Teller`. */
  change(looks) {
    const { heads, columns } = this.size;
    this.looks = { ...this.looks, ...looks };
    this.choices = headLooks(this.looks, heads, columns);
    this.seq += 1;
    this.teller.changed();
    this.draw();
  }

  /** Tell Python which layer is shown, and how. */
  tellShown() {
    const { layer, seq } = this;
    this.host.keep("shown", { ...writtenLooks(this.looks), layer, seq });
  }

  send(head, query, key) {
    this.seq += 1;
    this.teller.told();
    this.select({ head, row: query, column: key });
    const { layer, seq } = this;
    this.host.send("select", { ...writtenLooks(this.looks), layer, head, query, key, seq });
  }

  select(cell) {
    this.selected = cell;
    this.heads.forEach(({ panels }, head) => {
      for (const panel of panels) panel.select(cell?.head === head ? cell : null);
    });
  }

  hover(head, row, column, point) {
    this.lightAll(row, column);
    this.tooltip.show(this.describe(head, row, column), point.x, point.y);
    publishHover(marksOfCell(this.data.rows, this.data.columns, row, column), this);
  }

  /** All three values of one cell, and what blocks it on either side. */
  describe(head, row, column) {
    const { a, b, difference } = this.matrices()[head];
    const i = row * this.size.columns + column;
    const name = headTitle(head, this.data.head_names[this.layer][head]);
    return [
      tooltipLine("tooltip-head", name),
      cellPositionLine(this.data.rows, this.data.columns, row, column),
      compareLine("A", formatNumber(a.values[i], a.dtype), noteOn(a, row, i)),
      compareLine("B", formatNumber(b.values[i], b.dtype), noteOn(b, row, i)),
      compareLine("B − A", signedNumber(difference.values[i], a.dtype), ""),
    ];
  }

  leave() {
    this.tooltip.hide();
    this.lightAll(-1, -1);
    publishHover([], this);
  }

  onHover({ marks, origin }) {
    if (origin === this || !this.data) return;
    this.tooltip.hide();
    this.lightAll(litPosition(this.data.rows, "query", marks), litPosition(this.data.columns, "key", marks));
  }

  lightAll(row, column) {
    for (const { panels } of this.heads) for (const panel of panels) panel.light(row, column);
  }
}

/** How much of a query's weight B takes away from where it lay in A, in the mean of all queries. */
function movedText(moved) {
  if (moved < 5e-7) return "no weight moved";
  return moved < 0.001 ? "less than 0.1 % of the weight moved" : `${(100 * moved).toFixed(1)} % of the weight moved`;
}

/** One row of the tooltip's small table. */
function compareLine(name, number, note) {
  return tooltipLine(
    "tooltip-value compare-line",
    makeElement("span", "compare-name", {}, [name]),
    makeElement("b", "", {}, [number]),
    makeElement("span", "tooltip-note", {}, [note]),
  );
}

/** Why a cell has no weight on one side, "" when nothing blocks it. */
function noteOn({ blocked, blockedBy, emptyRows }, row, i) {
  if (emptyRows?.[row]) return "no key left";
  return blocked?.[i] ? blockedText(blocked[i], blockedBy) : "";
}

/** A difference with its sign. */
function signedNumber(value, dtype) {
  const text = formatNumber(value, dtype);
  return value > 0 ? (text.startsWith("≈") ? `≈+${text.slice(1)}` : `+${text}`) : text;
}

/** Draw the picture in `root`. */
export function render(root, bytes, host) {
  const picture = new CompareGrids(root, host);
  picture.update(bytes);
  return picture;
}
