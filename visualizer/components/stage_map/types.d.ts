import type { Point } from "../types.d.ts";

/** A stage as Python sends it: its path, from that of its block where it begins with a dot, its title, role, shape,
 *  whether it is a detail, its label where that is not the title, and the paths of others that are the same tensor. */
export type StageRow = [string, string, string?, string?, number?, string?, string[]?];

/** A part of the model that is drawn as one box; `telling` is the stage that it opens. No wire leads to one apart. */
export interface Block {
  id: string;
  label: string;
  role: string;
  telling: string;
  apart: boolean;
  stages: StageRow[];
}

/** Residuals are pairs of blocks: from the output of the first into the second, which adds it. */
export interface Layer {
  id: string;
  label: string;
  blocks: Block[];
  residuals: [string, string][];
}

export interface Track {
  name: string;
  title: string;
  inputs: Block | null;
  layers: Layer[];
  end: Block | null;
}

export interface Model {
  tracks: Track[];
  output: Block | null;
  links: [string, string][];
}

export interface MapHeader {
  key: string;
  seq: number;
  model: Model;
  current: string;
  verdicts: Record<string, boolean>;
  with_stages: boolean;
}

/** A stage with where it is. */
export interface PlacedStage {
  path: string;
  title: string;
  role: string;
  shape: string;
  isDetail: boolean;
  label: string;
  also: string[];
  block: Block;
  track: Track | null;
  layer: Layer | null;
}

export type Form = "labelled" | "pills" | "closed" | "slim";

/** What stands in a row of a track: a block, or a layer. */
export type Item = { form: Form; width: number } & ({ block: Block; layer?: undefined } | { layer: Layer; block?: undefined });

export interface BlockBox {
  block: Block;
  form: Form;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The frame of a layer, and the height of the wire through it. */
export interface Frame {
  x: number;
  y: number;
  width: number;
  height: number;
  wire: number;
  label?: string;
}

/** A piece of the residual stream; a plain one has no arrow head. */
export interface Wire {
  x1: number;
  x2: number;
  y: number;
  plain?: boolean;
}

export interface PlacedLayer {
  layer: Layer;
  form: Form;
  frame: Frame | null;
  boxes: BlockBox[];
  wires: Wire[];
  residuals: { branch: Point; points: Point[] }[];
}

export interface PlacedTrack {
  track: Track;
  wire: number;
  top: number;
  layers: PlacedLayer[];
  boxes: BlockBox[];
  wires: Wire[];
  right: number;
}

export interface MapLayout {
  tracks: PlacedTrack[];
  links: Point[][];
  width: number;
  height: number;
}
