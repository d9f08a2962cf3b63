import type { Axis, PackedArray, Theme } from "../types.d.ts";
import type { layoutWay } from "./layout.js";

export interface Part {
  kind: string;
  label: string;
  path: string;
  head: number | null;
}

/** The stream after some parts were added to it; `keys` are what the heads read, if they read. */
export interface Stop {
  title: string;
  path: string;
  parts: number[];
  keys: Axis | null;
  layer: number | null;
}

export interface WayHeader {
  key: string;
  seq: number;
  selected: number;
  layer: number;
  tokens: Axis;
  first: number;
  parts: Part[];
  stops: Stop[];
  vocabulary: Record<string, string>;
  end: [string, string];
  expects_next: boolean;
  light: string | number;
  arrays: Record<string, PackedArray>;
}

export interface Answer {
  token: string;
  probability: number;
}

/** The numbers of one token, by part and by stop. */
export interface WayNumbers {
  norm(part: number): number;
  share(part: number): number;
  sum(stop: number): number;
  stream(stop: number): number;
  logit: ((part: number) => number) | null;
  largestStream: number;
  largestPart: number;
  weights(stop: number, head: number): Float32Array;
  likely(stop: number): Answer[] | null;
}

/** What is drawn. */
export interface WayView extends Pick<WayHeader, "stops" | "parts" | "end"> {
  layout: ReturnType<typeof layoutWay>;
  theme: Theme;
  numbers: WayNumbers;
}

export interface WayBox {
  x: number;
  y: number;
  width: number;
}

/** The bar of a part, in the box of its stop. */
export interface Bar {
  part: number;
  norm: number;
  x: number;
  width: number;
  top: number;
  size: number;
  reach: number;
  box: { x: number; width: number };
}

/** What a click or the pointer means: a part, a stop, a layer, or the end. */
export interface Target {
  part?: number;
  stop?: number;
  layer?: number;
  end?: boolean;
}
