/** A matrix in words, row by row. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { describeRows } from "../../visualizer/components/shared/rows.js";

const tokens = (name, labels) => ({ name, labels, sequence: "source" });
const numbers = (count) => Array.from({ length: count }, (_, index) => String(index));

test("every number of a short row is said, and what is blocked", () => {
  const matrix = {
    values: Float32Array.from([1, 0, 0.25, 0.75]),
    rows: 2,
    columns: 2,
    rowAxis: tokens("query", ["the", "cat"]),
    columnAxis: tokens("key", ["the", "cat"]),
    blocked: Uint8Array.from([0, 1, 0, 0]),
    emptyRows: null,
    dtype: "f4",
  };
  assert.deepEqual(describeRows(matrix), ["query 0 the: the 1.000, cat blocked", "query 1 cat: the 0.2500, cat 0.7500"]);
  assert.equal(describeRows({ ...matrix, emptyRows: Uint8Array.from([1, 0]) })[0], "query 0 the: no key left");
});

test("of a long row the largest are said, of a long matrix the first rows", () => {
  const [rows, columns] = [40, 20];
  const values = new Float32Array(rows * columns);
  values[3] = -2;
  values[7] = 1;
  const blocked = new Uint8Array(rows * columns);
  blocked[19] = 1;
  const matrix = {
    values,
    rows,
    columns,
    rowAxis: { name: "token", labels: numbers(rows), sequence: null },
    columnAxis: { name: "feature", labels: numbers(columns), sequence: null },
    blocked,
    emptyRows: null,
    dtype: "f4",
  };
  const texts = describeRows(matrix);
  assert.equal(texts.length, 33);
  assert.equal(
    texts[0], "token 0: −2.000 at feature 3, 1.000 at feature 7, 0 at feature 0, 16 nearer to zero, 1 blocked");
  assert.equal(texts.at(-1), "and 8 more rows: the arrow keys read their cells");
});
