const PAINTING = { height: 640, cell: 40 };
const LINED_CELL = 5; // from this size on, lines stand between the cells; below it, what is painted has an outline
const FINGER = 84; // how far above a finger its note stands
const AXIS_NAMES = 96; // the room that the axes' names take above a small plot
const DESCRIBED_ROWS = 24;

/**
 * The canvas on which a mask is painted: it draws cells, and turns pointers and keys into places.
 *
 * host: {press(place, isRectangle), drag(place), release(), cancel(), point(place, point), leave(), toggleLine(place),
 * move(rowStep, columnStep, isPainting), space(event)}; a place with row or column -1 is a whole column or row.
 */
class MaskSurface extends MatrixPanel {
  listen() {
    const { plot, body, host } = this;
    this.pressed = false;
    plot.addEventListener("pointerdown", (event) => this.onPress(event));
    plot.addEventListener("pointermove", (event) => this.onMove(event));
    plot.addEventListener("pointerup", (event) => this.onRelease(event, () => host.release()));
    plot.addEventListener("pointercancel", (event) => this.onRelease(event, () => host.cancel()));
    plot.addEventListener("pointerleave", () => this.pressed || host.leave());
    plot.addEventListener("keydown", (event) => this.onKey(event));
    plot.addEventListener("keyup", (event) => event.key === "Shift" && !this.pressed && host.release());
    plot.addEventListener("focus", () => plot.matches(":focus-visible") && host.move(0, 0, false));
    plot.addEventListener("blur", () => this.onBlur());
    // A press beside the plot would take the keyboard's focus from it, and with it Ctrl+Z.
    body.addEventListener("mousedown", (event) => this.plot.contains(event.target) || event.preventDefault());
    body.addEventListener("click", (event) => this.onLabel(event, (line) => this.onLabelClick(line)));
    body.addEventListener("pointermove", (event) => this.onLabelMove(event));
    body.addEventListener("pointerleave", () => this.pressed || host.leave());
  }

  /** Lay everything out and draw the labels. axes: {rowAxis, columnAxis}. */
  arrange(axes, theme, width) {
    const size = axes.rowAxis.labels.length;
    this.theme = theme;
    this.matrix = { rows: size, columns: size, ...axes };
    this.look = { limits: { width, ...PAINTING } };
    this.pixelRatio = window.devicePixelRatio || 1;
    const options = { labelled: true, font: theme.font, pixelRatio: this.pixelRatio };
    this.geometry = panelGeometry(this.matrix, this.look.limits, options);
    this.caption.hidden = true;
    this.place();
    this.drawAxes();
    this.drawLights();
  }

  drawAxes() {
    const { left, top, plotWidth, plotHeight } = this.geometry;
    const { pixelRatio } = this;
    const [width, height] = [Math.max(left + plotWidth, AXIS_NAMES), top + plotHeight];
    const context = sizedContext(this.overlay, Math.round(width * pixelRatio), Math.round(height * pixelRatio));
    setBox(this.overlay, 0, 0, width, height);
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    drawLabels(context, this.matrix, this.geometry, this.theme);
  }

  /** Draw the cells; emptyRows: one flag per row whose keys are all blocked, null for none. */
  paint(cells, emptyRows) {
    const { geometry, pixelRatio, theme } = this;
    const size = this.matrix.rows;
    const side = Math.max(1, Math.round(geometry.plotWidth * pixelRatio));
    const context = sizedContext(this.pixels, side, side);
    const hatch = hatchCanvas(cells, size, size, side, side, theme, pixelRatio);
    if (hatch) context.drawImage(hatch, 0, 0);
    if (geometry.cellWidth < LINED_CELL) drawOutline(context, cells, size, side, theme);
    else drawLines(context, size, side, theme, geometry.cellWidth);
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    if (emptyRows) drawEmptyRows(context, { rows: size, emptyRows }, { ...geometry, left: 0, top: 0 }, theme);
  }

