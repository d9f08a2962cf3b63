/** @import { Host } from "../types.d.ts" */
/** @import { LinksHeader } from "./types.d.ts" */

import { makeElement } from "../shared/dom.js";
import { Picture, rendererOf } from "../shared/picture.js";
import { textsOf } from "../shared/texts.js";
import { addressWith, themeIn } from "./addresses.js";

const say = textsOf("theme_links/element");
const PATIENCE = 1500; // milliseconds after which a page that did not listen is loaded again

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
/** Once a theme was chosen here, the page wears what its address names, or else what the system wants.
 *  @type {(() => void) | null} */
let wearAddress = null;
systemIsDark.addEventListener("change", () => wearAddress?.());
/** @type {ReturnType<typeof setTimeout> | undefined} */
let waiting; // of the page, not of one picture: with another theme the page may draw another
window.addEventListener("popstate", () => {
  clearTimeout(waiting); // the theme that was chosen is not wanted any more
  wearAddress?.();
});

/** Streamlit writes the address with the theme that the page was loaded with: the one chosen since is put back.
 *  @type {(() => void) | null} */
let putBack = null;

/** The themes side by side, each a link to this page; the one in the address is marked.
 *  @extends {Picture<LinksHeader>} */
class ThemeLinks extends Picture {
  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    super(root, host, "theme_links");
    /** @type {HTMLAnchorElement[]} */ this.links = [];
    this.list = makeElement("div", "theme-links", { role: "group", "aria-label": say("theme") });
    this.root.prepend(this.list);
    // The rest of the address changes with everything that is chosen: it is read when a link is used.
    const refresh = () => this.setAddresses();
    for (const name of ["pointerenter", "focusin"]) this.list.addEventListener(name, refresh);
  }

  receive() {
    if (!this.links.length) this.links = this.data.themes.map(([value, text]) => this.makeLink(value, text));
    this.list.replaceChildren(say("theme"), ...this.links);
    this.setAddresses();
  }

  /** @param {string} value @param {string} text */
  makeLink(value, text) {
    const link = makeElement("a", "segment", { "data-theme": value, target: "_self" }, [text]);
    link.addEventListener("click", (event) => this.onClick(event, value));
    return link;
  }

  setAddresses() {
    const { themes, parameter } = this.data;
    const current = themeIn(location.href, parameter, themes);
    for (const link of this.links) {
      link.href = addressWith(location.href, parameter, themes, link.dataset.theme ?? "");
      if (link.dataset.theme === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  /** The page takes on the theme as it stands; one that does not listen is loaded again.
   *  @param {MouseEvent} event @param {string} value */
  onClick(event, value) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { themes, parameter, looks } = this.data;
    const { host } = this;
    const named = () => themeIn(location.href, parameter, themes);
    let kept = value;
    if (!putBack) onWriting(() => putBack?.());
    putBack = () => {
      if (named() === kept) return;
      history.replaceState(history.state, "", addressWith(location.href, parameter, themes, kept));
    };
    putBack();
    let worn = "";
    wearAddress = () => {
      kept = named();
      const theme = wanted(kept);
      if (theme !== worn) host.wear?.(looks[theme]);
      worn = theme;
    };
    wearAddress();
    this.setAddresses();
    clearTimeout(waiting); // another theme was wanted then
    waiting = setTimeout(() => document.documentElement.dataset.drawn === wanted(value) || location.reload(), PATIENCE);
  }
}

/** Hear of each address that is written, by Streamlit too; the browser tells of Back and Forward alone.
 *  @param {() => void} heard */
function onWriting(heard) {
  for (const name of /** @type {const} */ (["pushState", "replaceState"])) {
    const write = history[name].bind(history);
    history[name] = (...entry) => {
      write(...entry);
      heard();
    };
  }
}

/** @param {string} value */
function wanted(value) {
  return value === "dark_theme" || (value === "" && systemIsDark.matches) ? "dark" : "light";
}

export const render = rendererOf(ThemeLinks);
