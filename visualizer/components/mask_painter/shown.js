/** @import { PackedArray } from "../types.d.ts" */
/** @import { Beside, Content, PainterHeader } from "./types.d.ts" */

import { rowsWithoutKey } from "../shared/mask_planes.js";
import { floats } from "../shared/payload.js";
import { countBlocked, openCells, sameCells, unpackBits } from "./cells.js";
import { blockedBits, countsOf } from "./reasons.js";

/**
 * Python's message as it is drawn: `cells` is its painting, `bits` what blocks every cell together, `dtype` how exact the weights
 * are, `weighed` the painting that they are under, `title` what they are of, `found` the cells of each finding.
 * @param {PainterHeader} content
 */
export function readContent(content) {
  const { rows, columns, masks, reasons, arrays, weights_title: title } = content;
  const size = { rows: rows.labels.length, columns: columns.labels.length };
  /** @type {Uint8Array} */
  const cells = unpackBits(bytesOf(arrays.painted), size.rows * size.columns);
  const others = bytesOf(arrays.others);
  const found = foundCells(content, cells.length);
  return {
    axes: { rowAxis: rows, columnAxis: columns },
    size,
    masks,
    reasons,
    others,
    cells,
    bits: blockedBits(cells, others, reasons),
    weights: arrays.weights ? floats(arrays.weights) : null,
    dtype: arrays.weights?.dtype,
    weighed: cells,
    title,
    findings: content.findings.map((finding, i) => ({ ...finding, count: countBlocked(found[i]) })),
    found,
  };
}

/** @param {PackedArray} array */
function bytesOf({ data }) {
  return /** @type {Uint8Array} */ (data);
}

/** The cells of each finding. @param {PainterHeader} content @param {number} count */
function foundCells({ findings, arrays }, count) {
  const stride = arrays.found?.shape[1];
  return findings.map((_, i) => unpackBits(bytesOf(arrays.found).subarray(i * stride, (i + 1) * stride), count));
}

/** The same with the weights under another painting.
 *  @param {Content} given @param {Float32Array | null} weights @param {Content["dtype"]} dtype @param {Uint8Array} cells */
export function withWeights(given, weights, dtype, cells) {
  return { ...given, weights, dtype, weighed: cells, bits: blockedBits(cells, given.others, given.reasons) };
}

/** The masks beside the painting, which are replaced and brought back together. @param {Beside} given */
export function besideOf({ masks, others, reasons }) {
  return { masks, others, reasons };
}

/** The same with the painting as the only mask. @param {Beside} given */
export function withoutOthers({ masks, others, reasons }) {
  return { masks, others: openCells(others.length), reasons: reasons.slice(-1) };
}

/**
 * The screen while these cells are painted: {axes, size, reasons, weights, findings} as given, the `bits` of
 * every cell, what follows from them, and `answered`: the bits that the weights are under. `isPending` says that the
 * painting is newer than those, `isUnjudged` that it is newer than the findings.
 * @param {Uint8Array} cells @param {Content} given
 */
export function shownOf(cells, given) {
  const { axes, size, reasons, weights, dtype, findings } = given;
  const bits = blockedBits(cells, given.others, reasons);
  return {
    axes,
    size,
    reasons,
    weights,
    dtype,
    findings,
    bits,
    get counts() {
      return countsOf(bits, reasons);
    },
    emptyRows: rowsWithoutKey(bits, size.rows, size.columns),
    answered: given.bits,
    isPending: !sameCells(cells, given.weighed),
    isUnjudged: !sameCells(cells, given.cells),
  };
}
