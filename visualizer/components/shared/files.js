import { makeElement } from "./dom.js";

const KEPT = 60_000; // milliseconds for which a browser that is slow finds a file that it was handed

/** Hand a file to the browser, to be saved. */
export function saveFile(blob, name) {
  const link = makeElement("a", "", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
}
