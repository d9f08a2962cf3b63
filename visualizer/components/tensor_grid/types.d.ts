import type { Axis, Limits, Matrix, PackedArray, PaletteName } from "../types.d.ts";

/** What Python says of a panel; its axes are numbers of those in the header. */
export interface Panel {
  name: string;
  title: string;
  subtitle: string;
  axes_in_words: string;
  rows: number;
  columns: number;
  role: string;
  palette: PaletteName;
  bounds: number[];
  blocked_by: string[];
  operator: string;
  hint: string;
}

/** The panels; `selected` is a panel's name with a row and a column. */
export interface TensorHeader {
  key: string;
  layout: "row" | "wrap";
  selected: [string, number, number] | null;
  light: "" | "cell" | "row" | "column";
  looked_up: number;
  above: number;
  panels: Panel[];
  axes: Axis[];
  arrays: Record<string, PackedArray>;
}

/** A panel on a line of an equation: the room that its operator, its title and its labels take. */
export interface Piece {
  index: number;
  matrix: Matrix;
  operator: number;
  least: number;
  left: number;
}

export interface PanelLimits extends Limits {
  labelled: boolean;
}

/** A cell of one of the panels. */
export interface PanelCell {
  index: number;
  row: number;
  column: number;
}
