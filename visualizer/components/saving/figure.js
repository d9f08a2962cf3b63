/** @import { Host } from "../types.d.ts" */

import { makeElement, sheetOf } from "../shared/dom.js";
import { drawAll } from "../shared/near.js";
import { textsOf } from "../shared/texts.js";
import { wearGround } from "./grounds.js";
import { CONTROLS, MARGIN, svgOf } from "./svg.js";

const say = textsOf("saving/figure");
const MOST_WIDTH = 4096; // pixels

/**
 * A picture on the page, as who saves it sees it.
 * @typedef {object} Saved
 * @property {(root: HTMLElement, bytes: Uint8Array, host: Host) => any} render what draws it
 * @property {string} style
 * @property {Host["colors"]} colors
 * @property {HTMLElement} root where it is drawn now
 * @property {string} name of its file
 * @property {() => string} title what it would be called
 * @property {() => Uint8Array} bytes what it draws now
 * @property {((title: string) => Promise<string>) | null} page makes it a page of its own, under a title
 */

/**
 * The look of a figure; `width` is in pixels, with the margin.
 * @typedef {{ width: number, theme: "light" | "dark", title: string, caption: string, hasLegend: boolean }} Look
 */

/** An SVG as a text, and its size in pixels. @typedef {{ text: string, width: number, height: number }} Figure */

/**
 * The figure of a picture, which is drawn once more, in lines and letters, off the screen.
 * @param {Saved} saved @param {Look} look
 * @returns {Promise<Figure>}
 */
export async function figureOf(saved, look) {
  const { colors, root: shown } = saved;
  const root = makeElement("div", "headlight", { "data-in-lines": "" });
  const title = makeElement("div", "", {}, [look.title]);
  const caption = makeElement("div", "", {}, [look.caption]);
  Object.assign(title.style, { marginBottom: "8px", fontWeight: "600", fontSize: "14px" });
  Object.assign(caption.style, { marginTop: "10px", fontSize: "12px" });
  title.hidden = !look.title;
  caption.hidden = !look.caption;
  const whole = makeElement("div", "", {}, [title, root, caption]);
  const ground = wearGround(root, look.theme);
  const { fontFamily } = getComputedStyle(shown);
  Object.assign(whole.style, { color: ground.text, fontFamily, fontSize: "14px", lineHeight: "1.5" });
  root.style.setProperty("--hl-font", fontFamily);
  const place = makeElement("div", "", { "aria-hidden": "true", inert: "" });
  const away = { position: "fixed", top: "0", left: "-30000px", width: `${look.width - 2 * MARGIN}px` };
  Object.assign(place.style, { ...away, colorScheme: look.theme });
  const shadow = place.attachShadow({ mode: "open" });
  const leftOut = look.hasLegend ? CONTROLS : [...CONTROLS, ".legend", ".chips"];
  const ofFigure = `:is(${leftOut}){display:none!important}*{content-visibility:visible!important;max-height:none!important}`;
  shadow.adoptedStyleSheets = [sheetOf(saved.style), sheetOf(ofFigure)];
  shadow.append(whole);
  document.body.append(place);
  const picture = saved.render(root, saved.bytes(), { colors, send: () => {}, keep: () => {} });
  try {
    await isDrawn(root);
    place.style.width = `${Math.min(look.width - 2 * MARGIN + hiddenWidth(root), MOST_WIDTH)}px`;
    await isDrawn(root);
    return svgOf(whole, { background: ground.background, description: say("made_with", { link: location.href }) });
  } finally {
    picture.destroy();
    place.remove();
  }
}

/** The pixels of a picture that have to be scrolled to, which a figure has room for. @param {HTMLElement} root */
function hiddenWidth(root) {
  const scrolled = [...root.querySelectorAll("*")].filter((one) => getComputedStyle(one).overflowX === "auto");
  return Math.max(0, ...scrolled.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth));
}

/** @param {HTMLElement} root */
async function isDrawn(root) {
  do {
    await frame();
    drawAll();
    await frame();
  } while (root.ariaBusy === "true");
  drawAll();
  await document.fonts.ready;
}

function frame() {
  return new Promise((resolve) => requestAnimationFrame(resolve));
}

/**
 * A figure as pixels, `scale` for each pixel of CSS.
 * @param {Figure} figure @param {number} scale
 * @returns {Promise<Blob>}
 */
export async function pngOf({ text, width, height }, scale) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(say("too_large")))), "image/png"));
}
