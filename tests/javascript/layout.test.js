/** Where everything goes: cells, panels, maps, bars; and what is under a pointer. */

import assert from "node:assert/strict";
import { test } from "node:test";

const LETTER = 6; // pixels of a letter in these tests

globalThis.OffscreenCanvas = class {
  getContext() {
    return { measureText: (text) => ({ width: LETTER * text.length }) };
  }
};

const { linesOfToken, strongestLines } = await import("../../visualizer/components/attention_heads/lines.js");
const { barNumber, measureBars, rangeOf } = await import("../../visualizer/components/derivation/bars.js");
const { barPlace } = await import("../../visualizer/components/marks/bar.js");
const { litPosition, marksOfCell } = await import("../../visualizer/components/shared/axis.js");
const { rowsWithoutKey } = await import("../../visualizer/components/shared/mask_planes.js");
const { cellUnder, galleryColumns, panelGeometry } = await import("../../visualizer/components/shared/grid_layout.js");
const { layoutMap } = await import("../../visualizer/components/stage_map/layout.js");
const { layoutEquation } = await import("../../visualizer/components/tensor_grid/layout.js");

const tokens = (count, name = "query") => ({
  name, sequence: "source", labels: Array.from({ length: count }, (_, i) => `w${i}`),
});
const features = (count) => ({ name: "feature", sequence: null, labels: Array.from({ length: count }, (_, i) => `${i}`) });
const matrixOf = (rowAxis, columnAxis) => ({
  rows: rowAxis.labels.length, columns: columnAxis.labels.length, rowAxis, columnAxis,
});

test("the cell under a pointer is the nearest one of the matrix", () => {
  const box = { left: 10, top: 20, width: 100, height: 40 };
  const under = (clientX, clientY) => Object.values(cellUnder(box, { clientX, clientY }, 4, 10));
  assert.deepEqual(under(10, 20), [0, 0]);
  assert.deepEqual(under(109.9, 59.9), [3, 9]);
  assert.deepEqual(under(60, 40), [2, 5]);
  assert.deepEqual(under(0, 1000), [3, 0]);
});

test("cells are square where that can be read, and whole device pixels wide", () => {
  const limits = { width: 400, height: 300, cell: 40 };
  for (const pixelRatio of [1, 1.5, 2]) {
    const look = { labelled: true, font: "sans-serif", pixelRatio };
    const { cellWidth, cellHeight, left, plotWidth } = panelGeometry(matrixOf(tokens(11), tokens(11, "key")), limits, look);
    assert.equal(cellWidth, cellHeight);
    assert.equal((cellWidth * pixelRatio) % 1, 0);
    assert.ok(left + plotWidth <= limits.width);
  }
});

test("labels that do not fit stand upright, and numbers give way to ticks", () => {
  const look = { labelled: true, font: "sans-serif", pixelRatio: 1 };
  const long = { ...tokens(11, "key"), labels: Array(11).fill("because") };
  assert.equal(panelGeometry(matrixOf(tokens(11), long), { width: 300, height: 300, cell: 40 }, look).columnLabels, "upright");
  const narrow = panelGeometry(matrixOf(tokens(4), features(64)), { width: 300, height: 300, cell: 40 }, look);
  assert.equal(narrow.columnLabels, "ticks");
  assert.ok(narrow.plotWidth <= 300);
});

test("a gallery has no more columns than fit, and fills its rows", () => {
  const options = { gap: 20, smallest: 150, aspect: 1, height: 800 };
  assert.equal(galleryColumns(4, 300, options), 1);
  assert.equal(galleryColumns(4, 900, options), 4, "three fit the height, and four fill their row");
  assert.equal(galleryColumns(12, 1000, options) % 2, 0);
});

test("an equation breaks onto lines whose panels fit side by side", () => {
  const panels = ["q", "k", "scores"].map((title, i) => ({ title, operator: i ? "×" : "" }));
  const matrices = [matrixOf(tokens(8), features(16)), matrixOf(tokens(8), features(16)), matrixOf(tokens(8), tokens(8, "key"))];
  const widthOf = ({ lines, limits }) => Math.max(...lines.map((line) => line.reduce((sum, i) => sum + limits[i].width, 0)));
  globalThis.window = { devicePixelRatio: 1, innerHeight: 1000 };
  const wide = layoutEquation(panels, matrices, 1200, { font: "sans-serif" });
  assert.deepEqual(wide.lines, [[0, 1, 2]]);
  const narrow = layoutEquation(panels, matrices, 390, { font: "sans-serif" });
  assert.deepEqual(narrow.lines, [[0], [1], [2]]);
  assert.ok(widthOf(wide) <= 1200);
  assert.ok(widthOf(narrow) <= 390);
});

