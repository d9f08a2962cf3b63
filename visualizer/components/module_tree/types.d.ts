/** The number of its module, its label, its role and its shape; of a step also the indices of its operations. */
export type Operation = [number, string, string, string];
export type KnownStep = [number, string, string, string, number[]];

export interface TreeHeader {
  key: string;
  seq: number;
  current: number;
  modules: string[];
  operations: Operation[];
  steps: KnownStep[];
}

/** A module, with the count of the operations in it. */
export interface Module {
  path: string;
  name: string;
  items: Item[];
  count: number;
}

/** Several operations that are one; `step` is its own index. */
export interface Step {
  step: number;
  items: number[];
  count: number;
}

/** The index of an operation, a step, or a module: what a module holds. */
export type Item = number | Step | Module;

/** A module while it is filled. */
export interface Node extends Module {
  children: Map<string, Node>;
}
