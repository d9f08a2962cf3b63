/**
 * The glossary: its button, the list of all entries, and the note that opens beside any word of the page that has one.
 *
 * Words anywhere on the page ask for their entry by an event (`shared/define.js`); nothing is asked of the server.
 */

/** @import { Host } from "../types.d.ts" */
/** @import { GlossaryHeader } from "./types.d.ts" */

import { subscribeDefine } from "../shared/define.js";
import { makeElement, makeSvgElement } from "../shared/dom.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";
import { EntryList } from "./list.js";
import { EntryNote } from "./note.js";

const say = textsOf("glossary/element");
const BOOK = "M4 5.5C6.5 4 9.5 4 12 5.5v14c-2.5-1.5-5.5-1.5-8 0zM20 5.5c-2.5-1.5-5.5-1.5-8 0v14c2.5-1.5 5.5-1.5 8 0z";

/** @extends {Picture<GlossaryHeader>} */
class Glossary extends Picture {
  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "glossary");
    this.list = new EntryList();
    this.note = new EntryNote((entry) => this.list.show(this.data, entry));
    const button = makeButton(() => this.list.show(this.data));
    root.prepend(makeElement("div", "glossary", {}, [button, this.list.element, this.note.element]));
    subscribeDefine(({ entry, from }) => this.open(entry, from), this.untilEnd);
  }

  /** Open the entry of this name beside the word that asks for it, or within the list that the word stands in.
   *  @param {string} name @param {HTMLElement} from */
  open(name, from) {
    const entry = this.data.entries.find((one) => one.name === name);
    if (!entry) return;
    if (this.list.element.contains(from)) this.list.goTo(entry);
    else this.note.show(entry, this.data.sizes, from);
  }
}

/** @param {() => void} open */
function makeButton(open) {
  const icon = makeSvgElement("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, [makeSvgElement("path", { d: BOOK })]);
  const button = makeElement("button", "glossary-button", { type: "button", "aria-label": say("title") }, [
    icon,
    makeElement("span", "glossary-word", {}, [say("title")]),
  ]);
  button.addEventListener("click", open);
  return button;
}

export const render = rendererOf(Glossary);
