import type { Axis, PackedArray } from "../types.d.ts";

/** All tokens without a bar of their own; `share` is what a token is drawn with, after temperature and the like. */
export interface Tail {
  count: number;
  probability: number;
  share: number;
}

export interface Bar {
  label: string;
  rank: number;
  probability: number;
  share: number;
  chosen: boolean;
  never: boolean;
}

/** One token chosen; the rows of K and V that it computed, and those of the source. */
export interface Step {
  bars: Bar[];
  tail: Tail;
  sentence: string;
  kept: boolean;
  computed: number;
  from_cache: number;
  source_computed: number;
}

/** `own`: the attention is over the tokens so far; else over a source, whose keys `keys_blocked` hides. */
export interface StepsHeader {
  key: string;
  seq: number;
  step: number;
  row_layer: number;
  labels: string[];
  n_prompt: number;
  ended: boolean;
  steps: Step[];
  keys: Axis;
  heads: string[];
  own: boolean;
  title: string;
  blocked_by: string[];
  sampled: boolean;
  cached: boolean;
  arrays: Record<"weights" | "blocked" | "keys_blocked", PackedArray>;
}

/** A hypothesis of a beam search. */
export interface TreeNode {
  parent: number | null;
  label: string;
  text: string[];
  depth: number;
  probability: number;
  total: number;
  score: number;
  kept: boolean;
  finished: boolean;
}

export interface TreeHeader {
  key: string;
  seq: number;
  node: number;
  nodes: TreeNode[];
  best: number[];
}
