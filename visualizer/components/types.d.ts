/** What the modules hand each other. Nothing at run time: `tests/javascript` checks the types. */

import type { SvgPen } from "./marks/svg_pen.js";
import type { MatrixPanel } from "./shared/grid.js";

/** What a picture lives in: the app, a file, a notebook. It sets the variables `--hl-background`, `--hl-text`, ... */
export interface Host {
  colors: { dashes: number[][]; themes: Record<Theme["name"], Palette> };
  /** A person did something. */
  send(name: string, value: object): void;
  /** A person changed what is shown; the last value is the one that counts. */
  keep(name: string, value: object): void;
  /** The host has drawn the whole page anew. */
  pageIsDrawn?(): void;
  /** Have all of the page take on a look, where it can have several. */
  wear?(look: object): void;
}

/** What `render(root, bytes, host)` returns. */
export interface Drawn {
  isSaved: boolean;
  figureTitle: string;
  seen: object;
  update(bytes: Uint8Array): void;
  destroy(): void;
}

/** The colours of one theme, as `visualizer/colors.py` says them; a scale is one text of 256 times rrggbb. */
export interface Palette {
  roles: Record<string, string>;
  heads: string[];
  masks: Record<string, string>;
  sequential: string;
  sequential_neutral: string;
  diverging: string;
  hatch: string;
  hatch_ground: string;
  not_a_number: string;
  infinite: string;
  warning: string;
}

export type PaletteName = "sequential" | "sequential_neutral" | "diverging";

/** What a canvas needs to know of what is around it. */
export interface Theme extends Palette {
  name: "light" | "dark";
  background: string;
  text: string;
  font: string;
  dashes: number[][];
}

/** What the pictures use of a canvas' context: no more than what can be written as SVG too. */
export interface Pen extends Omit<Pick<CanvasRenderingContext2D, keyof SvgPen & keyof CanvasRenderingContext2D>, Narrowed> {
  canvas: { width: number; height: number };
  fill(): void;
  stroke(): void;
}
type Narrowed = "canvas" | "fill" | "stroke";

/** What came from Python: as `packing.py` packs it, with `arrays` by their names. Each picture says what it reads. */
export type Header = Record<string, any>;

/** The numbers of an address, asked for; and who takes them. */
export type Get = (address: string, signal?: AbortSignal) => Promise<Header>;
export type Take = (answer: Header) => void;

export type Numbers = Float32Array | Uint16Array | Uint8Array | Int32Array;

/** An array as it travels: float16 as bit patterns, steps as integers that stand for `data ** power * scale`. */
export interface PackedArray {
  data: Numbers;
  dtype: "f4" | "f2" | "u1" | "u2" | "i4";
  shape: number[];
  scale: number;
  power: number;
  /** Its layers, where they arrive one after the other; then `data` is null. */
  byLayer?: Map<number, PackedArray>;
}

/** One axis of a matrix; `longest` is the room for its labels in pixels where it is not the usual one. */
export interface Axis {
  name: string;
  labels: string[];
  sequence: "source" | "target" | null;
  numbers?: number[];
  longest?: number;
}

/** What is blocked in a matrix: for each cell the bits of the masks, and a flag for each row without a key. */
export interface Plane {
  blocked: Uint8Array | null;
  emptyRows: Uint8Array | null;
}

/** Integers from zero that stand for `data ** power * scale`. */
export interface Steps {
  data: Numbers;
  scale: number;
  power: number;
}

export interface Matrix extends Plane {
  values: Float32Array;
  /** The same as integers that stand for them, where they came so; then `values` are made when asked for. */
  steps?: Steps | null;
  /** Their exact numbers by cell, as far as they were asked for. */
  exact?: { get(i: number): number | undefined; set?(i: number, number: number): void } | null;
  rows: number;
  columns: number;
  rowAxis: Axis;
  columnAxis: Axis;
  dtype: PackedArray["dtype"];
  blockedBy?: string[];
  /** A flag for each cell that is outlined. */
  marked?: Uint8Array | null;
}

