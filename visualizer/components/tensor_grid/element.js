const ROW_GAP = 22; // between the panels of a row, where the operators stand
const OPERATOR_ROOM = 28;
const TALLEST_PLOT = 460;
const LARGEST_CELL = 40;
const GALLERY = { gap: 20, smallest: 150, aspect: 1.15, height: 820 };

/** Several matrices: in a row like an equation, or as a gallery of small ones. */
class TensorGrid {
  constructor(root) {
    this.root = root;
    this.items = [];
    this.width = 0;
    this.sequenceNumber = 0;
    this.tooltip = makeTooltip(root);
    this.list = makeElement("div", "tensors");
    root.prepend(this.list);
    this.stopHover = subscribeHover((detail) => this.onHover(detail));
    this.resize = new ResizeObserver(oncePerFrame(() => this.onResize()));
    this.resize.observe(root);
  }

  destroy() {
    this.resize.disconnect();
    this.stopHover();
    this.tooltip.hide();
  }

  /** Take new data and draw it. */
  update(data, send) {
    this.send = send;
    this.data = unpack(data);
    this.theme = readTheme(this.root);
    applyPalette(this.root, this.theme);
    this.list.className = `tensors tensors-${this.data.layout}`;
    this.matrices = this.data.panels.map((panel, index) => this.matrixOf(panel, index));
    this.arrange();
    this.draw();
    announcePainted("tensor_grid", this.data.key);
  }

  matrixOf(panel, index) {
    const array = this.data.arrays[`values${index}`];
    const [rows, columns] = array.shape;
    const blocked = this.data.arrays[`blocked${index}`]?.data ?? null;
    return {
      values: floats(array),
      dtype: array.dtype,
      rows,
      columns,
      rowAxis: this.data.axes[panel.rows],
      columnAxis: this.data.axes[panel.columns],
      blocked,
      blockedBy: panel.blocked_by,
      emptyRows: rowsWithoutKey(blocked, rows, columns),
    };
  }

  /** Make or drop panels so that there is one for each matrix, grouped by shared scale. */
  arrange() {
    const { panels, layout } = this.data;
    if (this.layout !== layout) this.items = [];
    this.layout = layout;
    while (this.items.length < panels.length) this.items.push(this.makeItem());
    const groups = groupsByScale(panels);
    const arrangement = JSON.stringify([layout, groups, panels.map((panel) => panel.operator)]);
    this.items.length = panels.length;
    if (arrangement === this.arrangement) return;
    this.arrangement = arrangement;
    this.groups = groups.map((indices) => this.makeGroup(indices));
    this.list.replaceChildren(...this.groups.map((group) => group.element));
  }

  makeItem() {
    const host = {
      hover: (panel, row, column, point) => this.hover(panel, row, column, point),
      leave: () => this.leave(),
      select: (panel, row, column) => this.select(panel, row, column),
    };
    if (this.data.layout === "wrap") host.title = (panel) => this.select(panel, null, null);
    const panel = new MatrixPanel(host);
    const operator = makeElement("div", "operator");
    return { panel, operator, element: makeElement("div", "tensor", {}, [operator, panel.element]) };
  }

  makeGroup(indices) {
    const legend = makeLegend();
    const row = makeElement("div", "tensor-group-row", {}, indices.map((index) => this.items[index].element));
    return { indices, row, legend, element: makeElement("div", "tensor-group", {}, [row, legend.element]) };
  }

  draw() {
    this.width = this.root.clientWidth;
    if (!this.width) return;
    const limits = this.data.layout === "wrap" ? this.galleryLimits() : this.rowLimits();
    this.data.panels.forEach((panel, index) => this.drawPanel(panel, index, limits[index]));
    this.placeOperators();
    for (const group of this.groups) this.drawLegend(group);
  }

  drawPanel(panel, index, limits) {
    const item = this.items[index];
    const matrix = this.matrices[index];
    setText(item.operator, panel.operator);
    item.operator.hidden = panel.operator === "";
    item.panel.element.style.setProperty("--title-color", this.theme.roles[panel.role]);
    item.panel.show(matrix, {
      scale: makeScale(this.theme, panel.palette, panel.bounds),
      title: panel.title,
      subtitle: panel.subtitle || (this.onOneLine && this.data.panels.some((one) => one.subtitle) ? "\u00a0" : ""),
      valueName: panel.name.split(".").at(-1),
      description: () => describeMatrix(panel.title, matrix),
      limits,
      labelled: limits.labelled,
    });
    item.panel.select(this.selectedCell(panel.name));
  }

  /** Put every operator at the middle of the lowest plot, so that an equation reads along one line. */
  placeOperators() {
    const lowest = Math.min(...this.items.map(({ panel }) => panel.geometry.plotHeight));
    for (const { operator, panel } of this.items) {
      operator.style.height = `${lowest}px`;
      operator.style.marginTop = `${panel.caption.offsetHeight + 4 + panel.geometry.top}px`;
    }
  }

  selectedCell(name) {
    const selected = this.data.selected;
    return selected && selected[0] === name ? { row: selected[1], column: selected[2] } : null;
  }

  drawLegend({ indices, legend }) {
    const panel = this.data.panels[indices[0]];
    const { operator, panel: first } = this.items[indices[0]];
    legend.element.style.marginLeft = `${(operator.hidden ? 0 : operator.offsetWidth + 10) + first.geometry.left}px`;
    legend.update(makeScale(this.theme, panel.palette, panel.bounds), {
      blocked: indices.some((index) => this.matrices[index].blocked?.some(Boolean)),
    });
  }

