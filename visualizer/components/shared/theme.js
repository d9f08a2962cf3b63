/** @import { Host, PaletteName, Theme } from "../types.d.ts" */

import { contextOf } from "../marks/pen.js";

/** @type {OffscreenCanvasRenderingContext2D | undefined} */
let probe;
const tables = new Map();
const ROOT_CURVE_STEPS = 4096;

/** Red, green and blue from 0 to 255 of a CSS colour, as the browser reads it. @param {string} text */
export function parseColor(text) {
  return [...pixelIn(text).subarray(0, 3)];
}

/** Red, green, blue and opacity from 0 to 255 of a CSS colour, as the browser reads it. @param {string} text */
export function pixelIn(text) {
  probe ??= contextOf(new OffscreenCanvas(1, 1), { willReadFrequently: true });
  const context = probe;
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = text;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}

/**
 * The theme that is read best on a colour.
 * @param {string} color
 * @returns {Theme["name"]}
 */
export function themeOn(color) {
  const [red, green, blue] = parseColor(color);
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128 ? "dark" : "light";
}

/**
 * Give a picture its colours, for style sheets as `--hl-*` variables (roles, heads, masks, hatch, warning).
 * Returns what a canvas needs of them: `name` is "light" or "dark", `roles` the colour grammar's text colours. The
 * host has said by `--hl-background`, `--hl-text` and `--hl-font` what is around the picture.
 * @param {HTMLElement} root @param {Host} host
 * @returns {Theme}
 */
export function applyTheme(root, { colors }) {
  const style = getComputedStyle(root);
  /** @param {string} name @param {string} fallback */
  const variable = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
  const background = variable("--hl-background", "#ffffff");
  const name = themeOn(background);
  const theme = {
    name,
    background,
    text: variable("--hl-text", name === "dark" ? "#fafafa" : "#31333f"),
    font: variable("--hl-font", "sans-serif"),
    dashes: colors.dashes,
    ...colors.themes[name],
  };
  setVariables(root, theme);
  return theme;
}

/** @param {HTMLElement} root @param {Theme} theme */
function setVariables(root, theme) {
  root.dataset.theme = theme.name;
  for (const [role, color] of Object.entries(theme.roles)) root.style.setProperty(`--hl-${role}`, color);
  theme.heads.forEach((color, head) => root.style.setProperty(`--hl-head-${head}`, color));
  for (const [name, color] of Object.entries(theme.masks)) root.style.setProperty(`--hl-mask-${name}`, color);
  root.style.setProperty("--hl-hatch", theme.hatch);
  root.style.setProperty("--hl-hatch-ground", theme.hatch_ground);
  root.style.setProperty("--hl-warning", theme.warning);
}

/** The colour of a head; after twelve heads the colours begin again. @param {Theme} theme @param {number} head */
export function headColor(theme, head) {
  return theme.heads[head % theme.heads.length];
}

/** The line of a head: lengths in pixels that are drawn and left out, in turn; none for an unbroken one.
 *  @param {Theme} theme @param {number} head */
export function headDashes({ dashes }, head) {
  return dashes[head % dashes.length];
}

/**
 * A table of canvas pixels (ABGR) for a scale, "sequential", "sequential_neutral" or "diverging": 256 entries, or
 * more for the curve "root", whose steps follow the square root.
 * @param {Theme} theme @param {PaletteName} palette @param {string} [curve]
 * @returns {Uint32Array}
 */
export function colorTable(theme, palette, curve = "linear") {
  const cacheKey = `${theme.name} ${palette} ${curve}`;
  if (!tables.has(cacheKey)) {
    tables.set(cacheKey, curve === "root" ? rootTable(colorTable(theme, palette)) : decodeTable(theme[palette]));
  }
  return tables.get(cacheKey);
}

/** The colours spaced by the square root, in enough steps that small numbers keep distinct colours.
 *  @param {Uint32Array} colors */
function rootTable(colors) {
  return Uint32Array.from({ length: ROOT_CURVE_STEPS }, (_, i) => {
    return colors[Math.round(Math.sqrt(i / (ROOT_CURVE_STEPS - 1)) * (colors.length - 1))];
  });
}

/** Pixels from 256 colours written one after the other as rrggbb. @param {string} hexText */
function decodeTable(hexText) {
  return Uint32Array.from({ length: hexText.length / 6 }, (_, i) => pixelOf(hexText.slice(6 * i, 6 * i + 6)));
}

/** The canvas pixel (opaque, ABGR) of a colour written rrggbb, with or without a leading #. @param {string} hex */
export function pixelOf(hex) {
  const value = parseInt(hex.replace("#", ""), 16);
  return (0xff000000 | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
