/** Cells that are painted: lines, rectangles, bits, undo. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  endsOfLine, invertedCells, lineIsBlocked, openCells, packBits, sameCells, unpackBits, withLine, withRectangle,
} from "../../visualizer/components/mask_painter/cells.js";
import { toBase64 } from "../../visualizer/components/shared/payload.js";
import { Painting } from "../../visualizer/components/mask_painter/painting.js";
import { blockedBits, countsOf } from "../../visualizer/components/mask_painter/reasons.js";

const at = (row, column) => ({ row, column });

/** Cells as lines of text, "#" where one is blocked. */
const drawn = (cells, size) =>
  Array.from({ length: size }, (_, row) => [...cells.subarray(row * size, (row + 1) * size)].map((cell) => ".#"[cell]).join(""));

test("a line has no gap, however fast the pointer was", () => {
  assert.deepEqual(drawn(withLine(openCells(16), 4, at(0, 0), at(3, 1), 1), 4), ["#...", "#...", ".#..", ".#.."]);
  const steep = withLine(openCells(81), 9, at(8, 7), at(0, 0), 1);
  for (let row = 0; row < 9; row++) assert.ok(drawn(steep, 9)[row].includes("#"));
});

test("a rectangle has the same cells from any of its corners", () => {
  const corners = [[at(1, 0), at(2, 2)], [at(2, 2), at(1, 0)], [at(1, 2), at(2, 0)]];
  for (const [from, to] of corners) {
    assert.deepEqual(drawn(withRectangle(openCells(16), 4, from, to, 1), 4), ["....", "###.", "###.", "...."]);
  }
});

test("a label stands for its whole row or column", () => {
  const column = withRectangle(openCells(9), 3, ...endsOfLine(at(-1, 1), 3, 3), 1);
  assert.deepEqual(drawn(column, 3), [".#.", ".#.", ".#."]);
  assert.ok(lineIsBlocked(column, 3, at(-1, 1)));
  assert.ok(!lineIsBlocked(column, 3, at(1, -1)));
});

test("bits come back as the cells that they were", () => {
  const cells = Uint8Array.from({ length: 25 }, (_, i) => (i % 3 === 0 ? 1 : 0));
  assert.ok(sameCells(unpackBits(packBits(cells), 25), cells));
  assert.equal(toBase64(packBits(Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 1))), "gQ==");
  assert.ok(sameCells(invertedCells(invertedCells(cells)), cells));
});

test("masks that were replaced come back with the cells beside them, as one step, and go again", () => {
  const [before, meanwhile, after] = ["padding", "", "k <= q"].map((masks) => (
    { masks, others: Uint8Array.of(0, masks === "padding" ? 2 : 0, 0, 0), reasons: [] }
  ));
  const painting = new Painting();
  painting.startAnew(2, 2, openCells(4), before);
  painting.become(Uint8Array.of(0, 0, 1, 0));
  painting.replace(meanwhile);
  assert.deepEqual(drawn(painting.cells, 2), [".#", "#."]);
  painting.receive(Uint8Array.of(1, 1, 0, 0), after);
  assert.equal(painting.step("undo").beside, before);
  assert.deepEqual(drawn(painting.cells, 2), ["..", "#."]);
  assert.equal(painting.step("undo").beside, null, "a stroke brings back no masks");
  painting.step("redo");
  assert.equal(painting.step("redo").beside, after);
  assert.deepEqual(drawn(painting.cells, 2), ["##", ".."]);
  painting.receive(openCells(4), { ...before, reasons: [{ name: "padding", label: "padding" }] });
  assert.equal(painting.step("undo").beside, after, "also where Python replaced them");
});

test("a stroke can be given up, undone and done again", () => {
  const painting = new Painting();
  painting.startAnew(3, 3, openCells(9), { others: openCells(9) });
  painting.begin(at(0, 0), 1, false);
  painting.drag(at(0, 2));
  assert.deepEqual(drawn(painting.cells, 3)[0], "###");
  painting.giveUp();
  assert.deepEqual(drawn(painting.cells, 3)[0], "...");
  painting.begin(at(1, 1), 1, true);
  painting.drag(at(2, 2));
  assert.ok(painting.end().isChanged);
  assert.ok(painting.step("undo"));
  assert.deepEqual(drawn(painting.cells, 3), ["...", "...", "..."]);
  assert.ok(painting.step("redo"));
  assert.deepEqual(drawn(painting.cells, 3), ["...", ".##", ".##"]);
  assert.ok(!painting.step("redo"));
});

test("the painting is the last of the reasons that block a cell", () => {
  const reasons = [{ name: "causal" }, { name: "padding" }, { name: "custom" }];
  const bits = blockedBits(Uint8Array.of(1, 0, 1, 0), Uint8Array.of(1, 2, 0, 0), reasons);
  assert.deepEqual([...bits], [5, 2, 4, 0]);
  assert.deepEqual(countsOf(bits, reasons), [1, 1, 2]);
});
