/** A page as the host of pictures: each in a section with its bytes as base64. */

import { must } from "./shared/must.js";

/**
 * Draw every picture of the page, and return them by their keys.
 * modules: {render, style} by the name of the module that a section names.
 */
export function show(modules, colors) {
  const sheets = new Map(Object.entries(modules).map(([name, { style }]) => [name, makeSheet(style)]));
  /** @type {NodeListOf<HTMLElement>} */
  const sections = document.querySelectorAll(".picture");
  const drawn = Array.from(sections, (section) => {
    const module = must(section.dataset.module, "a section names no module");
    return draw(section, modules[module].render, sheets.get(module), colors);
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => drawn.forEach(({ picture, bytes }) => picture.update(bytes)));
  return new Map(drawn.map(({ key, picture }) => [key, picture]));
}

function makeSheet(style) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  return sheet;
}

function draw(section, render, sheet, colors) {
  const bytes = Uint8Array.from(atob(section.querySelector("script").textContent), (letter) => letter.charCodeAt(0));
  const root = document.createElement("div");
  root.className = "headlight";
  // The style sheets of pictures do not know each other.
  const shadow = section.appendChild(document.createElement("div")).attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [sheet];
  shadow.append(root);
  return { key: section.dataset.key, bytes, picture: render(root, bytes, hostOf(section, colors)) };
}

function hostOf(section, colors) {
  const { key } = section.dataset;
  const tell = (event) => (name, value) => section.dispatchEvent(
    new CustomEvent(event, { detail: { key, name, value }, bubbles: true }));
  return { colors, send: tell("headlight:send"), keep: tell("headlight:keep") };
}
