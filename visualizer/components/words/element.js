/** Lines of words: prose, symbols of a formula, shapes. What opens the glossary is a button. */

import { wordNodes } from "../shared/define.js";
import { announcePainted, makeElement } from "../shared/dom.js";
import { unpack } from "../shared/payload.js";
import { applyTheme } from "../shared/theme.js";

/** Draw the picture in `root`. */
export function render(root, bytes, host) {
  let written = "";
  const update = (latest) => {
    applyTheme(root, host);
    const { key, look, lines } = unpack(latest);
    const content = JSON.stringify([look, lines]);
    // Not when the same stands there already: a button that has the focus keeps it.
    if (content !== written) root.replaceChildren(makeLines(look, lines));
    written = content;
    announcePainted("words", key);
  };
  update(bytes);
  return { update, destroy: () => {} };
}

function makeLines(look, lines) {
  const drawn = lines.map((line) => makeElement("div", "line", {}, wordNodes(line)));
  return makeElement("div", `words words-${look}`, {}, drawn);
}
