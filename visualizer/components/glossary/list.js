/** @import { Entry, GlossaryHeader } from "./types.d.ts" */

import { childrenOf, makeElement, setText } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";
import { entryNodes } from "./note.js";

const say = textsOf("glossary/list");

/** All entries in a window of their own, with a search. Built when it is opened for the first time. */
export class EntryList {
  constructor() {
    /** @type {Entry[]} */ this.entries = [];
    this.search = makeElement("input", "entry-search", {
      type: "search",
      placeholder: say("placeholder"),
      "aria-label": say("search"),
    });
    this.close = makeElement("button", "entry-close", { type: "button", "aria-label": say("close") }, ["✕"]);
    this.count = makeElement("div", "entry-count", { role: "status" });
    this.items = makeElement("div", "entry-items", { tabindex: "0", role: "region", "aria-label": say("entries") });
    const title = makeElement("h2", "entry-title", {}, [say("title")]);
    const head = makeElement("div", "entry-head", {}, [title, this.search, this.close]);
    const keys = makeElement("div", "entry-keys", {}, [say("keys")]);
    this.element = makeElement("dialog", "entry-list", { "aria-label": say("title") }, [head, this.count, this.items, keys]);
    this.search.oninput = () => this.filter();
    this.close.onclick = () => this.element.close();
    this.element.addEventListener("keydown", (event) => event.stopPropagation());
    this.element.addEventListener("click", (event) => event.target === this.element && this.element.close());
  }

  /** Open the list, at an entry where one is given. @param {GlossaryHeader} header @param {Entry} [entry] */
  show({ entries, sizes }, entry) {
    this.entries = entries;
    this.items.replaceChildren(
      ...entries.map((one) => makeElement("article", "entry", { "data-name": one.name }, entryNodes(one, sizes))),
    );
    this.search.value = "";
    this.filter();
    if (!this.element.open) this.element.showModal();
    if (entry) this.goTo(entry);
    else this.search.focus();
  }

  /** Show the entries that have what is looked for in their name, symbol or other names; else in their text. */
  filter() {
    const wanted = this.search.value.trim().toLowerCase();
    const has = this.entries.map(({ search }) => search.includes(wanted));
    const isNamed = has.some(Boolean);
    /** @param {Entry} entry @param {number} i */
    const isShown = (entry, i) => (isNamed ? has[i] : plainText(entry).toLowerCase().includes(wanted));
    const shown = this.entries.map(isShown);
    [...childrenOf(this.items)].forEach((article, i) => (article.hidden = !shown[i]));
    const number = shown.filter(Boolean).length;
    setText(this.count, number === 0 ? say("none") : say("found", { count: number, all: this.entries.length }));
  }

  /** Bring one entry into view, with all others around it. @param {Entry} entry */
  goTo(entry) {
    if (this.search.value) {
      this.search.value = "";
      this.filter();
    }
    const article = [...childrenOf(this.items)].find((one) => one.dataset.name === entry.name);
    for (const other of this.items.querySelectorAll(".entry-found")) other.classList.remove("entry-found");
    article?.classList.add("entry-found");
    article?.scrollIntoView({ block: "center" });
    this.items.focus({ preventScroll: true });
  }
}

/** The text of an entry, as plain text. @param {Entry} entry */
function plainText({ text }) {
  return text.map(([words]) => words).join("");
}
