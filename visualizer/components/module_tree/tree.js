/** Operations in the modules that called them. */

/**
 * The modules as a tree. A module holds, in the order computed, the indices of its own operations and the modules in
 * it: {path, name, items, count}. A module that holds nothing but another one shares its line, as `h.0`.
 *
 * `modules` are the paths of modules, `operations` start with the number of a module.
 */
export function treeOf(modules, operations) {
  const root = makeNode("", "");
  operations.forEach(([module], index) => {
    let node = root;
    node.count += 1;
    for (const name of modules[module] ? modules[module].split(".") : []) {
      node = childOf(node, name);
      node.count += 1;
    }
    node.items.push(index);
  });
  return shortened(root);
}

function makeNode(path, name) {
  return { path, name, items: [], count: 0, children: new Map() };
}

function childOf(node, name) {
  const found = node.children.get(name);
  if (found) return found;
  const made = makeNode(node.path ? `${node.path}.${name}` : name, name);
  node.children.set(name, made);
  node.items.push(made);
  return made;
}

function shortened(node) {
  const items = node.items.map((item) => (isModule(item) ? joined(shortened(item)) : item));
  return { path: node.path, name: node.name, items, count: node.count };
}

/** A module with its only content, where that is a module too. */
function joined(node) {
  const [only] = node.items;
  return node.items.length === 1 && isModule(only) ? { ...only, name: `${node.name}.${only.name}` } : node;
}

export function isModule(item) {
  return typeof item === "object";
}

/** The paths of the modules around an operation that have a line of their own, from the outermost on. */
export function around(node, index) {
  const inside = node.items.find((item) => isModule(item) && holds(item, index));
  return inside ? [inside.path, ...around(inside, index)] : [];
}

function holds(node, index) {
  return node.items.some((item) => (isModule(item) ? holds(item, index) : item === index));
}
