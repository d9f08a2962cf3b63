import {
  headLooks, headTitle, makeCurveControl, makeHeadChips, makeLayerControl, makeSegments, shownHeads,
  Teller, writtenLooks,
} from "../shared/controls.js";
import { announcePainted, clamp, makeElement, oncePerFrame } from "../shared/dom.js";
import { describeCell, describeMatrix, litPosition, marksOfCell, MatrixPanel } from "../shared/grid.js";
import { galleryColumns, roomForLabels } from "../shared/grid_layout.js";
import { publishHover, subscribeHover } from "../shared/hover.js";
import { makeLegend } from "../shared/legend.js";
import { MaskPlanes } from "../shared/mask_planes.js";
import { makeScale } from "../shared/matrix_pixels.js";
import { floats, unpack } from "../shared/payload.js";
import { applyTheme, headColor } from "../shared/theme.js";
import { makeTooltip, tooltipLine } from "../shared/tooltip.js";
import { LinesView } from "./lines.js";
import { Overview } from "./overview.js";

const HEADS_GALLERY = { gap: 24, smallest: 190, height: 860 };
const WIDEST_FOR_LABELS = 300; // how large the smallest grid may become so that its rows have labels

/** Every head of every layer. Layer, heads and mode change here without a message to Python. */
class AttentionHeads {
  constructor(root, host) {
    this.root = root;
    this.host = host;
    this.panels = [];
    this.seq = -1;
    this.build();
    this.stopHover = subscribeHover((detail) => this.onHover(detail));
    this.resize = new ResizeObserver(oncePerFrame(() => this.onResize()));
    this.resize.observe(root);
    this.teller = new Teller(root, () => this.tellShown());
  }

  destroy() {
    this.teller.stop();
    this.resize.disconnect();
    this.stopHover();
    this.overview.destroy();
    this.lines.destroy();
    this.tooltip.hide();
  }

  build() {
    this.tooltip = makeTooltip(this.root);
    this.overview = new Overview((layer, head) => this.choose(layer, head));
    this.layerControl = makeLayerControl((layer) => this.choose(layer, this.head));
    const modes = [{ value: "grids", text: "Grids" }, { value: "lines", text: "Lines" }];
    this.mode = makeSegments("view", modes, (drawn) => this.change({ drawn }));
    this.curve = makeCurveControl((curve) => this.change({ curve }));
    this.chips = makeHeadChips((shown) => this.change({ shown: shownHeads(shown, this.size.heads) }));
    this.legend = makeLegend();
    this.lines = new LinesView({
      hover: (marks) => publishHover(marks, this),
      threshold: (weight) => this.change({ least_weight: weight }),
      pin: (pinned) => this.change({ pinned }),
    });
    this.grids = makeElement("div", "heads-grids");
    this.scaleRow = makeElement("div", "heads-scale", {}, [this.legend.element, this.curve.element]);
    const bar = makeElement("div", "heads-bar", {}, [this.layerControl.element, this.mode.element]);
    const controls = makeElement("div", "heads-controls", {}, [bar, this.chips.element, this.scaleRow]);
    this.top = makeElement("div", "heads-top", {}, [this.overview.element, controls]);
    this.root.prepend(this.top, this.grids, this.lines.element);
  }

  /** Take new data and draw it. */
  update(bytes) {
    this.data = unpack(bytes);
    this.theme = applyTheme(this.root, this.host);
    const [layers, heads, rows, columns] = this.data.arrays.weights.shape;
    this.size = { layers, heads, rows, columns };
    this.masks = new MaskPlanes(this.data.arrays.blocked);
    this.followPython();
    this.choices = headLooks(this.looks, heads, columns);
    this.cachedLayer = null;
    this.draw();
    this.drawOverview();
    announcePainted("attention_heads", this.data.key);
  }

  /** Take Python's layer, head and looks, unless the person has changed them since Python last heard of it. */
  followPython() {
    const { layers, heads } = this.size;
    if (this.data.seq >= this.seq) {
      this.seq = this.data.seq;
      this.layer = this.data.layer;
      this.head = this.data.head;
      this.selected = this.data.selected;
      this.looks = this.data.looks;
    }
    this.layer = clamp(this.layer, 0, layers - 1);
    this.head = clamp(this.head, 0, heads - 1);
  }

