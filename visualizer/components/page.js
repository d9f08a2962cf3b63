/** A page as the host of pictures: each in a section with its bytes as base64. */

/** @import { Host, PictureModule } from "./types.d.ts" */

import { settleInFrame } from "./saving/frame.js";
import { SaveMenu } from "./saving/menu.js";
import { sheetOf } from "./shared/dom.js";
import { must } from "./shared/must.js";
import { withHeader } from "./shared/payload.js";

/** Draw every picture of the page, and return them by their keys; a section names its module.
 *  @param {Record<string, PictureModule>} modules @param {Host["colors"]} colors */
export function show(modules, colors) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const wear = () => (document.documentElement.dataset.theme = dark.matches ? "dark" : "light");
  const isOnItsOwn = !settleInFrame();
  if (isOnItsOwn) wear();
  const sheets = new Map(Object.entries(modules).map(([name, { style }]) => [name, sheetOf(style)]));
  /** @type {NodeListOf<HTMLElement>} */
  const sections = document.querySelectorAll(".picture");
  const drawn = Array.from(sections, (section) => {
    const module = must(section.dataset.module, "a section names no module");
    return draw(section, modules[module], must(sheets.get(module), `no module ${module}`), colors);
  });
  dark.addEventListener("change", () => {
    if (isOnItsOwn) wear();
    drawn.forEach(({ picture, bytes }) => picture.update(bytes));
  });
  return new Map(drawn.map(({ key, picture }) => [key, picture]));
}

/** @param {HTMLElement} section @param {PictureModule} module @param {CSSStyleSheet} sheet
 *  @param {Host["colors"]} colors */
function draw(section, { render, style }, sheet, colors) {
  const data = section.querySelector("script")?.textContent ?? "";
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const root = document.createElement("div");
  root.className = "headlight";
  // The style sheets of pictures do not know each other.
  const shadow = section.appendChild(document.createElement("div")).attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [sheet];
  shadow.append(root);
  const { key = "" } = section.dataset;
  const picture = render(root, bytes, hostOf(section, colors));
  const saved = { render, style, colors, root, name: key, title: () => picture.figureTitle, bytes: () => withHeader(bytes, picture.seen), page: null };
  if (picture.isSaved) section.append(new SaveMenu(saved).element);
  return { key, bytes, picture };
}

/** @param {HTMLElement} section @param {Host["colors"]} colors */
function hostOf(section, colors) {
  const { key } = section.dataset;
  /** @param {string} event */
  const tell = (event) => (/** @type {string} */ name, /** @type {object} */ value) => section.dispatchEvent(
    new CustomEvent(event, { detail: { key, name, value }, bubbles: true }));
  return { colors, send: tell("headlight:send"), keep: tell("headlight:keep") };
}
