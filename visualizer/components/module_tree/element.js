/**
 * The operations of a model as chips in their modules. A closed module is one chip; the modules around the current
 * operation open by themselves. Several operations that are one known step are one chip, which a button opens.
 * Previous, Next and the arrow keys walk through all of them.
 *
 * The highlight moves at once; Python hears of it as {index, seq}.
 */

/** @import { Host } from "../types.d.ts" */
/** @import { Module, Step, TreeHeader } from "./types.d.ts" */

import { clamp, countOf, makeElement, setText, under } from "../shared/dom.js";
import { Events } from "../shared/events.js";
import { isForPage } from "../shared/keys.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";
import { walkButton } from "../shared/walk.js";
import { zoomOf } from "../shared/zoom.js";
import { around, isModule, isStep, keyOf, treeOf, walkOf } from "./tree.js";

const say = textsOf("module_tree/element");
/** @type {Record<string, number>} */
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

/** @extends {Picture<TreeHeader>} */
class ModuleTree extends Picture {
  /** @type {Module} */ tree;

  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "module_tree");
    this.events = new Events(host);
    this.version = "";
    this.index = 0;
    this.inSight = -1; // the operation that the tree was scrolled to
    /** @type {Set<string>} */ this.opened = new Set();
    /** @type {Set<string>} */
    this.byItself = new Set(); // what opened around the current operation, and closes behind it
    this.previous = stepButton("previous", "‹", () => this.walk(-1));
    this.next = stepButton("next", "›", () => this.walk(1));
    this.place = makeElement("div", "tree-place");
    this.counter = makeElement("div", "tree-counter");
    const here = makeElement("div", "tree-here", { "aria-live": "polite" }, [this.place, this.counter]);
    const walk = makeElement("div", "tree-walk", {}, [this.previous, this.next, here]);
    this.chips = makeElement("div", "tree-items");
    const attributes = { role: "group", "aria-label": say("tree") };
    this.frame = makeElement("div", "module-tree", attributes, [walk, this.chips]);
    root.prepend(this.frame);
    this.chips.onclick = (event) => this.click(event);
    document.addEventListener("keydown", (event) => this.pressKey(event), this.untilEnd);
  }

  /** Take over what Python sent; the current operation only where it is not older than the person's last step. */
  receive() {
    const { modules, operations, steps, current, seq } = this.data;
    const version = JSON.stringify([modules, operations, steps]);
    const isOther = version !== this.version;
    if (isOther) {
      this.version = version;
      this.tree = treeOf(modules, operations, steps);
      this.opened.clear();
      this.byItself.clear();
      this.inSight = -1;
    }
    if (this.events.areKnown(seq) || isOther) this.index = current;
    this.index = clamp(this.index, 0, operations.length + steps.length - 1);
    this.openAround();
  }

  openAround() {
    const keys = around(this.tree, this.index);
    for (const key of this.byItself) if (!keys.includes(key)) this.opened.delete(key);
    const opening = keys.filter((key) => this.byItself.has(key) || !this.opened.has(key));
    this.byItself = new Set(opening);
    for (const key of opening) this.opened.add(key);
  }

  /** [module, label, role, shape], and for a step the indices of its operations. @param {number} index */
  entry(index) {
    const { operations, steps } = this.data;
    return index < operations.length ? operations[index] : steps[index - operations.length];
  }

  draw() {
    const { modules, operations } = this.data;
    const [module, label, , , parts] = this.entry(this.index);
    setText(this.place, modules[module] ? `${modules[module]} · ${label}` : label);
    this.place.title = this.place.textContent;
    const all = operations.length.toLocaleString("en");
    const step = parts && say("step", { operations: countOf(parts.length, "operation"), all });
    setText(this.counter, step ?? say("operation", { index: (this.index + 1).toLocaleString("en"), all }));
    const walk = this.walked();
    this.previous.disabled = this.index === walk[0];
    this.next.disabled = this.index === walk.at(-1);
    const focused = this.focused();
    this.chips.replaceChildren(...this.itemsOf(this.tree));
    this.scrollToCurrent();
    if (!focused) return;
    const again = [...this.chips.querySelectorAll("button")].find(({ dataset }) => dataset[focused.kind] === focused.value);
    again?.focus({ preventScroll: true });
  }

  /** Scroll the tree, and nothing else, to an operation that has become the current one. */
  scrollToCurrent() {
    const current = this.chips.querySelector("[aria-current=step]");
    if (!current || this.inSight === this.index) return;
    this.inSight = this.index;
    const [outer, inner] = [this.chips.getBoundingClientRect(), current.getBoundingClientRect()];
    if (inner.top >= outer.top && inner.bottom <= outer.bottom) return;
    this.chips.scrollTop += (inner.top - outer.top - outer.height / 3) / zoomOf(this.chips);
  }

  /** The chip with the focus, to have it again when they are drawn anew. */
  focused() {
    const { activeElement } = /** @type {Document | ShadowRoot} */ (this.root.getRootNode());
    if (!(activeElement instanceof HTMLElement) || !this.chips.contains(activeElement)) return null;
    const kind = activeElement.dataset.index === undefined ? "key" : "index";
    return { kind, value: activeElement.dataset[kind] };
  }

  /** @param {Module} node @returns {HTMLElement[]} */
  itemsOf(node) {
    return node.items.map((item) => {
      if (!isModule(item)) return this.leaf(item, "");
      const [only] = item.items;
      const isAlone = item.items.length === 1 && !isModule(only); // a module in it would have its line
      if (isAlone) return this.leaf(only, `${item.name} · `);
      const isOpen = this.opened.has(item.path);
      return isOpen ? this.open(this.moduleButton(item, true), this.itemsOf(item)) : this.moduleButton(item, false);
    });
  }

  /** An operation, or a step with its operations where it is opened; `before` is the module that has it alone.
   *  @param {number | Step} item @param {string} before */
  leaf(item, before) {
    if (!isStep(item)) return this.chip(item, `${before}${this.entry(item)[1]}`);
    const isOpen = this.opened.has(keyOf(item));
    const [module, label] = this.entry(item.step);
    const chip = this.chip(item.step, `${before}${label}`);
    chip.append(countSpan(item.count));
    const head = makeElement("span", "tree-step", {}, [this.stepButton(item, label, isOpen), chip]);
    return isOpen ? this.open(head, item.items.map((index) => this.chip(index, this.labelIn(module, index)))) : head;
  }

  /** The name of an operation seen from a module around it. @param {number} module @param {number} index */
  labelIn(module, index) {
    const { modules } = this.data;
    const [own, label] = this.entry(index);
    const inside = modules[own].slice(modules[module].length).replace(/^\./, "");
    return inside ? `${inside} · ${label}` : label;
  }

  /** @param {HTMLElement} head @param {HTMLElement[]} items */
  open(head, items) {
    return makeElement("div", "tree-module", {}, [head, makeElement("div", "tree-items", {}, items)]);
  }

  /** @param {Module} node @param {boolean} isOpen */
  moduleButton(node, isOpen) {
    const attributes = { title: `${node.path}: ${countOf(node.count, "operation")}`, ...foldingOf(node, isOpen) };
    const name = makeElement("bdi", "", {}, [node.name]);
    return makeElement("button", "tree-fold", attributes, [isOpen ? "▾ " : "▸ ", name, countSpan(node.count)]);
  }

  /** @param {Step} step @param {string} label @param {boolean} isOpen */
  stepButton(step, label, isOpen) {
    const operations = countOf(step.count, "operation");
    const said = isOpen ? say("hide", { operations, label }) : say("show", { operations, label });
    const attributes = { title: said, "aria-label": said, ...foldingOf(step, isOpen) };
    return makeElement("button", "tree-fold", attributes, [isOpen ? "▾" : "▸"]);
  }

  /** @param {number} index @param {string} text */
  chip(index, text) {
    const [, , role, shape, parts] = this.entry(index);
    const attributes = {
      type: "button",
      title: [text, parts && countOf(parts.length, "operation"), shape].filter(Boolean).join(" · "),
      "data-index": index,
      "data-role": role,
      "aria-current": index === this.index ? "step" : "false",
    };
    return makeElement("button", "tree-chip", attributes, [makeElement("bdi", "", {}, [text])]);
  }

  /** @param {Event} event */
  click(event) {
    const button = under(event, "button");
    if (!button) return;
    if (button.dataset.index !== undefined) this.go(Number(button.dataset.index));
    else this.fold(button.dataset.key ?? "");
  }

  /** @param {string} key */
  fold(key) {
    this.byItself.delete(key);
    if (!this.opened.delete(key)) this.opened.add(key);
    this.redraw();
  }

  /** @param {number} by */
  walk(by) {
    const walk = this.walked();
    this.go(walk[walk.indexOf(this.index) + by]);
  }

  /** The way of Previous and Next: the current operation too where its step was closed over it. */
  walked() {
    return walkOf(this.tree, new Set([...this.opened, ...around(this.tree, this.index)]));
  }

  /** @param {number} index */
  go(index) {
    if (index === undefined || index === this.index) return;
    this.index = index;
    this.openAround();
    this.redraw();
    this.events.send("stage", { index });
  }

  /** @param {KeyboardEvent} event */
  pressKey(event) {
    const step = STEPS[event.key];
    if (!step || !isForPage(event)) return;
    event.preventDefault();
    this.walk(step);
  }
}

/** @param {Step | Module} item @param {boolean} isOpen */
function foldingOf(item, isOpen) {
  return { type: "button", "aria-expanded": String(isOpen), "data-key": keyOf(item) };
}

/** @param {number} count */
function countSpan(count) {
  return makeElement("span", "tree-count", {}, [count.toLocaleString("en")]);
}

/** @param {string} name @param {string} arrow @param {() => void} step */
function stepButton(name, arrow, step) {
  const button = walkButton(name, arrow);
  button.title = name === "next" ? say("next") : say("previous");
  button.setAttribute("aria-label", button.title);
  button.onclick = step;
  return button;
}

export const render = rendererOf(ModuleTree);
