/** @import { Header, Host, Limits, Mark, OverviewSource, PackedArray, Point } from "../types.d.ts" */
/** @import { HeadsHeader } from "./types.d.ts" */

import { makeReady } from "../marks/cells.js";
import { litPosition, marksOfCell } from "../shared/axis.js";
import { makeFold, makeSegments } from "../shared/controls.js";
import { clamp, makeElement, whenIdle } from "../shared/dom.js";
import { LayeredPicture } from "../shared/fetched.js";
import { MatrixPanel } from "../shared/grid.js";
import { galleryColumns, roomForLabels } from "../shared/grid_layout.js";
import { HeadControls } from "../shared/head_controls.js";
import { chosenQuery } from "../shared/hover.js";
import { makeLegend } from "../shared/legend.js";
import { MaskPlanes } from "../shared/mask_planes.js";
import { lookAt } from "../shared/near.js";
import { Overview, widthOf } from "../shared/overview.js";
import { rendererOf } from "../shared/picture.js";
import { tallestGrid } from "../shared/room.js";
import { describeCell, describeMatrix } from "../shared/rows.js";
import { textsOf } from "../shared/texts.js";
import { headColor } from "../shared/theme.js";
import { tooltipLine } from "../shared/tooltip.js";
import { LinesView } from "./lines.js";

const say = textsOf("attention_heads/element");
const HEADS_GALLERY = { gap: 24, smallest: 190, height: 860 };
const NARROW = { page: 640, smallest: 140 }; // on a phone, or in the column of a paper, two stand side by side
const TITLE = 22; // the height of what a head is called
const WIDEST_FOR_LABELS = 300; // how large the smallest grid may become so that its rows have labels
const MANY_LAYERS = 12; // of more, the overview stands beside the heads and stays in sight
const WIDE = 800; // where there is room for that
const BESIDE = 28; // between both, as in the style sheet
const LEAST_ROW = 6; // of so high rows and higher ones, the head beside the map fits the window

/** Every head of every layer. Layer, heads and mode change here without a message to Python.
 *  @extends {LayeredPicture<HeadsHeader>} */
