import type { Axis, Cell, Geometry, PackedArray, Point, Scale, Theme } from "../types.d.ts";
import type { readContent, shownOf } from "./shown.js";

/** A mask that blocks cells; bit i of a cell's number is that of the reason i. */
export interface Reason {
  name: string;
  label: string;
}

/** What looks wrong with a mask. */
export interface Finding {
  title: string;
  severity: "error" | "warning" | "note";
  why: string;
  mend: string;
  can_mend: boolean;
}

/** The same with the number of its cells. */
export interface CountedFinding extends Finding {
  count: number;
}

/** Every head that a stroke can change: `painting` is the address of its numbers, with `mark` instead of the cells. */
export interface LiveHeads {
  at_rest: string;
  painting: string;
  mark: string;
  names: string[][];
  first: number;
  layer: number;
  head: number;
}

export interface PainterHeader {
  key: string;
  seq: number;
  scope: string;
  masks: Record<string, string> | null;
  weights_title: string;
  all_clear: string;
  selected: [number, number] | null;
  live: LiveHeads | null;
  rows: Axis;
  columns: Axis;
  reasons: Reason[];
  findings: Finding[];
  arrays: Record<string, PackedArray>;
}

export type Content = ReturnType<typeof readContent>;
export type Shown = ReturnType<typeof shownOf>;

export interface Size {
  rows: number;
  columns: number;
}

/** The other masks in force; `masks` is how Python names them and the painting. */
export interface Beside {
  masks: Record<string, string> | null;
  others: Uint8Array;
  reasons: Reason[];
}

/** A step of the painting's past, and the same one bit a cell. */
export interface Step {
  cells: Uint8Array;
  beside: Beside | null;
}

export interface PackedStep {
  bits: Uint8Array;
  beside: Beside | null;
}

/** How the cells are drawn. */
export interface CellLook {
  geometry: Geometry;
  theme: Theme;
  pixelRatio: number;
  reasons: Reason[];
  weights: Float32Array | null;
  scale: Scale | null;
}

/** The rows without a key and the cells of a finding. */
export interface Marks {
  emptyRows: Uint8Array | null;
  found: Uint8Array | null;
}

/** Who hears of what a person does on the cells; a place with row or column -1 is a whole column or row. */
export interface SurfaceHost {
  isPainting: boolean;
  cursor: Cell;
  press(place: Cell, isRectangle: boolean): void;
  drag(place: Cell, at?: Point | null): void;
  release(): void;
  cancel(): void;
  point(place: Cell, at: Point): void;
  leave(): void;
  choose(place: Cell): void;
  toggleLine(line: Cell): void;
  move(rowStep: number, columnStep: number, isPainting: boolean): void;
  space(event: KeyboardEvent): void;
}
