import type { Axis, PackedArray } from "../types.d.ts";

/** `kind` "seen": any cell may be marked; "most": one in each row; with `one_row` only `row` is asked for. */
export interface ExpectationHeader {
  key: string;
  seq: number;
  scope: string;
  kind: "seen" | "most";
  row: number;
  one_row: boolean;
  rows: Axis;
  columns: Axis;
  arrays: Record<string, PackedArray>;
}