  /** One size of cell for a whole equation when it fits on one line, else each panel as large as the line allows. */
  rowLimits() {
    const { font } = this.theme;
    const margins = this.matrices.map((matrix) => fullMargins(matrix, font, LABEL_CELL));
    const operators = this.data.panels.map((panel) => (panel.operator ? OPERATOR_ROOM : 0));
    const outside = sum(operators) + ROW_GAP * (operators.length - 1);
    const text = sum(margins.map((margin) => margin.left + 1)) + outside;
    const columns = sum(this.matrices.map((matrix) => matrix.columns));
    const rows = Math.max(...this.matrices.map((matrix) => matrix.rows));
    const shared = Math.min((this.width - text) / columns, TALLEST_PLOT / rows, LARGEST_CELL);
    if (shared >= SQUARE_CELL) {
      return this.aligned(this.matrices.map((matrix, i) => margins[i].left + shared * matrix.columns + 1), shared);
    }
    const share = Math.floor((this.width - text) / this.matrices.length);
    const widths = margins.map(({ left }, i) => Math.min(this.width - operators[i], Math.max(share + left, 240)));
    return this.aligned(widths, LARGEST_CELL, sum(widths) + outside <= this.width);
  }

  /** Limits for panels of these widths; on one line, their plots all begin at the same height. */
  aligned(widths, cell, onOneLine = true) {
    const limits = widths.map((width) => ({ width, height: TALLEST_PLOT, cell, labelled: true }));
    this.onOneLine = onOneLine;
    if (!onOneLine) return limits;
    const options = { labelled: true, font: this.theme.font, pixelRatio: window.devicePixelRatio || 1 };
    const tops = limits.map((limit, i) => panelGeometry(this.matrices[i], limit, options).top);
    return limits.map((limit) => ({ ...limit, top: Math.max(...tops) }));
  }

  galleryLimits() {
    const { gap } = GALLERY;
    const columns = galleryColumns(this.matrices.length, this.width, GALLERY);
    const width = Math.min((this.width - gap * (columns - 1)) / columns, 360);
    return this.matrices.map(() => ({ width, height: 320, cell: LARGEST_CELL, labelled: width >= 190 }));
  }

  onResize() {
    if (this.data && this.root.clientWidth !== this.width) this.draw();
  }

  indexOf(panel) {
    return this.items.findIndex((item) => item.panel === panel);
  }

  hover(panel, row, column, point) {
    const index = this.indexOf(panel);
    const { rowAxis, columnAxis } = this.matrices[index];
    this.pointed = { index, row, column };
    this.lightAll(marksOfCell(rowAxis, columnAxis, row, column));
    panel.light(row, column);
    const lines = describeCell(this.matrices[index], this.data.panels[index].name.split(".").at(-1), row, column);
    if (this.data.layout === "wrap") lines.unshift(tooltipLine("tooltip-head", this.data.panels[index].title));
    this.tooltip.show(lines, point.x, point.y);
    publishHover(marksOfCell(rowAxis, columnAxis, row, column), this);
  }

  leave() {
    this.pointed = null;
    this.tooltip.hide();
    this.lightAll([]);
    publishHover([], this);
  }

  onHover({ marks, origin }) {
    if (origin === this || !this.matrices) return;
    this.pointed = null;
    this.tooltip.hide();
    this.lightAll(marks);
  }

  /** Light in every panel what the marks name, and the features that the pointed cell shares with other panels. */
  lightAll(marks) {
    this.items.forEach(({ panel }, index) => {
      const { rowAxis, columnAxis } = this.matrices[index];
      const row = Math.max(litPosition(rowAxis, "query", marks), this.sharedFeature(rowAxis));
      const column = Math.max(litPosition(columnAxis, "key", marks), this.sharedFeature(columnAxis));
      panel.light(row, column);
    });
  }

  /** The position on an axis of features that the pointed cell is on too, -1 for none. */
  sharedFeature(axis) {
    if (!this.pointed || axis.sequence) return -1;
    const { index, row, column } = this.pointed;
    const { rowAxis, columnAxis } = this.matrices[index];
    const same = (other) => !other.sequence && other.name === axis.name && other.labels.length === axis.labels.length;
    if (same(rowAxis)) return row;
    return same(columnAxis) ? column : -1;
  }

  select(panel, row, column) {
    const index = this.indexOf(panel);
    const { name } = this.data.panels[index];
    this.sequenceNumber += 1;
    if (row !== null) {
      this.items.forEach((item) => item.panel.select(null));
      panel.select({ row, column });
    }
    this.send("select", { panel: name, index, row, column, seq: this.sequenceNumber });
  }
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

/** The indices of neighbouring panels that share one scale. */
function groupsByScale(panels) {
  const groups = [];
  let last = "";
  panels.forEach((panel, index) => {
    const scale = JSON.stringify([panel.palette, panel.bounds]);
    if (scale === last) groups.at(-1).push(index);
    else groups.push([index]);
    last = scale;
  });
  return groups;
}

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return undefined;
  const { instance, cleanUp } = instanceFor(parentElement, (root) => new TensorGrid(root));
  instance.update(data, setTriggerValue);
  return cleanUp;
}
