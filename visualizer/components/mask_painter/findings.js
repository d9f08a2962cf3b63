/** @import { CountedFinding } from "./types.d.ts" */

import { childrenOf, countOf, makeElement, makeSvgElement, setText, under } from "../shared/dom.js";
import { textsOf } from "../shared/texts.js";
import { enable } from "./toolbar.js";

const say = textsOf("mask_painter/findings");
const SEVERITY_SHAPES = {
  error: "M4 0H8L12 4V8L8 12H4L0 8V4Z",
  warning: "M6 0.5 12 11.5H0Z",
  note: "M6 0A6 6 0 1 1 6 12A6 6 0 1 1 6 0Z",
};

/**
 * The faults of a mask, as a list. Pointing at an entry lights its cells; a click keeps them lit.
 * `lit` is the index of the entry whose cells are to be lit, -1 for none.
 */
export class FindingsList {
  /** @param {{ lightFound: () => void, mend: (index: number) => void, focusGrid: () => void }} host */
  constructor(host) {
    this.host = host;
    /** @type {CountedFinding[]} */ this.findings = [];
    this.texts = "";
    this.pointed = -1;
    this.pinned = -1;
    this.list = makeElement("ol", "findings-list");
    this.allClear = makeElement("p", "findings-clear");
    this.element = makeElement("section", "findings", { "aria-label": say("findings") }, [this.list, this.allClear]);
    this.list.addEventListener("pointerover", (event) => event.pointerType !== "touch" && this.pointAt(this.indexOf(event)));
    this.list.addEventListener("pointerleave", () => this.pointAt(-1));
    this.list.addEventListener("focusin", (event) => under(event, ":focus-visible") && this.pointAt(this.indexOf(event)));
    this.list.addEventListener("focusout", () => this.pointAt(-1));
    this.list.addEventListener("click", (event) => this.onClick(event));
    this.list.addEventListener("keydown", (event) => event.key === "Escape" && this.pin(-1));
  }

  get lit() {
    return this.pointed >= 0 ? this.pointed : this.pinned;
  }

  /** Show findings ({title, severity, why, mend, can_mend, count}), or the line that stands in their place.
   *  @param {CountedFinding[]} findings @param {string} allClear */
  show(findings, allClear) {
    const pinnedTitle = this.findings[this.pinned]?.title;
    this.element.hidden = findings.length === 0 && !allClear; // a mask that nobody judges needs no room for verdicts
    const texts = JSON.stringify(findings);
    if (texts !== this.texts) this.rebuild(findings);
    this.texts = texts;
    this.findings = findings;
    this.pinned = findings.findIndex(({ title }) => title === pinnedTitle);
    this.pointed = Math.min(this.pointed, findings.length - 1);
    this.list.hidden = findings.length === 0;
    this.allClear.hidden = findings.length > 0;
    setText(this.allClear, allClear);
    this.markPinned();
  }

  /** A new list; the keyboard's focus stays at the same place of it. @param {CountedFinding[]} findings */
  rebuild(findings) {
    const focused = this.entries().findIndex((entry) => entry.matches(":focus-within"));
    this.list.replaceChildren(...findings.map(makeFinding));
    if (focused < 0) return;
    const entry = this.entries()[Math.min(focused, findings.length - 1)];
    if (entry) titleOf(entry)?.focus({ preventScroll: true });
    else this.host.focusGrid();
  }

  /** While the painting is newer than the findings, they are about cells that may have changed.
   *  @param {boolean} isOutdated */
  setOutdated(isOutdated) {
    this.element.classList.toggle("findings-outdated", isOutdated);
    for (const button of this.list.querySelectorAll(".finding-mend")) enable(button, !isOutdated);
  }

  entries() {
    return [...childrenOf(this.list)];
  }

  /** The entry that something happened in, -1 for none. @param {Event} event */
  indexOf(event) {
    const entry = under(event, ".finding");
    return entry ? this.entries().indexOf(entry) : -1;
  }

  /** @param {number} index */
  pointAt(index) {
    if (index === this.pointed) return;
    this.pointed = index;
    this.host.lightFound();
  }

  /** @param {number} index */
  pin(index) {
    this.pinned = index;
    this.markPinned();
    this.host.lightFound();
  }

  markPinned() {
    this.entries().forEach((entry, index) => titleOf(entry)?.setAttribute("aria-pressed", String(index === this.pinned)));
  }

  /** @param {Event} event */
  onClick(event) {
    const index = this.indexOf(event);
    if (index < 0) return;
    const mend = under(event, ".finding-mend");
    if (!mend) this.pin(index === this.pinned ? -1 : index);
    else if (mend.getAttribute("aria-disabled") !== "true") this.host.mend(index);
  }
}

/** @param {HTMLElement} entry @returns {HTMLElement | null} */
function titleOf(entry) {
  return entry.querySelector(".finding-title");
}

/** One entry: how bad it is by shape and word, what it is, why it matters, and how to mend it.
 *  @param {CountedFinding} finding */
function makeFinding({ title, severity, why, mend, can_mend: canMend, count }) {
  const shape = makeSvgElement("svg", { class: "finding-mark", viewBox: "0 0 12 12", "aria-hidden": "true" }, [
    makeSvgElement("path", { d: SEVERITY_SHAPES[severity] }),
  ]);
  const head = makeElement("button", "finding-title", { type: "button", title: say("light") }, [
    makeElement("span", "finding-severity", {}, [severity]),
    makeElement("span", "finding-name", {}, [title]),
    makeElement("span", "finding-count", {}, [count ? countOf(count, "cell") : ""]),
  ]);
  head.prepend(shape);
  const button = makeElement("button", "tool finding-mend", { type: "button", "aria-label": say("fix_it", { title }) }, [say("fix")]);
  return makeElement("li", `finding finding-${severity}`, {}, [
    head,
    makeElement("p", "finding-why", {}, [why]),
    makeElement("div", "finding-way", {}, [makeElement("p", "finding-how", {}, [mend]), ...(canMend ? [button] : [])]),
  ]);
}
