/** Numbers on their way to pixels and to text: unpacking, scales, pooling, masks. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { drawMatrix, makeReady, paintPixels, paintSquare, poolMatrix } from "../../visualizer/components/marks/cells.js";
import { inkOn, makeScale, pixelFor, usualCurve, weightScale } from "../../visualizer/components/marks/scale.js";
import { drawWhenNear } from "../../visualizer/components/shared/near.js";
import { MaskPlanes } from "../../visualizer/components/shared/mask_planes.js";
import { floats, formatNumber, unpack, wholeNumber } from "../../visualizer/components/shared/payload.js";

/** A theme whose scales are the greys 0 to 255, so that a pixel's red says which step it is. */
const GREYS = Array.from({ length: 256 }, (_, step) => step.toString(16).padStart(2, "0").repeat(3)).join("");
const THEME = {
  name: "greys", sequential: GREYS, diverging: GREYS, not_a_number: "#ff0000", infinite: "#0000ff", background: "#ffffff",
};
const stepOf = (pixel) => pixel & 255;

/** Bytes as packing.py lays them out, shifted in their buffer as a message may be. */
function packed(header, arrays, shift) {
  const described = {};
  let offset = 0;
  for (const [name, { data, dtype, scale }] of Object.entries(arrays)) {
    described[name] = { dtype, shape: [data.length], offset, ...(scale ? { scale } : {}) };
    offset += Math.ceil(data.byteLength / 8) * 8;
  }
  let text = JSON.stringify({ ...header, arrays: described });
  text = text.padEnd(text.length + ((8 - ((4 + text.length) % 8)) % 8));
  const bytes = new Uint8Array(new ArrayBuffer(shift + 4 + text.length + offset), shift);
  new DataView(bytes.buffer, shift).setUint32(0, text.length, true);
  bytes.set(new TextEncoder().encode(text), 4);
  for (const [name, { data }] of Object.entries(arrays)) {
    bytes.set(new Uint8Array(data.buffer), 4 + text.length + described[name].offset);
  }
  return bytes;
}

test("arrays are read wherever in its buffer a message begins", () => {
  for (const shift of [0, 3, 8]) {
    const content = packed({ key: "k" }, {
      odd: { data: Uint8Array.of(1, 2, 3), dtype: "u1" },
      weights: { data: Float32Array.of(0.25, -1), dtype: "f4" },
    }, shift);
    const { key, arrays } = unpack(content);
    assert.equal(key, "k");
    assert.deepEqual([...arrays.odd.data], [1, 2, 3]);
    assert.deepEqual([...floats(arrays.weights)], [0.25, -1]);
  }
});

test("float16 and steps become the numbers that they stand for", () => {
  const half = { data: Uint16Array.of(0x3c00, 0xc000, 0x7c00, 0x0001, 0x7e00), dtype: "f2", scale: 1, power: 1 };
  assert.deepEqual([...floats(half)], [1, -2, Infinity, 2 ** -24, NaN]);
  const steps = { data: Uint8Array.of(0, 51, 255), dtype: "u1", scale: 1 / 255, power: 1 };
  assert.deepEqual([...floats(steps, 1)].map((value) => value.toFixed(6)), ["0.200000", "1.000000"]);
  const roots = { ...steps, scale: 1 / 255 ** 2, power: 2 };
  assert.deepEqual([...floats(roots)].map((value) => value.toFixed(6)), ["0.000000", "0.040000", "1.000000"]);
});

test("a number is written with the digits that its precision carries", () => {
  assert.deepEqual(
    [0, 0.12345, -1234567, 1e-5, NaN, -Infinity].map((value) => formatNumber(value)),
    ["0", "0.1235", "−1.235e+6", "1.000e−5", "NaN", "−∞"],
  );
  assert.deepEqual([0.12345, 0.0023, 0].map((value) => formatNumber(value, "u1")), ["≈0.12", "≈0.002", "≈0.00"]);
  assert.equal(formatNumber(-0.12345, "f2"), "−0.123");
});

test("a whole number is written without decimals where it is short", () => {
  assert.deepEqual([0, 3, -2, 49152, 123456].map(wholeNumber), ["0", "3", "−2", "49152", "1e+5"]);
});

