import type { Axis, PackedArray } from "../types.d.ts";

export interface Remark {
  text: string;
  warning: boolean;
}

/** What there is to say of a chart, and of the same where no key is left. */
export interface BarCell {
  remarks: Remark[];
  outcome: Remark;
}

export interface BarRow {
  title: string;
  code: string;
  note: string;
  cells: BarCell[];
}

export interface BarsHeader {
  key: string;
  columns: string[];
  keys: Axis;
  rows: BarRow[];
  arrays: Record<string, PackedArray>;
}

/** The weights of a chart; `top` is the number that its full height stands for. */
export interface Series {
  values: Float32Array;
  isBlocked(index: number): boolean;
  reference: Float32Array | null;
  top: number;
}

/** A bar: of which chart, and of which key. */
export interface BarPlace {
  cell: number;
  index: number;
}
