/** Operations in the modules that called them. */

/** @import { Item, KnownStep, Module, Node, Operation, Step } from "./types.d.ts" */

/**
 * The modules as a tree. A module holds, in the order computed, the indices of its own operations, the steps that are
 * several operations, and the modules in it. A module that holds nothing but another one shares its line, as `h.0`. The
 * index of a step follows those of all operations; it stands where the last of them was computed.
 * @param {string[]} modules @param {Operation[]} operations @param {KnownStep[]} [steps]
 */
export function treeOf(modules, operations, steps = []) {
  const root = makeNode("", "");
  const stepOf = new Map(steps.flatMap((step, number) => step[4].map((index) => /** @type {const} */ ([index, number]))));
  operations.forEach(([module], index) => {
    const number = stepOf.get(index);
    if (number === undefined) return put(root, modules[module], index, 1);
    const [within, , , , items] = steps[number];
    if (index === items.at(-1)) {
      put(root, modules[within], { step: operations.length + number, items, count: items.length }, items.length);
    }
  });
  return shortened(root);
}

/** @param {Node} root @param {string} path @param {Item} item @param {number} count */
function put(root, path, item, count) {
  let node = root;
  node.count += count;
  for (const name of path ? path.split(".") : []) {
    node = childOf(node, name);
    node.count += count;
  }
  node.items.push(item);
}

/** @param {string} path @param {string} name @returns {Node} */
function makeNode(path, name) {
  return { path, name, items: [], count: 0, children: new Map() };
}

/** @param {Node} node @param {string} name */
function childOf(node, name) {
  const found = node.children.get(name);
  if (found) return found;
  const made = makeNode(node.path ? `${node.path}.${name}` : name, name);
  node.children.set(name, made);
  node.items.push(made);
  return made;
}

/** @param {Module} node @returns {Module} */
function shortened(node) {
  const items = node.items.map((item) => (isModule(item) ? joined(shortened(item)) : item));
  return { path: node.path, name: node.name, items, count: node.count };
}

/** A module with its only content, where that is a module too. @param {Module} node */
function joined(node) {
  const [only] = node.items;
  return node.items.length === 1 && isModule(only) ? { ...only, name: `${node.name}.${only.name}` } : node;
}

/** @param {Item} item @returns {item is Module} */
export function isModule(item) {
  return typeof item === "object" && !isStep(item);
}

/** @param {Item} item @returns {item is Step} */
export function isStep(item) {
  return typeof item === "object" && "step" in item;
}

/** The key of an item that opens: the path of a module, a step's number. @param {Step | Module} item */
export function keyOf(item) {
  return isStep(item) ? `step ${item.step}` : item.path;
}

/** The keys of all that is around an operation and has a line of its own, from the outermost on.
 *  @param {Step | Module} node @param {number} index @returns {string[]} */
export function around(node, index) {
  const inside = node.items.find((item) => !isItself(item, index) && holds(item, index));
  return typeof inside === "object" ? [keyOf(inside), ...around(inside, index)] : [];
}

/** @param {Item} item @param {number} index */
function isItself(item, index) {
  return isModule(item) ? false : (isStep(item) ? item.step : item) === index;
}

/** True if an operation is inside an item. @param {Item} item @param {number} index @returns {boolean} */
function holds(item, index) {
  return typeof item === "object" && item.items.some((one) => isItself(one, index) || holds(one, index));
}

/** The indices that one goes through, in the order computed: a step is one, and its operations are too where it is opened.
 *  @param {Module} node @param {Set<string>} opened */
export function walkOf(node, opened) {
  return placesOf(node, opened).sort((one, other) => one.place - other.place).map(({ index }) => index);
}

/** @param {Module} node @param {Set<string>} opened @returns {{ index: number, place: number }[]} */
function placesOf(node, opened) {
  /** @param {number} index */
  const alone = (index) => ({ index, place: index });
  return node.items.flatMap((item) => {
    if (isModule(item)) return placesOf(item, opened);
    if (!isStep(item)) return [alone(item)];
    if (!opened.has(keyOf(item))) return [{ index: item.step, place: item.items[item.count - 1] }];
    return [{ index: item.step, place: item.items[0] - 0.5 }, ...item.items.map(alone)];
  });
}
