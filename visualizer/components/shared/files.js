import { makeElement } from "./dom.js";

const KEPT = 60_000; // milliseconds for which a browser that is slow finds a file that it was handed

/** Hand a file to the browser, to be saved. @param {Blob} blob @param {string} name */
export function saveFile(blob, name) {
  const link = makeElement("a", "", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
}

/** True if something is done that a browser may refuse, such as to copy: it does where the page is not secure.
 *  @param {() => Promise<unknown>} act */
export async function isDone(act) {
  try {
    await act();
    return true;
  } catch {
    return false;
  }
}