/** A matrix without its axes. */
export type Cells = Pick<Matrix, "rows" | "columns" | "blocked" | "steps"> & { values?: Float32Array };

/** How numbers become pixels. */
export interface Scale {
  theme: Theme;
  palette: PaletteName;
  low: number;
  high: number;
  curve: string;
  table: Uint32Array;
  perStep: number;
  notANumber: number;
  infinite: number;
}

/** A token that is pointed at. */
export interface Mark {
  sequence: string;
  index: number;
  role: string;
  /** Whether it is the query from now on. */
  isChosen?: boolean;
}

export interface TooltipLine {
  className: string;
  parts: (string | Node)[];
}

export interface Point {
  x: number;
  y: number;
}

export interface Cell {
  row: number;
  column: number;
}

/**
 * The most that the width of a panel, the height of its plot, that with the labels (`tallest`) and one cell may take, in
 * pixels; the height and the width of large cells where they are not to be square, and the least room above the plot.
 */
export interface Limits {
  width: number;
  height: number;
  tallest?: number;
  cell: number;
  cellHeight?: number;
  cellWidth?: number;
  top?: number;
}

/** Where everything of a panel goes, in CSS pixels. */
export interface Geometry {
  left: number;
  top: number;
  cellWidth: number;
  cellHeight: number;
  plotWidth: number;
  plotHeight: number;
  labelled: boolean;
  rowLabels: "all" | "ticks";
  columnLabels: "level" | "upright" | "ticks";
  numbers: boolean;
}

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** How a matrix is drawn. */
export interface PanelLook {
  scale: Scale;
  limits: Limits;
  labelled: boolean;
  valueName: string;
  /** Makes the text alternative, once the picture is on the screen. */
  description(): string;
  /** The same row by row, where it is not the numbers. */
  rowTexts?(): string[];
  title?: string;
  subtitle?: string;
  axesInWords?: string;
  /** The dot before the title. */
  color?: string;
  /** What a click does, where it leads away. */
  hint?: string;
}

/** Who hears of what a person does in a panel; without `title`, its title is plain text. */
export interface PanelHost {
  hover(panel: MatrixPanel, row: number, column: number, point: Point): void;
  leave(): void;
  select(panel: MatrixPanel, row: number, column: number): void;
  title?(panel: MatrixPanel): void;
}

/** The heads of a picture as they are looked at; none in `shown` is all of them. */
export interface Looks {
  shown: number[];
  curve: string;
  [name: string]: any;
}

/**
 * A picture of the heads of every layer. `source` is where its numbers came from; of some layers they may not have
 * arrived, and while a dial is turned (`isTurned`) they are of where that stands.
 */
export interface LayersHeader {
  key: string;
  seq: number;
  layer: number;
  head?: number;
  looks: Looks;
  dials: DialHeader[];
  dial_address: string;
  layer_names: string[] | null;
  head_names: string[][];
  rows: Axis;
  columns: Axis;
  arrays: Record<string, PackedArray>;
  layer_max: number[];
  source?: string;
  arrived?: Set<number>;
  isWhole?: boolean;
  isTurned?: boolean;
}

/** The small pictures of an overview; they may begin with another layer than 0, and not all be there to be drawn. */
export interface OverviewSource {
  layers: number;
  heads: number;
  first?: number;
  matrix(layer: number, head: number): Matrix;
  scale(layer: number): Scale;
  name(layer: number, head: number): string;
  layerName?(layer: number): string;
  drawn?(layer: number): boolean;
}

/** A dial, or names to be pressed where some are offered, as `visualizer/components/dials.py` says them. */
export interface DialHeader {
  name: string;
  label: string;
  help: string;
  value: any;
  least: number;
  most: number;
  parameters: string[];
  parameter?: string;
  offered?: Record<string, string>;
  is_foremost: boolean;
  is_folded: boolean;
}

/** A module of a picture: what draws it, and its style sheet. */
export interface PictureModule {
  render(root: HTMLElement, bytes: Uint8Array, host: Host): Drawn;
  style: string;
}
