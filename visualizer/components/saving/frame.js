/** A page in a frame of another one, as the output of a notebook. */

import { must } from "../shared/must.js";
import { around } from "../shared/room.js";
import { themeOn } from "../shared/theme.js";

/**
 * Take on the ground of the page around, have the frame as high as the content, and put the image away that stands there
 * where scripts do not run. Returns false where there is no such frame.
 */
export function settleInFrame() {
  const frame = frameAround();
  if (!frame) return false;
  const root = document.documentElement;
  const ground = groundBehind(frame);
  root.dataset.framed = "";
  root.dataset.theme = themeOn(ground);
  root.style.setProperty("--hl-background", ground);
  for (const image of [frame.nextElementSibling, frame.parentElement.nextElementSibling]) { // marimo wraps frames
    if (image?.className === "headlight-image") image.hidden = true;
  }
  new ResizeObserver(() => (frame.style.height = `${root.offsetHeight + 4}px`)).observe(root);
  return true;
}

/** The frame; null where the page has none, or one of another site. */
function frameAround() {
  try {
    return /** @type {any} */ (window.frameElement);
  } catch {
    return null;
  }
}

/** The colour that is seen behind an element, also where it stands in a shadow tree.
 *  @param {HTMLElement} element */
export function groundBehind(element) {
  const window = must(element.ownerDocument.defaultView, "no window");
  for (const outer of [element, ...around(element)]) {
    const { backgroundColor } = window.getComputedStyle(outer);
    if (!/^(transparent|rgba\(.*, 0\))$/.test(backgroundColor)) return backgroundColor;
  }
  return "#ffffff";
}
