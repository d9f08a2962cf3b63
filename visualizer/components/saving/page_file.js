/** A picture as an HTML file that holds all it needs: what draws it, its numbers, and the link that made it. */

import { packedAgain, takenApart, toBase64 } from "../shared/payload.js";
import { textsOf } from "../shared/texts.js";

const say = textsOf("saving/page_file");
const MUCH = 2 ** 20; // bytes of numbers that travel in steps of 16 bits, where the server can

/**
 * @param {{ template: string, style: string, script: string }} page what every page has; the script draws all of them
 * @param {{ module: string, key: string, bytes: Uint8Array, title: string }} picture
 */
export async function pageFile({ template, style, script }, { module, key, bytes, title }) {
  const data = await withNumbers(bytes);
  const heading = title || say("title");
  const section = `<section class="picture" data-module="${escaped(module)}" data-key="${escaped(key)}">
<script type="text/plain">${toBase64(data)}</script></section>`;
  /** @type {Record<string, string>} */
  const parts = {
    title: escaped(heading),
    link: escaped(location.href),
    style,
    pictures: section,
    script: `${script.replaceAll("</script", "<\\/script")}\nshow(PICTURES, COLORS);`,
  };
  return template.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
}

/** The bytes of a picture with the numbers that it would ask for, and without what asks for others.
 *  @param {Uint8Array} bytes */
async function withNumbers(bytes) {
  const { header, arrays } = takenApart(bytes);
  const alone = { ...header, dials: [], dial_address: "", live: null };
  if (!alone.address) return packedAgain(alone, arrays);
  const { address, ...others } = alone;
  const answer = takenApart(await numbersAt(address));
  return packedAgain({ ...others, ...answer.header }, answer.arrays);
}

/** @param {string} address */
async function numbersAt(address) {
  const url = new URL(address, document.baseURI);
  const exact = await bytesAt(url);
  if (exact.length <= MUCH) return exact;
  url.searchParams.set("precision", "16");
  return bytesAt(url).catch(() => exact); // only numbers from 0 to 1 come in steps
}

/** @param {URL} url */
async function bytesAt(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(await response.text());
  return new Uint8Array(await response.arrayBuffer());
}

/** @param {string} text */
function escaped(text) {
  /** @type {Record<string, string>} */
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (letter) => names[letter]);
}
