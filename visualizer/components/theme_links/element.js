import { makeElement } from "../shared/dom.js";
import { Picture, startPicture } from "../shared/picture.js";
import { addressWith, themeIn } from "./addresses.js";

/** The themes side by side, each a link to this page; the one in the address is marked. */
class ThemeLinks extends Picture {
  constructor(root, host) {
    super(root, host, "theme_links");
    this.list = makeElement("div", "theme-links", { role: "group", "aria-label": "Theme" });
    this.root.prepend(this.list);
    // The rest of the address changes with everything that is chosen: it is read when a link is used.
    const refresh = () => this.setAddresses();
    for (const name of ["pointerenter", "focusin"]) this.list.addEventListener(name, refresh);
  }

  receive() {
    const { themes, parameter } = this.data;
    const current = themeIn(location.href, parameter, themes);
    this.links = themes.map(([value, text]) => {
      const link = makeElement("a", "segment", { "data-theme": value, target: "_self" }, [text]);
      if (value === current) link.setAttribute("aria-current", "true");
      return link;
    });
    this.list.replaceChildren("Theme", ...this.links);
    this.setAddresses();
  }

  setAddresses() {
    const { themes, parameter } = this.data;
    for (const link of this.links) link.href = addressWith(location.href, parameter, themes, link.dataset.theme);
  }
}

/** Draw the picture in `root`. */
export function render(root, bytes, host) {
  return startPicture(ThemeLinks, root, bytes, host);
}
