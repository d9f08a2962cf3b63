/** @import { Entry } from "./types.d.ts" */

import { wordNodes } from "../shared/define.js";
import { clamp, makeElement } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";
import { zoomOf } from "../shared/zoom.js";

const say = textsOf("glossary/note");

/** An entry as its parts: symbol and name, its size in this run, what it means, and where it comes from.
 *  @param {Entry} entry @param {Record<string, string>} sizes */
export function entryNodes(entry, sizes) {
  const heading = makeElement("div", "entry-heading", {}, [makeElement("span", "entry-name", {}, [entry.name])]);
  if (entry.symbol) heading.prepend(makeElement("span", "entry-symbol", {}, [entry.symbol]));
  const size = sizes[entry.size];
  if (size !== undefined) {
    heading.append(makeElement("span", "entry-size", {}, say.parts("size", { size: makeElement("b", "", {}, [size]) })));
  }
  const nodes = [heading, makeElement("div", "entry-text", {}, wordNodes(entry.text))];
  if (entry.source) nodes.push(makeElement("div", "entry-source", {}, [entry.source]));
  return nodes;
}

const NOTE_GAP = 6;

/** The note that opens beside a word: one entry, and the way to all of them. */
export class EntryNote {
  /** @param {(entry: Entry) => void} showAll */
  constructor(showAll) {
    this.showAll = showAll;
    /** @type {HTMLElement | null} */ this.from = null;
    this.element = makeElement("div", "entry-note", { popover: "auto", role: "dialog", tabindex: "-1" });
    // The keys of the page, such as the arrows between stages, are not meant while a note is read.
    this.element.addEventListener("keydown", (event) => event.stopPropagation());
    this.element.addEventListener("toggle", ({ newState }) => newState === "closed" && this.giveFocusBack());
  }

  /** Show an entry beside what opened it; a word within the note leads on in its place.
   *  @param {Entry} entry @param {Record<string, string>} sizes @param {HTMLElement} from */
  show(entry, sizes, from) {
    if (!this.element.contains(from)) this.from = from;
    const all = makeElement("button", "entry-all", { type: "button" }, [say("all")]);
    all.onclick = () => {
      this.element.hidePopover();
      this.showAll(entry);
    };
    this.element.replaceChildren(...entryNodes(entry, sizes), all);
    this.element.setAttribute("aria-label", say("label", { name: entry.name }));
    if (!this.element.matches(":popover-open")) this.element.showPopover();
    this.place();
    this.element.focus({ preventScroll: true });
  }

  /** Below what opened it, or above where there is more room, and within the window. */
  place() {
    if (!this.from) return;
    const box = this.from.getBoundingClientRect();
    const { width, height } = this.element.getBoundingClientRect();
    const below = box.bottom + NOTE_GAP;
    const top = below + height > window.innerHeight - 8 ? box.top - NOTE_GAP - height : below;
    const zoom = zoomOf(this.element);
    this.element.style.left = `${clamp(box.left - 8, 8, Math.max(8, window.innerWidth - width - 8)) / zoom}px`;
    this.element.style.top = `${clamp(top, 8, Math.max(8, window.innerHeight - height - 8)) / zoom}px`;
  }

  /** To the word that opened the note, unless the person has gone elsewhere. */
  giveFocusBack() {
    const focused = /** @type {Document | ShadowRoot} */ (this.element.getRootNode()).activeElement;
    if (focused === null || this.element.contains(focused)) this.from?.focus({ preventScroll: true });
  }
}