  name(layer, head) {
    return headTitle(head, this.data.head_names[layer][head]);
  }

  /** One head's matrix, decoded when it is first needed. Only those of the layer shown are kept. */
  matrix(layer, head) {
    if (layer !== this.layer) return this.decode(layer, head);
    if (this.cachedLayer !== layer) {
      this.cachedLayer = layer;
      this.cachedMatrices = [];
    }
    return (this.cachedMatrices[head] ??= this.decode(layer, head));
  }

  decode(layer, head) {
    const { heads, rows, columns } = this.size;
    const array = this.data.arrays.weights;
    const start = (layer * heads + head) * rows * columns;
    return {
      values: floats(array, start, start + rows * columns),
      dtype: array.dtype,
      rows,
      columns,
      rowAxis: this.data.rows,
      columnAxis: this.data.columns,
      blockedBy: this.data.blocked_by,
      ...this.masks.at(layer, head),
    };
  }

  /** A layer's heads have one scale: to 1, or to the largest weight where all weights are small. */
  scale(layer) {
    const largest = this.data.layer_max[layer];
    return makeScale(this.theme, "sequential", [0, largest > 0.5 ? 1 : largest || 1], this.choices.curve);
  }

  draw() {
    this.width = this.root.clientWidth;
    if (!this.width) return;
    const { layers } = this.size;
    const asGrids = this.choices.drawn === "grids";
    this.layerControl.set(this.layer, layers);
    this.mode.set(this.choices.drawn);
    this.curve.set(this.choices.curve);
    this.chips.set(this.data.head_names[this.layer], this.theme, this.choices.shown);
    const blocked = this.masks.anyIn(this.layer, this.size.heads);
    this.legend.update(this.scale(this.layer), { text: "weight", blocked });
    this.scaleRow.hidden = !asGrids;
    this.grids.hidden = !asGrids;
    this.lines.element.hidden = asGrids;
    this.chips.element.classList.toggle("chips-of-lines", !asGrids);
    if (asGrids) this.drawGrids();
    else this.drawLines();
  }

  drawOverview() {
    const { layers, heads } = this.size;
    if (!this.width) return;
    this.overview.element.hidden = layers * heads === 1;
    const source = {
      layers,
      heads,
      matrix: (layer, head) => this.matrix(layer, head),
      scale: (layer) => this.scale(layer),
      name: (layer, head) => this.name(layer, head),
    };
    this.overview.show(source, this.layer, this.head, this.width < 640 ? this.width : this.width * 0.46);
  }

  drawGrids() {
    const shown = [...this.choices.shown].sort((a, b) => a - b);
    while (this.panels.length < this.size.heads) this.panels.push(this.makePanel());
    while (this.panels.length > this.size.heads) this.panels.pop().element.remove();
    this.panels.forEach((panel, head) => (panel.element.hidden = !this.choices.shown.has(head)));
    const limits = this.panelLimits(Math.max(1, shown.length));
    for (const head of shown) this.drawPanel(head, limits);
    this.markSelected();
  }

  panelLimits(count) {
    const { rows, columns } = this.size;
    const aspect = clamp(rows / columns, 0.3, 2) * 1.05;
    const smallest = this.smallestGrid();
    const side = galleryColumns(count, this.width, { ...HEADS_GALLERY, smallest, aspect });
    const width = Math.min((this.width - HEADS_GALLERY.gap * (side - 1)) / side, 760);
    this.grids.style.setProperty("--columns", side);
    return { width, height: 680, cell: 52, labelled: width >= 150 };
  }

  /** The narrowest grid whose rows have labels; the usual one where that would be too wide. */
  smallestGrid() {
    const { rows, columns } = this.data;
    const labelled = roomForLabels({ rows: rows.labels.length, rowAxis: rows, columnAxis: columns }, this.theme.font);
    const fits = labelled <= Math.min(WIDEST_FOR_LABELS, this.width);
    return fits ? Math.max(HEADS_GALLERY.smallest, labelled) : HEADS_GALLERY.smallest;
  }