test("pointing at a cell marks its tokens, and marks light axes by role", () => {
  const [rows, columns] = [tokens(4), tokens(4, "key")];
  const marks = marksOfCell(rows, columns, 2, 1);
  assert.deepEqual(marks.map(({ index, role }) => [index, role]), [[2, "query"], [1, "key"]]);
  assert.deepEqual([litPosition(rows, "query", marks), litPosition(columns, "key", marks)], [2, 1]);
  assert.equal(litPosition(features(4), "key", marks), -1);
  assert.deepEqual(marksOfCell(features(4), features(4), 0, 0), []);
});

test("a row without a key is told from one with", () => {
  assert.deepEqual([...rowsWithoutKey(Uint8Array.of(1, 1, 0, 1), 2, 2)], [1, 0]);
  assert.equal(rowsWithoutKey(Uint8Array.of(0, 1, 1, 0), 2, 2), null);
});

/** A model with so many layers of two blocks. */
function modelOf(layers, link = false) {
  const block = (id, label) => ({ id, label, role: "neutral", telling: `${id}.x`, stages: [{ path: `${id}.x` }] });
  const layer = (name, i) => ({
    id: `${name}${i}`,
    label: `layer ${i}`,
    blocks: [block(`${name}${i}.a`, "self-attention"), block(`${name}${i}.n`, "add & norm")],
    residuals: [["input", `${name}${i}.n`]],
  });
  const track = (name) => ({
    name, title: name, inputs: block(`${name}.in`, "inputs"), end: null,
    layers: Array.from({ length: layers }, (_, i) => layer(name, i)),
  });
  const tracks = link ? [track("encoder"), track("decoder")] : [track("encoder")];
  return { tracks, output: block("output", "output"), links: link ? [["encoder0.n", "decoder0.a"]] : [] };
}

const boxesOf = ({ tracks }) => tracks.flatMap(({ boxes, layers }) => [...boxes, ...layers.flatMap((one) => one.boxes)]);

test("no wire leads to a block that does not read its neighbour", () => {
  const model = modelOf(1);
  const open = new Set(["encoder0"]);
  const wiresOf = () => layoutMap(model, open, 1200).tracks[0].layers[0].wires.length;
  assert.equal(wiresOf(), 3);
  model.tracks[0].layers[0].blocks[1].apart = true;
  assert.equal(wiresOf(), 2);
});

test("no wire of a part that is drawn alone leads nowhere", () => {
  const wiresOf = (layer, inputs) => {
    const model = { tracks: [{ name: "", title: "", inputs, layers: [layer], end: null }], output: null, links: [] };
    const [{ boxes, layers, wires }] = layoutMap(model, new Set(), 1200).tracks;
    const placed = [...boxes, ...layers.flatMap((one) => [...one.boxes, one.frame ?? []].flat())];
    const edges = placed.flatMap(({ x, width }) => [x, x + width]);
    const all = [...wires, ...layers.flatMap((one) => one.wires)];
    const ends = all.flatMap(({ x1, x2 }) => [x1, x2]);
    const isHeld = (x) => edges.includes(x) || ends.filter((one) => one === x).length > 1;
    assert.ok(ends.every(isHeld), JSON.stringify({ all, edges }));
    return all.length;
  };
  const [block] = modelOf(1).tracks[0].layers[0].blocks;
  const attention = { id: "*", label: "", blocks: [block], residuals: [] };
  assert.equal(wiresOf(attention, null), 0);
  assert.equal(wiresOf(attention, { ...block, id: "in" }), 2, "from the inputs to its edge, and on to its block");
  assert.equal(wiresOf(modelOf(1).tracks[0].layers[0], null), 2, "into the first block of a frame, and to the second");
});

test("the map fits the width it has, by closing layers", () => {
  for (const [layers, width] of [[2, 1200], [6, 700], [12, 360]]) {
    const layout = layoutMap(modelOf(layers), new Set(), width);
    assert.equal(boxesOf(layout).length, 2 * layers + 2);
    assert.ok(layers === 12 || layout.width <= width, `${layers} layers in ${width}`);
  }
  const open = layoutMap(modelOf(12), new Set(["encoder3"]), 360);
  assert.deepEqual(open.tracks[0].layers.filter(({ form }) => form === "labelled").map(({ layer }) => layer.id), ["encoder3"]);
});

