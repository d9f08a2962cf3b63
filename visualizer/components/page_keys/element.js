/** @import { Host } from "../types.d.ts" */
/** @import { KeysHeader } from "./types.d.ts" */

import { makeElement, makeSvgElement, setText } from "../shared/dom.js";
import { isDone, saveFile } from "../shared/files.js";
import { isLetterForPage } from "../shared/keys.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";
import { refuseTooLong } from "./longest.js";
import { keepPress } from "./presses.js";

const say = textsOf("page_keys/element");
const CHAIN = "M6.5 9.5l3-3M7 4.5l1.6-1.6a3 3 0 0 1 4.4 4.3L11.5 8.8M9 11.5l-1.6 1.6a3 3 0 0 1-4.4-4.3L4.5 7.2";
const SAID = 4000; // milliseconds for which it is said that the link was copied
const PAUSE = 60; // milliseconds within which keys are told together

/**
 * Parts of the whole page: an overview of its keys, full screen, what Python does for the other keys, how long a
 * text may be, presses on what moves, what the browser keeps, and that a person went Back or Forward.
 * @extends {Picture<KeysHeader>}
 */
class PageKeys extends Picture {
  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "page_keys");
    this.seq = 0;
    /** @type {[number, string][]} */ this.waiting = [];
    this.isUntold = false;
    this.isFirst = true;
    const first = { ...this.untilEnd, capture: true };
    document.addEventListener("keydown", (event) => this.onKey(event), this.untilEnd);
    window.addEventListener("popstate", () => this.tellAddress(), first);
    document.addEventListener("beforeinput", (event) => refuseTooLong(event, this.data.longest), first);
    document.addEventListener("mousedown", stayInField, first);
    document.addEventListener("pointerdown", keepPress, first);
    this.endings.push(() => this.isUntold && this.tellNow());
    this.list = makeElement("dl", "page-keys-list");
    const close = makeElement("button", "page-keys-close", { type: "button" }, [say("close")]);
    const title = makeElement("h2", "page-keys-title", {}, [say("title")]);
    this.dialog = makeElement("dialog", "page-keys-overview", { "aria-label": say("title") }, [title, this.list, close]);
    close.addEventListener("click", () => this.dialog.close());
    const chain = makeSvgElement("svg", { viewBox: "0 0 16 16", width: 18, height: 18, "aria-hidden": "true" }, [
      makeSvgElement("path", { d: CHAIN, fill: "none", stroke: "currentColor", "stroke-width": 1.4, "stroke-linecap": "round" }),
    ]);
    const named = { type: "button", title: say("copy"), "aria-label": say("link") };
    this.link = makeElement("button", "page-keys-link", named, [chain]);
    this.said = makeElement("span", "page-keys-said", { role: "status" });
    this.link.addEventListener("click", () => this.copyLink());
    this.root.prepend(this.link, this.said, this.dialog);
  }

  /** Python has done all acts up to this number. */
  receive() {
    this.host.pageIsDrawn?.();
    document.documentElement.dataset.drawn = this.theme.name; // on paper what is dark is made light
    if (this.data.cookie) document.cookie = this.data.cookie;
    this.seq = Math.max(this.seq, this.data.seq);
    this.waiting = this.waiting.filter(([number]) => number > this.data.seq);
    const lines = this.data.overview.flatMap(([key, text]) => [
      makeElement("dt", "", {}, key.split(" ").map((part) => makeElement("kbd", "", {}, [part]))),
      makeElement("dd", "", {}, [text]),
    ]);
    this.list.replaceChildren(...lines);
    if (this.isFirst && isElsewhere(this.data.addresses)) this.tellAddress({ drawn: this.data.addresses });
    this.isFirst = false;
  }

  tellAddress(more = {}) {
    this.host.send("went", { search: location.search, seq: this.seq, ...more });
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (!isLetterForPage(event)) return;
    const act = this.data.keys[event.key];
    if (event.key === "?") this.toggleOverview();
    else if (this.dialog.open) return;
    else if (event.key === "f") toggleFullScreen();
    else if (event.key === "c") this.copyLink();
    else if (act) this.tell(act);
    else return;
    event.preventDefault();
  }

  /**
   * Every event holds all acts that Python may not have heard of: of two that follow fast, it may hear the second.
   * Those that follow one another at once are one event.
   * @param {string} act
   */
  tell(act) {
    this.seq += 1;
    this.waiting.push([this.seq, act]);
    clearTimeout(this.timer);
    this.isUntold = true;
    this.timer = setTimeout(() => this.tellNow(), PAUSE);
  }

  tellNow() {
    clearTimeout(this.timer);
    this.isUntold = false;
    this.host.send("act", { acts: this.waiting, seq: this.seq });
  }

  /** Copy the link of the screen; one that no link carries becomes a file. */
  async copyLink() {
    const { screen } = this.data;
    if (screen) saveFile(new Blob([screen], { type: "application/json" }), "screen.json");
    const isCopied = !screen && (await isDone(() => navigator.clipboard.writeText(location.href)));
    setText(this.said, screen ? say("saved") : isCopied ? say("copied") : say("not_copied"));
    clearTimeout(this.saidUntil);
    this.saidUntil = setTimeout(() => setText(this.said, ""), SAID);
  }

  toggleOverview() {
    if (this.dialog.open) this.dialog.close();
    else this.dialog.showModal();
  }
}

/** True if a person went Back or Forward before anything was drawn: Streamlit takes no notice of that.
 *  @param {Record<string, string>[]} drawn */
function isElsewhere(drawn) {
  const here = Object.fromEntries(new URLSearchParams(location.search));
  const [mine, ...theirs] = [here, ...drawn].map((address) => JSON.stringify(ours(address)));
  return drawn.length > 0 && !theirs.includes(mine);
}

/** The parameters of an address in order, without Streamlit's own. @param {Record<string, string>} address */
function ours(address) {
  return Object.entries(address)
    .filter(([name]) => !name.startsWith("embed"))
    .toSorted();
}

/** Keep the focus in a field whose help is pressed: Streamlit says nothing of a text that is left for it.
 *  @param {MouseEvent} event */
function stayInField(event) {
  if (event.target instanceof Element && event.target.closest("button[aria-label^='Help for']")) event.preventDefault();
}

function toggleFullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.();
}

export const render = rendererOf(PageKeys);
