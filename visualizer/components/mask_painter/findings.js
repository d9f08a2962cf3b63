import { countOf, makeElement, makeSvgElement, setText } from "../shared/dom.js";
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
 * host: {lightFound(), mend(index), focusGrid()}; `lit` is the index of the entry whose cells are to be lit, -1 for none.
 */
export class FindingsList {
  constructor(host) {
    this.host = host;
    this.findings = [];
    this.pointed = -1;
    this.pinned = -1;
    this.list = makeElement("ol", "findings-list");
    this.allClear = makeElement("p", "findings-clear");
    this.element = makeElement("section", "findings", { "aria-label": say("findings") }, [this.list, this.allClear]);
    this.list.addEventListener("pointerover", (event) => event.pointerType !== "touch" && this.point(event.target));
    this.list.addEventListener("pointerleave", () => this.pointAt(-1));
    this.list.addEventListener("focusin", ({ target }) => target.matches(":focus-visible") && this.point(target));
    this.list.addEventListener("focusout", () => this.pointAt(-1));
    this.list.addEventListener("click", ({ target }) => this.onClick(target));
    this.list.addEventListener("keydown", (event) => event.key === "Escape" && this.pin(-1));
  }

  get lit() {
    return this.pointed >= 0 ? this.pointed : this.pinned;
  }

  /** Show findings ({title, severity, why, mend, can_mend, count}), or the line that stands in their place. */
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

  /** A new list; the keyboard's focus stays at the same place of it. */
  rebuild(findings) {
    const focused = this.indexOf(this.element.getRootNode().activeElement);
    this.list.replaceChildren(...findings.map(makeFinding));
    const entry = this.list.children[Math.min(focused, findings.length - 1)];
    if (focused < 0) return;
    if (entry) entry.querySelector(".finding-title").focus({ preventScroll: true });
    else this.host.focusGrid();
  }

  /** While the painting is newer than the findings, they are about cells that may have changed. */
  setOutdated(isOutdated) {
    this.element.classList.toggle("findings-outdated", isOutdated);
    for (const button of this.list.querySelectorAll(".finding-mend")) enable(button, !isOutdated);
  }

  indexOf(node) {
    return Array.prototype.indexOf.call(this.list.children, node?.closest?.(".finding"));
  }

  point(node) {
    this.pointAt(this.indexOf(node));
  }

  pointAt(index) {
    if (index === this.pointed) return;
    this.pointed = index;
    this.host.lightFound();
  }

  pin(index) {
    this.pinned = index;
    this.markPinned();
    this.host.lightFound();
  }

  markPinned() {
    for (const [index, entry] of [...this.list.children].entries()) {
      entry.querySelector(".finding-title").setAttribute("aria-pressed", String(index === this.pinned));
    }
  }

  onClick(target) {
    const index = this.indexOf(target);
    if (index < 0) return;
    const mend = target.closest(".finding-mend");
    if (!mend) this.pin(index === this.pinned ? -1 : index);
    else if (mend.getAttribute("aria-disabled") !== "true") this.host.mend(index);
  }
}

/** One entry: how bad it is by shape and word, what it is, why it matters, and how to mend it. */
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