test("on a low screen the other track is one line, from which the links still lead to their blocks", () => {
  const whole = layoutMap(modelOf(2, true), new Set(["decoder0"]), 1200);
  const low = layoutMap(modelOf(2, true), new Set(["decoder0"]), 1200, new Set(["encoder"]));
  assert.ok(low.height <= whole.height - 60);
  assert.deepEqual(low.tracks[0].layers.map(({ form, frame }) => [form, frame.label]), [["slim", "layer 0"], ["slim", "layer 1"]]);
  assert.deepEqual(low.links[0][0], { x: low.tracks[0].right, y: low.tracks[0].wire });
  const target = boxesOf(low).find(({ block }) => block.id === "decoder0.a");
  assert.deepEqual(low.links[0].at(-1), { x: target.x + target.width / 2, y: target.y });
  const other = layoutMap(modelOf(12, true), new Set(["encoder0"]), 500, new Set(["decoder"]));
  assert.equal(other.tracks[1].layers[3].frame.label, "3");
  assert.ok(other.links[0].at(-1).y === other.tracks[1].top);
});

test("no two blocks of the map overlap, and a link ends on its block", () => {
  const layout = layoutMap(modelOf(3, true), new Set(["decoder0"]), 800);
  const boxes = boxesOf(layout);
  for (const a of boxes) {
    for (const b of boxes) {
      const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
      assert.ok(a === b || apart, `${a.block.id} and ${b.block.id}`);
    }
  }
  const target = boxes.find(({ block }) => block.id === "decoder0.a");
  const end = layout.links[0].at(-1);
  assert.deepEqual([end.x, end.y], [target.x + target.width / 2, target.y]);
});

test("bars stand within their columns", () => {
  for (const column of [1, 3, 4, 12, 80]) {
    const { left, width } = barPlace(2, column);
    assert.ok(left >= 2 * column && left + width <= 3 * column && width > 0, `${column}`);
  }
});

test("bars of a derivation are numbered where there is room, and scroll where there is none", () => {
  const picture = (count) => ({
    count, labels: features(count).labels, theme: { font: "sans-serif" },
    rows: [{ texts: [], values: Float32Array.from({ length: count }, (_, i) => i - 2), range: rangeOf(Float32Array.of(-2, 5)) }],
  });
  assert.equal(measureBars(picture(8), 800).numbers, "level");
  assert.equal(measureBars(picture(16), 260).numbers, "upright");
  const many = measureBars(picture(512), 400);
  assert.equal(many.numbers, "none");
  assert.ok(many.width > 400);
  assert.deepEqual(rangeOf(Float32Array.of(NaN, 3, -Infinity)), { low: 0, high: 3, span: 3 });
  assert.deepEqual(rangeOf(Float32Array.of(2, -3.4e38), [0, 1]), { low: 0, high: 2, span: 2 }); // blocked
  assert.deepEqual([0.12345, -123.4, 0.00012].map(barNumber), ["0.123", "−123", "1.2e−4"]);
});

test("the strongest lines are drawn, all of a token's where one is pointed at", () => {
  const [rows, columns] = [60, 60];
  const values = Float32Array.from({ length: rows * columns }, (_, i) => ((i % 97) + 1) / 100);
  const picture = {
    heads: [{ head: 0, values, blocked: null }], rows, columns, threshold: 0.5,
    rowAxis: tokens(rows), columnAxis: tokens(columns, "key"), emptyRows: null,
  };
  const { list, text } = strongestLines(picture);
  const drawn = new Set(list.map(({ row, column }) => row * columns + column));
  const least = Math.min(...list.map(({ weight }) => weight));
  assert.ok(list.length <= 1200 && list.length > 1000, `${list.length}`);
  assert.match(text, /^the strongest 1,\d{3} of 1,\d{3} lines of weight 0.5 and more$/);
  assert.ok(values.every((weight, i) => weight <= least + 0.011 || drawn.has(i)));
  const ofToken = linesOfToken(picture, { side: "query", index: 3 }).list;
  assert.equal(ofToken.length, values.subarray(180, 240).filter((weight) => weight >= 0.5).length);
});
