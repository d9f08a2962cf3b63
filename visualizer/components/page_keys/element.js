import { makeElement } from "../shared/dom.js";
import { isLetterForPage } from "../shared/keys.js";
import { Picture, startPicture } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";
import { refuseTooLong } from "./longest.js";

const say = textsOf("page_keys/element");
const PAUSE = 60; // milliseconds within which keys are told together

/**
 * Parts of the whole page: an overview of its keys, full screen, what Python does for the other keys, how long a
 * text may be, what the browser keeps, and that a person went Back or Forward.
 */
class PageKeys extends Picture {
  constructor(root, host) {
    super(root, host, "page_keys");
    this.seq = 0;
    this.waiting = [];
    this.isUntold = false;
    this.build();
    const onKey = (event) => this.onKey(event);
    document.addEventListener("keydown", onKey);
    const onHistory = () => this.host.send("went", { search: location.search, seq: this.seq });
    window.addEventListener("popstate", onHistory, true);
    const onInput = (event) => refuseTooLong(event, this.data.longest);
    document.addEventListener("beforeinput", onInput, true);
    this.endings.push(
      () => document.removeEventListener("keydown", onKey),
      () => window.removeEventListener("popstate", onHistory, true),
      () => document.removeEventListener("beforeinput", onInput, true),
      () => this.isUntold && this.tellNow(),
    );
  }

  build() {
    this.list = makeElement("dl", "page-keys-list");
    const close = makeElement("button", "page-keys-close", { type: "button" }, [say("close")]);
    const title = makeElement("h2", "page-keys-title", {}, [say("title")]);
    this.dialog = makeElement("dialog", "page-keys-overview", { "aria-label": say("title") }, [title, this.list, close]);
    close.addEventListener("click", () => this.dialog.close());
    this.root.prepend(this.dialog);
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
  }

  onKey(event) {
    if (!isLetterForPage(event)) return;
    const act = this.data.keys[event.key];
    if (event.key === "?") this.toggleOverview();
    else if (this.dialog.open) return;
    else if (event.key === "f") toggleFullScreen();
    else if (act) this.tell(act);
    else return;
    event.preventDefault();
  }

  /**
   * Every event holds all acts that Python may not have heard of: of two that follow fast, it may hear the second.
   * Those that follow one another at once are one event.
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

  toggleOverview() {
    if (this.dialog.open) this.dialog.close();
    else this.dialog.showModal();
  }
}

function toggleFullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.();
}

/** Draw the picture in `root`. */
export function render(root, bytes, host) {
  return startPicture(PageKeys, root, bytes, host);
}
