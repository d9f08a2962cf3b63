import type { Theme } from "../types.d.ts";
import type { measureBars } from "./bars.js";

/** A row of bars: `texts` are its values as they are written where they have to add up. */
export interface Row {
  label: string;
  role: string;
  operator: string;
  texts: string[];
  values: Float32Array;
  range: { low: number; high: number; span: number };
}

/** What the canvas shows; `focus` is the element that the number belongs to. */
export interface BarPicture {
  rows: Row[];
  blocked: ArrayLike<number>;
  labels: string[];
  sequence: string | null;
  focus: number | null;
  count: number;
  active: number | null;
  theme: Theme;
  sizes: ReturnType<typeof measureBars>;
}