  drawPanel(head, limits) {
    const matrix = this.matrix(this.layer, head);
    const title = this.name(this.layer, head);
    this.panels[head].show(matrix, {
      scale: this.scale(this.layer),
      title,
      color: headColor(this.theme, head),
      valueName: "weight",
      limits,
      labelled: limits.labelled,
      description: () => describeMatrix(`attention weights of layer ${this.layer}, ${title}`, matrix),
    });
  }

  makePanel() {
    const panel = new MatrixPanel({
      hover: (one, row, column, point) => this.hover(one, row, column, point),
      leave: () => this.leave(),
      select: (one, row, column) => this.select(this.panels.indexOf(one), row, column),
      title: (one, solo) => {
        const head = this.panels.indexOf(one);
        if (solo) this.chips.solo(head);
        else this.choose(this.layer, head);
      },
    });
    this.grids.append(panel.element);
    return panel;
  }

  drawLines() {
    const { rows, columns } = this.size;
    const heads = [...this.choices.shown].sort((a, b) => a - b);
    this.lines.show({
      heads: heads.map((head) => ({ head, ...this.matrix(this.layer, head) })),
      rows,
      columns,
      rowAxis: this.data.rows,
      columnAxis: this.data.columns,
      theme: this.theme,
      largest: this.scale(this.layer).high,
      threshold: this.choices.least_weight,
      pinned: this.choices.pinned,
      selectedQuery: this.selected?.[0] ?? -1,
      title: `attention of layer ${this.layer} as lines`,
    });
  }

  onResize() {
    if (!this.data || this.root.clientWidth === this.width) return;
    this.draw();
    this.drawOverview();
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

  /** Show a layer and mark a head; Python hears of it later, see `Teller`. */
  choose(layer, head) {
    const sameLayer = layer === this.layer;
    if (sameLayer && head === this.head) return;
    this.layer = layer;
    this.head = head;
    this.seq += 1;
    this.teller.changed();
    if (!sameLayer) this.draw();
    else this.markSelected();
    this.overview.mark(layer, head);
    announcePainted("attention_heads", `${this.data.key} layer ${layer}`);
  }

  /** Tell Python which layer and head are shown, and how. */
  tellShown() {
    const { layer, head, seq } = this;
    this.host.keep("shown", { ...writtenLooks(this.looks), layer, head, seq });
  }

  select(head, query, key) {
    this.head = head;
    this.seq += 1;
    this.teller.told();
    this.selected = [query, key];
    this.markSelected();
    this.overview.mark(this.layer, head);
    const { layer, seq } = this;
    this.host.send("select", { ...writtenLooks(this.looks), layer, head, query, key, seq });
  }

  markSelected() {
    const [row, column] = this.selected ?? [];
    this.panels.forEach((panel, head) => {
      panel.element.classList.toggle("matrix-current", head === this.head);
      panel.select(this.selected && head === this.head ? { row, column } : null);
    });
  }

  hover(panel, row, column, point) {
    for (const one of this.panels) one.light(row, column);
    const lines = describeCell(panel.matrix, "weight", row, column);
    this.tooltip.show([tooltipLine("tooltip-head", panel.look.title), ...lines], point.x, point.y);
    publishHover(marksOfCell(this.data.rows, this.data.columns, row, column), this);
  }

  leave() {
    this.tooltip.hide();
    for (const panel of this.panels) panel.light(-1, -1);
    publishHover([], this);
  }

  onHover({ marks, origin }) {
    if (origin === this || !this.data) return;
    this.tooltip.hide();
    const row = litPosition(this.data.rows, "query", marks);
    const column = litPosition(this.data.columns, "key", marks);
    if (this.choices.drawn === "lines") this.lines.lightFromOutside(row, column);
    else for (const panel of this.panels) panel.light(row, column);
  }
}

/** Draw the picture in `root`. */
export function render(root, bytes, host) {
  const picture = new AttentionHeads(root, host);
  picture.update(bytes);
  return picture;
}