test("a scale runs from its lowest to its highest number and no further", () => {
  const scale = makeScale(THEME, "sequential", [-1, 1]);
  assert.deepEqual([-1, 0, 1, 9].map((value) => stepOf(pixelFor(value, scale))), [0, 128, 255, 255]);
  assert.equal(pixelFor(NaN, scale), 0xff0000ff);
  assert.equal(pixelFor(-Infinity, scale), 0xffff0000);
});

test("the root curve lifts small numbers", () => {
  const [linear, root] = ["linear", "root"].map((curve) => makeScale(THEME, "sequential", [0, 1], curve));
  assert.equal(stepOf(pixelFor(0.01, linear)), 3);
  assert.equal(stepOf(pixelFor(0.01, root)), Math.round(255 * 0.1));
  assert.deepEqual([usualCurve(47), usualCurve(48)], ["linear", "root"]);
});

test("the scale of weights ends at 1, or at the largest where all are small", () => {
  assert.deepEqual([0.6, 0.3, 0].map((largest) => weightScale(THEME, largest, "linear").high), [1, 0.3, 1]);
});

test("every pixel is that of its number, and a blocked cell has none", () => {
  const scale = makeScale(THEME, "sequential", [0, 1]);
  const values = Float32Array.of(0, 0.5, 1, NaN, 2, 0.25);
  const pixels = new Uint32Array(6);
  paintPixels(pixels, values, Uint8Array.of(0, 0, 0, 0, 0, 2), scale);
  assert.deepEqual([...pixels.slice(0, 5)], [...values.slice(0, 5)].map((value) => pixelFor(value, scale)));
  assert.equal(pixels[5], 0);
});

test("a smaller picture keeps the number of largest size, and is blocked where all under it is", () => {
  const values = Float32Array.of(0, -5, 1, 2, 3, 4, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9);
  const blocked = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0);
  const pooled = poolMatrix({ values, blocked, rows: 4, columns: 4 }, 2, 2);
  assert.deepEqual([...pooled.values], [-5, 2, 0, 9]);
  assert.deepEqual([...pooled.blocked], [0, 0, 1, 0]);
});

/** The pixels that a matrix is drawn in, where it may be so large. */
function drawn(matrix, size) {
  let pixels = null;
  const context = {
    createImageData: (width, height) => ({ data: new Uint8ClampedArray(4 * width * height) }),
    putImageData: ({ data }) => (pixels = [...new Uint32Array(data.buffer)]),
  };
  const scale = makeScale(THEME, "sequential", [0, 0.8]);
  drawMatrix({ getContext: () => context }, matrix, scale, size, size);
  return pixels;
}

test("numbers that came in steps are drawn without being decoded, and look the same", () => {
  const kinds = [["u1", Uint8Array, 255, 1], ["u1", Uint8Array, 255, 2], ["u2", Uint16Array, 65535, 1]];
  for (const [dtype, Steps, most, power] of kinds) {
    const steps = { data: Steps.from({ length: 64 }, (_, i) => (i * 3571) % (most + 1)), scale: 1 / most ** power, power };
    const blocked = Uint8Array.from({ length: 64 }, (_, i) => (i % 8 > i / 8 ? 1 : 0));
    const shape = { rows: 8, columns: 8, blocked };
    const undecoded = { ...shape, steps, get values() { throw new Error("decoded"); } };
    for (const size of [8, 3]) {
      const decoded = { ...shape, values: floats({ ...steps, dtype }) };
      assert.deepEqual(drawn(undecoded, size), drawn(decoded, size), `${dtype}, power ${power}, in ${size} pixels`);
    }
  }
});

test("a square of a larger picture has the pixels of its matrix, one cell in several or several cells in one", () => {
  const values = Float32Array.from({ length: 16 }, (_, i) => i / 20);
  const matrix = { rows: 4, columns: 4, values, blocked: Uint8Array.from(values, (_, i) => (i === 5 ? 1 : 0)) };
  for (const size of [2, 4, 6, 8]) {
    const [left, top, stride, height] = [1, 2, size + 3, size + 4];
    const pixels = new Uint32Array(stride * height).fill(7);
    paintSquare(pixels, stride, { left, top, size }, matrix, makeScale(THEME, "sequential", [0, 0.8]));
    const cells = drawn(matrix, size);
    const wide = Math.min(size, 4);
    pixels.forEach((pixel, i) => {
      const [x, y] = [(i % stride) - left, Math.floor(i / stride) - top];
      const isInside = x >= 0 && x < size && y >= 0 && y < size;
      const cell = Math.floor((y * wide) / size) * wide + Math.floor((x * wide) / size);
      assert.equal(pixel, isInside ? cells[cell] : 7, `${x}, ${y} of ${size}`);
    });
  }
});