  onPress(event) {
    if (!event.isPrimary) {
      // A second finger means to move or to enlarge the page.
      this.pressed = false;
      this.host.cancel();
      return;
    }
    if (event.button !== 0) return;
    this.pressed = true;
    this.plot.setPointerCapture(event.pointerId);
    this.plot.focus({ preventScroll: true });
    const place = this.cellAt(event);
    this.host.point(place, pointOf(event));
    this.host.press(place, event.shiftKey);
  }

  onMove(event) {
    if (!event.isPrimary) return;
    const place = this.cellAt(event);
    this.host.point(place, pointOf(event));
    if (this.pressed) this.host.drag(place);
  }

  onRelease(event, action) {
    if (!event.isPrimary || !this.pressed) return;
    this.pressed = false;
    action();
    if (event.pointerType === "touch") this.host.leave();
  }

  onBlur() {
    if (!this.pressed) this.host.release();
    this.host.leave();
  }

  /** Call `action` with the row or column whose label a pointer is on. */
  onLabel(event, action) {
    if (this.plot.contains(event.target)) return;
    const { row, column } = this.cellAt(event);
    const box = this.plot.getBoundingClientRect();
    const besideRow = event.clientX < box.left;
    const aboveColumn = event.clientY < box.top;
    if (besideRow !== aboveColumn) action(besideRow ? { row, column: -1 } : { row: -1, column });
    else this.host.leave();
  }

  onLabelClick(line) {
    this.plot.focus({ preventScroll: true });
    this.host.toggleLine(line);
  }

  onLabelMove(event) {
    if (event.pointerType !== "touch") this.onLabel(event, (line) => this.host.point(line, pointOf(event)));
  }

  onKey(event) {
    const step = stepOfKey(event.key, this.matrix.rows);
    if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== " ")) return;
    if (step) this.host.move(...step, event.shiftKey);
    else if (event.key === " ") this.host.space(event);
    else if (event.key === "Escape") this.host.cancel();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** The point of the window at a cell's lower right corner. */
  cornerOf({ row, column }) {
    const { x, y } = this.plot.getBoundingClientRect();
    const { cellWidth, cellHeight } = this.geometry;
    return { x: x + (column + 1) * cellWidth, y: y + (row + 1) * cellHeight };
  }
}

/** How many rows and columns a key moves, null for other keys. */
function stepOfKey(key, size) {
  const steps = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -size], End: [0, size],
  };
  return steps[key] ?? null;
}

/** Where the note of a pointer stands: beside a mouse, above a finger. */
function pointOf({ clientX, clientY, pointerType }) {
  return { x: clientX, y: pointerType === "touch" ? clientY - FINGER : clientY };
}

/** Quiet lines between the cells, the quieter the closer they stand. */
function drawLines(context, size, side, theme, cellWidth) {
  context.fillStyle = theme.text;
  context.globalAlpha = clamp(cellWidth / 150, 0.05, 0.13);
  for (let i = 1; i < size; i++) {
    const at = Math.round((i * side) / size);
    context.fillRect(at, 0, 1, side);
    context.fillRect(0, at, side, 1);
  }
  context.globalAlpha = 1;
}

/** Fill the outline of what is painted: among very small cells, a hatch alone would lose single ones. */
function drawOutline(context, cells, size, side, theme) {
  const canvas = maskCanvas(outlineOf(cells, size), size, size);
  const brush = canvas.getContext("2d");
  brush.globalCompositeOperation = "source-in";
  brush.fillStyle = theme.roles.neutral;
  brush.fillRect(0, 0, size, size);
  context.imageSmoothingEnabled = side < size;
  context.drawImage(canvas, 0, 0, side, side);
}

/** The text alternative: how much is blocked, then what each query is blocked from, while that is short. */
function describePainting(cells, { rowAxis }, summary) {
  const size = rowAxis.labels.length;
  const rows = [];
  for (let row = 0; row < size && rows.length <= DESCRIBED_ROWS; row++) {
    const keys = blockedKeysText(cells, size, row);
    if (keys) rows.push(`query ${row} ${rowAxis.labels[row]} is blocked from ${keys}`);
  }
  const shown = rows.length > DESCRIBED_ROWS ? [] : rows;
  return [`painted mask, ${size} queries by ${size} keys: ${summary}`, ...shown].join("; ");
}