class AttentionHeads extends LayeredPicture {
  isSaved = true;
  /** @type {{ weights: PackedArray, masks: MaskPlanes }} */ cachedOf;
  /** @type {number | null} */ cachedLayer;
  /** @type {MaskPlanes} */ masks;
  /** @type {ReturnType<HeadControls["matrix"]>[]} */ cachedMatrices;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "attention_heads");
    this.room = 0; // the width that the grids have
    /** @type {MatrixPanel[]} */ this.panels = [];
    this.controls = new HeadControls(root, host, {
      draw: () => this.redraw(),
      move: (isOtherLayer) => this.move(isOtherLayer),
    });
    this.overview = new Overview((layer, head) => this.controls.choose(layer, head));
    const modes = [{ value: "grids", text: say("grids") }, { value: "lines", text: say("lines") }];
    this.mode = makeSegments("view", modes, (drawn) => this.controls.change({ drawn }));
    this.legend = makeLegend();
    this.lines = new LinesView({
      hover: (marks) => this.publish(marks),
      threshold: (weight) => this.controls.change({ least_weight: weight }),
      pin: (pinned) => this.controls.change({ pinned }),
    });
    this.endings.push(() => this.controls.destroy(), () => this.overview.destroy(), () => this.lines.destroy());
    this.endings.push(() => this.endReadying?.());
    const { layers, chips, curve } = this.controls;
    this.grids = makeElement("div", "heads-grids");
    const view = makeFold(say("view"), [this.mode.element, curve.element, this.dials.element]);
    const bar = makeElement("div", "heads-bar", {}, [layers.element, view.element, this.dials.foremost]);
    this.column = makeElement("div", "heads-controls", {}, [bar, chips.element, this.legend.element]);
    this.top = makeElement("div", "heads-top", {}, [this.overview.element, this.column]);
    this.root.prepend(this.top, this.grids, this.lines.element);
  }

  /** Put the heads below the overview, or beside one of many layers. */
  place() {
    const { layers, heads } = this.controls.size;
    const isBeside = (layers > MANY_LAYERS || this.isMap) && this.width >= WIDE;
    this.room = isBeside ? this.width - widthOf(heads) - BESIDE : this.width;
    if (this.top.classList.contains("heads-beside") === isBeside) return;
    this.top.classList.toggle("heads-beside", isBeside);
    if (isBeside) this.column.append(this.grids, this.lines.element);
    else this.top.after(this.grids, this.lines.element);
  }

  /** @param {HeadsHeader} header @param {Header} answer */
  headerWith(header, answer) {
    return { ...super.headerWith(header, answer), blocked_by: answer.blocked_by };
  }

  receiveMore() {
    const { weights, blocked } = this.data.arrays;
    this.masks = MaskPlanes.of(blocked, this.masks);
    this.cachedOf = { weights, masks: this.masks }; // those of the layer shown are as they were
  }

  drawMore() {
    this.drawOverview();
    this.readyNeighbours();
  }

  receive() {
    const { weights, blocked } = this.data.arrays;
    this.masks = MaskPlanes.of(blocked, this.masks);
    if (this.controls.receive(this.data, weights.shape)) {
      this.selected = this.data.selected;
      this.dials.show(this.data.dials);
    }
    if (weights !== this.cachedOf?.weights || this.masks !== this.cachedOf?.masks) this.cachedLayer = null;
    this.cachedOf = { weights, masks: this.masks };
  }

  /** One head's matrix, decoded when it is first needed. Only those of the layer shown are kept.
   *  @param {number} layer @param {number} head */
  matrix(layer, head) {
    const { controls, data } = this;
    const decode = () => controls.matrix(data.arrays.weights, this.masks, data.blocked_by, layer, head);
    if (layer !== controls.layer) return decode();
    if (this.cachedLayer !== layer) {
      this.cachedLayer = layer;
      this.cachedMatrices = [];
    }
    return (this.cachedMatrices[head] ??= decode());
  }

  draw() {
    const { controls, theme } = this;
    const { choices, layer, size } = controls;
    const asGrids = choices.drawn === "grids";
    controls.show(theme);
    this.place();
    this.top.classList.toggle("heads-alone", this.data.light === "head"); // a path shows the heads and their scale
    this.top.classList.toggle("heads-of-map", this.isMap); // or the overview and one head
    this.mode.set(choices.drawn);
    this.legend.update(controls.scale(theme), { text: "weight", blocked: this.masks.anyIn(layer, size.heads) });
    this.legend.element.hidden = controls.curve.element.hidden = !asGrids;
    this.grids.hidden = !asGrids;
    this.lines.element.hidden = asGrids;
    controls.chips.element.classList.toggle("chips-of-lines", !asGrids);
    const isOther = this.overviewed?.data !== this.data || this.overviewed?.width !== this.width;
    if (isOther && (this.data.isWhole ?? true)) this.drawOverview();
    if (asGrids) this.drawGrids();
    else this.drawLines();
  }

  drawOverview() {
    const { controls, data, masks, width } = this;
    const { layers, heads } = controls.size;
    /** @param {number} layer @param {number} head */
    const ofThen = (layer, head) => controls.matrix(data.arrays.weights, masks, data.blocked_by, layer, head);
    this.overviewed = { data, width };
    this.overview.element.hidden = layers * heads === 1;
    /** @type {OverviewSource} */
    const source = {
      layers,
      heads,
      // They are drawn and put into words later, when the numbers of one layer alone may have come.
      matrix: (layer, head) => (this.data === data ? this.matrix(layer, head) : ofThen(layer, head)),
      scale: (layer) => controls.scale(this.theme, layer),
      name: (layer, head) => controls.title(head, layer),
      layerName: (layer) => controls.layerName(layer),
    };
    this.overview.show(source, controls.layer, controls.head, width < 640 ? width : width * 0.46);
  }

  /** True if a path shows the overview, and large the head that is chosen there. */
  get isMap() {
    return this.data.light === "map";
  }

  drawGrids() {
    const { choices, head: chosen, size } = this.controls;
    const shown = this.isMap ? [chosen] : [...choices.shown].sort((a, b) => a - b);
    while (this.panels.length < size.heads) this.panels.push(this.makePanel());
    this.panels.forEach(({ element }, head) => {
      if (element.hidden && shown.includes(head)) lookAt(element);
      element.hidden = !shown.includes(head);
    });
    const limits = this.panelLimits(Math.max(1, shown.length));
    for (const head of shown) this.drawPanel(head, limits);
    this.markSelected();
    this.readyNeighbours();
  }

  /** While nothing else is to do, make the layers beside the one shown ready to be drawn, head by head. */
  readyNeighbours() {
    const { choices, layer, size } = this.controls;
    const layers = [layer + 1, layer - 1].filter((other) => other >= 0 && other < size.layers);
    const waiting = layers.flatMap((other) => [...choices.shown].map((head) => [other, head]));
    const readyOne = () => {
      const canvas = this.panels.find((panel) => panel.painted)?.pixels;
      const place = waiting.shift();
      if (!canvas || !place || !(this.data.isWhole ?? true)) return;
      makeReady(this.matrix(place[0], place[1]), canvas);
      this.endReadying = whenIdle(readyOne);
    };
    this.endReadying?.();
    this.endReadying = whenIdle(readyOne);
  }

  /** @param {number} count */
  panelLimits(count) {
    const { rows, columns } = this.controls.size;
    const aspect = clamp(rows / columns, 0.3, 2) * 1.05;
    const smallest = this.smallestGrid();
    const tallest = tallestGrid(this.grids, rows, this.isMap ? LEAST_ROW : Infinity) - TITLE;
    const height = Math.min(HEADS_GALLERY.height, tallest);
    const side = galleryColumns(count, this.room, { ...HEADS_GALLERY, smallest, aspect, height });
    const width = Math.min((this.room - HEADS_GALLERY.gap * (side - 1)) / side, 760);
    this.grids.style.setProperty("--columns", String(side));
    return { width, height: 680, tallest, cell: 52, labelled: width >= NARROW.smallest };
  }

  /** The narrowest grid whose rows have labels; the usual one where that would be too wide. */
  smallestGrid() {
    const { rows, columns } = this.data;
    const labelled = roomForLabels({ rows: rows.labels.length, columns: columns.labels.length, rowAxis: rows, columnAxis: columns }, this.theme.font);
    const { smallest } = this.room < NARROW.page ? NARROW : HEADS_GALLERY;
    const fits = labelled <= Math.min(WIDEST_FOR_LABELS, this.room);
    return fits ? Math.max(smallest, labelled) : smallest;
  }

  /** @param {number} head @param {Limits & { labelled: boolean }} limits */
  drawPanel(head, limits) {
    const { controls, theme } = this;
    const { layer } = controls;
    const matrix = this.matrix(layer, head);
    const title = controls.title(head);
    this.panels[head].show(matrix, {
      scale: controls.scale(theme),
      title,
      color: headColor(theme, head),
      valueName: "weight",
      limits,
      labelled: limits.labelled,
      description: () => describeMatrix(say("weights", { layer: controls.layerName(), title }), matrix),
    });
  }

  makePanel() {
    const panel = new MatrixPanel({
      hover: (one, row, column, point) => this.hover(one, row, column, point),
      leave: () => this.leave(),
      select: (one, row, column) => this.select(this.panels.indexOf(one), row, column),
    });
    this.grids.append(panel.element);
    return panel;
  }

  drawLines() {
    const { choices, layer, size } = this.controls;
    const heads = [...choices.shown].sort((a, b) => a - b);
    this.lines.show({
      heads: heads.map((head) => ({ head, ...this.matrix(layer, head) })),
      rows: size.rows,
      columns: size.columns,
      rowAxis: this.data.rows,
      columnAxis: this.data.columns,
      theme: this.theme,
      largest: this.controls.scale(this.theme).high,
      threshold: choices.least_weight,
      pinned: choices.pinned,
      selectedQuery: this.selected?.[0] ?? -1,
      title: say("as_lines", { layer: this.controls.layerName() }),
    });
  }

  /** Another layer or head is shown. @param {boolean} isOtherLayer */
  move(isOtherLayer) {
    const { layer, head } = this.controls;
    if (isOtherLayer || this.isMap) this.redraw();
    else this.markSelected();
    this.overview.mark(layer, head);
    this.announce(`${this.data.key} layer ${layer}`);
  }

  /** @param {number} head @param {number} query @param {number} key */
  select(head, query, key) {
    this.selected = [query, key];
    this.controls.select(head, query, key);
    this.markSelected();
    this.overview.mark(this.controls.layer, head);
  }

  markSelected() {
    const [row, column] = this.selected ?? [];
    this.panels.forEach((panel, head) => {
      const isCurrent = head === this.controls.head;
      panel.element.classList.toggle("matrix-current", isCurrent);
      panel.element.classList.toggle("matrix-lit", isCurrent && this.data.light === "head");
      panel.select(this.selected && isCurrent ? { row, column } : null);
    });
  }

  /** @param {MatrixPanel} panel @param {number} row @param {number} column @param {Point} point */
  hover(panel, row, column, point) {
    this.lightAll(row, column);
    const lines = describeCell(panel.matrix, "weight", row, column);
    const title = tooltipLine("tooltip-head", panel.look.title ?? "");
    this.pointAt([title, ...lines], point, marksOfCell(this.data.rows, this.data.columns, row, column));
    const again = () => this.hover(panel, row, column, point);
    this.wantExact(panel, { weights: panel.matrix }, this.panels.indexOf(panel), row, column, again);
  }

  /** @param {Mark[]} marks */
  onHover(marks) {
    const query = chosenQuery(marks, this.data.rows.sequence);
    if (query !== null) this.followQuery(query);
    const row = litPosition(this.data.rows, "query", marks);
    const column = litPosition(this.data.columns, "key", marks);
    if (this.controls.choices.drawn === "lines") this.lines.lightFromOutside(row, column);
    else this.lightAll(row, column);
  }

  /** Another token is the query; the host hears of it from where it was chosen. @param {number} query */
  followQuery(query) {
    this.selected = [query, this.selected?.[1] ?? 0];
    if (this.controls.choices.drawn === "lines") this.drawLines();
    else this.markSelected();
  }

  /** @param {number} row @param {number} column */
  lightAll(row, column) {
    for (const panel of this.panels) panel.light(row, column);
  }
}

export const render = rendererOf(AttentionHeads);