test("steps are made smaller once for each mask and size, wherever they are drawn", () => {
  const data = Uint8Array.from({ length: 64 }, (_, i) => 3 * i);
  const over = (blocked) => ({ rows: 8, columns: 8, blocked, steps: { data: data.subarray(0), scale: 1 / 255, power: 1 } });
  makeReady(over(null), { width: 3, height: 3 });
  const ready = drawn({ ...over(null), steps: { ...over(null).steps, data: data.slice() } }, 3);
  data.fill(0); // what is read again would be other numbers
  assert.deepEqual(drawn(over(null), 3), ready);
  assert.notDeepEqual(drawn(over(new Uint8Array(64)), 3), ready);
});

test("ink is light on dark and dark on light", () => {
  assert.notEqual(inkOn(0xff000000), inkOn(0xffffffff));
});

test("one plane of a mask may serve every layer and every head", () => {
  const array = { shape: [1, 2, 2, 2], data: Uint8Array.of(0, 1, 0, 0, 1, 1, 0, 0) };
  const masks = new MaskPlanes(array);
  assert.deepEqual([...masks.at(3, 1).blocked], [1, 1, 0, 0]);
  assert.deepEqual([...masks.at(3, 1).emptyRows], [1, 0]);
  assert.equal(masks.at(3, 1), masks.at(0, 1), "what is drawn of a plane can be kept");
  assert.equal(masks.at(0, 0).emptyRows, null);
  assert.ok(masks.anyIn(0, 2));
  assert.deepEqual(new MaskPlanes(undefined).at(0, 0), { blocked: null, emptyRows: null });
});

test("planes of a mask that is the same as before are kept, with what is drawn of them", () => {
  const array = () => ({ shape: [1, 1, 2, 2], data: Uint8Array.of(0, 1, 0, 0) });
  const before = MaskPlanes.of(array(), undefined);
  assert.equal(MaskPlanes.of(array(), before), before);
  const other = { shape: [1, 1, 2, 2], data: Uint8Array.of(0, 0, 0, 0) };
  assert.notEqual(MaskPlanes.of(other, before), before);
  assert.notEqual(MaskPlanes.of({ ...array(), shape: [1, 1, 1, 4] }, before), before);
  assert.notEqual(MaskPlanes.of(undefined, before), before);
});

test("what is seen is drawn at once, what is near soon, and what is far when it comes near, once", async () => {
  const reports = {};
  globalThis.window = Object.assign(new EventTarget(), { innerHeight: 700 });
  globalThis.matchMedia = () => new EventTarget();
  globalThis.IntersectionObserver = class {
    constructor(callback, options) {
      reports[options ? "near" : "seen"] = (target, isIntersecting) => callback([{ target, isIntersecting }]);
    }

    observe() {}
  };
  const at = (top) => ({ isConnected: true, getBoundingClientRect: () => ({ top, bottom: top + 100 }) });
  const [seen, below, painted] = [at(10), at(900), []];
  drawWhenNear(seen, () => painted.push("seen"));
  drawWhenNear(below, () => painted.push("below, old"));
  drawWhenNear(below, () => painted.push("below"));
  await null; // those that are new are looked at together
  assert.deepEqual(painted, ["seen"]);
  reports.near(below, true);
  reports.near(below, true);
  assert.deepEqual(painted, ["seen", "below"]);
  drawWhenNear(below, () => painted.push("near, old"));
  drawWhenNear(below, () => painted.push("near"));
  assert.equal(painted.length, 2, "what is seen goes before it");
  await new Promise((done) => setTimeout(done, 5));
  assert.deepEqual(painted.splice(2), ["near"]);
  for (const where of ["seen", "near"]) reports[where](seen, false);
  drawWhenNear(seen, () => painted.push("seen again"));
  assert.equal(painted.length, 2);
  reports.seen(seen, true);
  assert.equal(painted.at(-1), "seen again");
  const [lower, gone] = [at(5000), { ...at(6000), isConnected: false }];
  drawWhenNear(lower, () => painted.push("on paper"));
  drawWhenNear(gone, () => painted.push("no more on the page"));
  window.dispatchEvent(new Event("beforeprint"));
  window.dispatchEvent(new Event("beforeprint"));
  assert.deepEqual(painted.slice(-2), ["seen again", "on paper"]);
});
