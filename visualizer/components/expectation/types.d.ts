import type { Axis, PackedArray, PaletteName } from "../types.d.ts";

/** What was computed, once it is revealed. */
export interface Computed {
  name: string;
  title: string;
  palette: PaletteName;
  bounds: number[];
  blocked_by: string[];
}

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
  computed: Computed | null;
  arrays: Record<string, PackedArray>;
}
