/** @import { Header, Matrix, PackedArray } from "../types.d.ts" */

/** @type {Record<string, any>} */
const TYPED_ARRAYS = { f4: Float32Array, f2: Uint16Array, u1: Uint8Array, u2: Uint16Array, i4: Int32Array };

/**
 * Read what packing.py wrote: the header, with `arrays[name] = {data, dtype, shape, scale, power}`.
 * The data of a float16 array are its 16-bit patterns: read numbers with `floats`.
 * @param {Uint8Array} bytes
 * @returns {any}
 */
export function unpack(bytes) {
  // A typed array needs an aligned start, which the message it arrived in does not promise.
  const { header, arrays } = takenApart(bytes.byteOffset % 8 === 0 ? bytes : bytes.slice());
  for (const [name, entry] of Object.entries(header.arrays)) {
    const length = sizeOf(entry.shape);
    const data = new TYPED_ARRAYS[entry.dtype](arrays.buffer, arrays.byteOffset + entry.offset, length);
    header.arrays[name] = { data, dtype: entry.dtype, shape: entry.shape, scale: entry.scale ?? 1, power: entry.power ?? 1 };
  }
  return header;
}

/** The count of numbers of an array. @param {number[]} shape */
export function sizeOf(shape) {
  return shape.reduce((product, size) => product * size, 1);
}

/** The flags of an array of bytes; null where there is none.
 *  @param {PackedArray | undefined} array @returns {Uint8Array | null} */
export function flagsOf(array) {
  return /** @type {Uint8Array | null} */ (array?.data ?? null);
}

/** What packing.py wrote, as its header and the bytes of its arrays. @param {Uint8Array} bytes */
export function takenApart(bytes) {
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
  return { header: JSON.parse(new TextDecoder().decode(bytes.subarray(4, end))), arrays: bytes.subarray(end) };
}

/** The same put together again: arrays begin on a multiple of 8.
 *  @param {Header} header @param {Uint8Array} arrays */
export function packedAgain(header, arrays) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = Math.ceil((4 + text.length) / 8) * 8;
  const bytes = new Uint8Array(length + arrays.length).fill(32, 0, length);
  new DataView(bytes.buffer).setUint32(0, length - 4, true);
  bytes.set(text, 4);
  bytes.set(arrays, length);
  return bytes;
}

/** Bytes as base64 text. @param {Uint8Array} bytes */
export function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

/** The same bytes with some entries of the header changed. @param {Uint8Array} bytes @param {object} changes */
export function withHeader(bytes, changes) {
  const { header, arrays } = takenApart(bytes);
  return packedAgain({ ...header, ...changes }, arrays);
}

/** @type {Float32Array | undefined} */
let halfTable;

/** All 65,536 float16 numbers by bit pattern. */
function halfPrecisionTable() {
  if (halfTable) return halfTable;
  halfTable = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const sign = bits & 0x8000 ? -1 : 1;
    if (exponent === 31) halfTable[bits] = fraction ? NaN : sign * Infinity;
    else if (exponent === 0) halfTable[bits] = sign * fraction * 2 ** -24;
    else halfTable[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return halfTable;
}

/**
 * The numbers from `start` to `end` of an unpacked array as Float32Array: a view for float32, else a copy.
 * @param {PackedArray} array
 * @returns {Float32Array}
 */
export function floats(array, start = 0, end = array.data.length) {
  const part = array.data.subarray(start, end);
  if (array.dtype === "f4") return /** @type {Float32Array} */ (part);
  const numbers = new Float32Array(part.length);
  if (array.dtype === "f2") {
    const table = halfPrecisionTable();
    for (let i = 0; i < part.length; i++) numbers[i] = table[part[i]];
  } else {
    const { power, scale } = array; // each a loop of its own: to raise to a power takes ten times as long
    if (power === 1) for (let i = 0; i < part.length; i++) numbers[i] = part[i] * scale;
    else for (let i = 0; i < part.length; i++) numbers[i] = part[i] * part[i] * scale;
  }
  return numbers;
}

/** A number as text with only the digits that its precision carries. @param {number} value */
export function formatNumber(value, dtype = "f4") {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  if (dtype === "u1" || dtype === "u2") return `≈${withMinusSign(ofSteps(value, dtype === "u1" ? 2 : 4))}`;
  if (value === 0) return "0";
  const digits = dtype === "f2" ? 3 : 4;
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 10 ** 6) return withMinusSign(value.toExponential(digits - 1));
  return withMinusSign(value.toPrecision(digits).includes("e") ? String(Math.round(value)) : value.toPrecision(digits));
}

/** The digits of a number that came in steps; of 8-bit steps the first of a small number, where they are finer.
 *  @param {number} value @param {number} digits */
function ofSteps(value, digits) {
  const isSmall = digits === 2 && value > 0 && value < 0.01;
  return isSmall ? value.toPrecision(1) : value.toFixed(digits);
}

/** The number of a cell as text: exact where that is known. @param {Matrix} matrix @param {number} i */
export function cellText({ values, dtype, exact }, i) {
  const known = exact?.get(i);
  return known === undefined ? formatNumber(values[i], dtype) : formatNumber(known);
}

/** The same number text with a true minus sign. @param {string} text */
export function withMinusSign(text) {
  return text.replaceAll("-", "−");
}

/** A whole number without decimals, where it is short enough for a cell or a tick. @param {number} value */
export function wholeNumber(value) {
  return Math.abs(value) < 1e5 ? withMinusSign(String(value)) : shortNumber(value);
}

/** A number short enough for a cell or a tick: at most three digits. @param {number} value */
export function shortNumber(value) {
  if (!Number.isFinite(value)) return formatNumber(value);
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 10000 || size < 0.001) return withMinusSign(value.toExponential(0));
  if (size >= 100) return withMinusSign(value.toFixed(0));
  return withMinusSign(size >= 10 ? value.toFixed(1) : size < 0.1 ? value.toFixed(3) : value.toFixed(2));
}
