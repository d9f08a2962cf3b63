/**
 * The operations of a model as chips in their modules. A closed module is one chip; the modules around the current
 * operation open by themselves. Previous, Next and the arrow keys walk through all operations.
 *
 * The highlight moves at once; Python hears of it as {index, seq}.
 */

import { clamp, countOf, makeElement, setText } from "../shared/dom.js";
import { Events } from "../shared/events.js";
import { isForPage } from "../shared/keys.js";
import { Picture, startPicture } from "../shared/picture.js";
import { around, isModule, treeOf } from "./tree.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

class ModuleTree extends Picture {
  constructor(root, host) {
    super(root, host, "module_tree");
    this.events = new Events(host);
    this.version = "";
    this.index = 0;
    this.opened = new Set();
    this.previous = walkButton("previous", "‹", () => this.go(this.index - 1));
    this.next = walkButton("next", "›", () => this.go(this.index + 1));
    this.place = makeElement("div", "tree-place");
    this.counter = makeElement("div", "tree-counter");
    const here = makeElement("div", "tree-here", { "aria-live": "polite" }, [this.place, this.counter]);
    const walk = makeElement("div", "tree-walk", {}, [this.previous, this.next, here]);
    this.chips = makeElement("div", "tree-items");
    const attributes = { role: "group", "aria-label": "Operations by module. Left and right arrows walk through them." };
    this.frame = makeElement("div", "module-tree", attributes, [walk, this.chips]);
    root.prepend(this.frame);
    this.chips.onclick = (event) => this.click(event.target);
    const onKey = (event) => this.pressKey(event);
    document.addEventListener("keydown", onKey);
    this.endings.push(() => document.removeEventListener("keydown", onKey));
  }

  /** Take over what Python sent; the current operation only where it is not older than the person's last step. */
  receive() {
    const { modules, operations, current, seq } = this.data;
    const version = JSON.stringify([modules, operations]);
    const isOther = version !== this.version;
    if (isOther) {
      this.version = version;
      this.tree = treeOf(modules, operations);
      this.opened.clear();
    }
    if (this.events.areKnown(seq) || isOther) this.index = current;
    this.index = clamp(this.index, 0, operations.length - 1);
    this.openAround();
  }

  openAround() {
    for (const path of around(this.tree, this.index)) this.opened.add(path);
  }

  draw() {
    const { modules, operations } = this.data;
    const [module, label] = operations[this.index];
    setText(this.place, modules[module] ? `${modules[module]} · ${label}` : label);
    this.place.title = this.place.textContent;
    setText(this.counter, `operation ${this.index + 1} of ${operations.length.toLocaleString("en")}`);
    this.previous.disabled = this.index === 0;
    this.next.disabled = this.index === operations.length - 1;
    const focused = this.focused();
    this.chips.replaceChildren(...this.itemsOf(this.tree));
    this.chips.querySelector(`[data-${focused?.kind}="${CSS.escape(focused?.value ?? "")}"]`)?.focus();
  }

  /** What has the focus among the chips, to have it again when they are drawn anew. */
  focused() {
    const { activeElement } = /** @type {Document | ShadowRoot} */ (this.root.getRootNode());
    if (!(activeElement instanceof HTMLElement) || !this.chips.contains(activeElement)) return null;
    const kind = activeElement.dataset.index === undefined ? "path" : "index";
    return { kind, value: activeElement.dataset[kind] };
  }

  itemsOf(node) {
    return node.items.map((item) => {
      if (!isModule(item)) return this.chip(item, this.data.operations[item][1]);
      const [only] = item.items;
      if (item.count === 1) return this.chip(only, `${item.name} · ${this.data.operations[only][1]}`);
      return this.opened.has(item.path) ? this.openModule(item) : this.moduleButton(item, false);
    });
  }

  openModule(node) {
    const items = makeElement("div", "tree-items", {}, this.itemsOf(node));
    return makeElement("div", "tree-module", {}, [this.moduleButton(node, true), items]);
  }

  moduleButton(node, isOpen) {
    const attributes = {
      type: "button",
      title: `${node.path}: ${countOf(node.count, "operation")}`,
      "aria-expanded": String(isOpen),
      "data-path": node.path,
    };
    const count = makeElement("span", "tree-count", {}, [node.count.toLocaleString("en")]);
    return makeElement("button", "tree-fold", attributes, [isOpen ? "▾ " : "▸ ", makeElement("bdi", "", {}, [node.name]), count]);
  }

  chip(index, text) {
    const [, , role, shape] = this.data.operations[index];
    const attributes = {
      type: "button",
      title: `${text} ${shape}`.trim(),
      "data-index": index,
      "data-role": role,
      "aria-current": index === this.index ? "step" : "false",
    };
    return makeElement("button", "tree-chip", attributes, [makeElement("bdi", "", {}, [text])]);
  }

  click(target) {
    const button = target.closest("button");
    if (!button) return;
    if (button.dataset.index !== undefined) this.go(Number(button.dataset.index));
    else this.fold(button.dataset.path);
  }

  fold(path) {
    if (!this.opened.delete(path)) this.opened.add(path);
    this.redraw();
  }

  go(index) {
    const bounded = clamp(index, 0, this.data.operations.length - 1);
    if (bounded === this.index) return;
    this.index = bounded;
    this.openAround();
    this.redraw();
    this.events.send("stage", { index: bounded });
  }

  pressKey(event) {
    const step = STEPS[event.key];
    if (!step || !isForPage(event)) return;
    event.preventDefault();
    this.go(this.index + step);
  }
}

function walkButton(name, arrow, step) {
  const label = name === "next" ? "Next operation" : "Previous operation";
  const button = makeElement("button", name, { type: "button", "aria-label": label, title: label }, [arrow]);
  button.onclick = step;
  return button;
}

/** Draw the picture in `root`. */
export function render(root, bytes, host) {
  return startPicture(ModuleTree, root, bytes, host);
}
