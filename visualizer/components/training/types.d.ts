import type { Bar } from "../progress/types.d.ts";
import type { PackedArray } from "../types.d.ts";

/** One training at one moment. */
export interface SideHeader {
  name: string;
  numbers: [string, string][];
  note: string;
  asked: string;
  answer: [string, boolean][];
  joint: [string, string];
}

export interface TrainingHeader {
  key: string;
  address: string;
  bar: Bar | null;
  sides: SideHeader[];
  n_steps: number;
  guessing: number;
  moment: number | null;
  arrays: Record<string, PackedArray>;
}

/** The values of a curve by steps. */
export interface Curve {
  name: string;
  steps: ArrayLike<number>;
  values: ArrayLike<number>;
}

/** Where the axes end, and what is marked. */
export interface Axes {
  nSteps: number;
  top: number;
  moment: number | null;
  level: number | null;
}
