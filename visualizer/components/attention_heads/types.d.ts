import type { Axis, LayersHeader, PackedArray, Plane, Theme } from "../types.d.ts";

/** `selected` is a query and a key; a path brings one head out among the others, or shows it alone beside the overview. */
export interface HeadsHeader extends LayersHeader {
  blocked_by: string[];
  selected: [number, number] | null;
  light: "" | "head" | "map";
}

export type Side = "query" | "key";

/** A token of one side. */
export interface Place {
  side: Side;
  index: number;
}

/** The lines of some heads: a line of the weight `largest` is opaque, one of less than `threshold` is not drawn. */
export interface LinesHeader {
  heads: (Plane & { head: number; values: Float32Array; dtype: PackedArray["dtype"] })[];
  rows: number;
  columns: number;
  rowAxis: Axis;
  columnAxis: Axis;
  theme: Theme;
  largest: number;
  threshold: number;
  pinned: string;
  selectedQuery: number;
  title: string;
}

/** The same, with the rows that have no key in any head. */
export interface LinesPicture extends LinesHeader {
  emptyRows: Uint8Array | null;
}

/** Lines between tokens, with what is said of them; `order` is the place of the head among those shown. */
export interface Lines {
  list: { order: number; row: number; column: number; weight: number }[];
  text: string;
}
