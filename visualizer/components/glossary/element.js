/**
 * The glossary: its button, the list of all entries, and the note that opens beside any word of the page that has one.
 *
 * Words anywhere on the page ask for their entry by an event (`shared/define.js`); nothing is asked of the server.
 */

import { subscribeDefine } from "../shared/define.js";
import { announcePainted, makeElement, makeSvgElement } from "../shared/dom.js";
import { unpack } from "../shared/payload.js";
import { applyTheme } from "../shared/theme.js";
import { EntryList } from "./list.js";
import { EntryNote } from "./note.js";

const BOOK = "M4 5.5C6.5 4 9.5 4 12 5.5v14c-2.5-1.5-5.5-1.5-8 0zM20 5.5c-2.5-1.5-5.5-1.5-8 0v14c2.5-1.5 5.5-1.5 8 0z";

/** Draw the button in `root`; the list and the note come with it. */
export function render(root, bytes, host) {
  let entries = [];
  let sizes = {};
  const list = new EntryList();
  const note = new EntryNote((entry) => list.show(entries, sizes, entry));
  root.append(makeElement("div", "glossary", {}, [makeButton(() => list.show(entries, sizes)), list.element, note.element]));
  const destroy = subscribeDefine(({ entry: name, from }) => {
    const entry = entries.find((one) => one.name === name);
    if (!entry) return;
    if (list.element.contains(from)) list.goTo(entry);
    else note.show(entry, sizes, from);
  });
  const update = (latest) => {
    applyTheme(root, host);
    const content = unpack(latest);
    ({ entries, sizes } = content);
    announcePainted("glossary", content.key);
  };
  update(bytes);
  return { update, destroy };
}

function makeButton(open) {
  const icon = makeSvgElement("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, [makeSvgElement("path", { d: BOOK })]);
  const button = makeElement("button", "glossary-button", { type: "button", "aria-label": "Glossary" }, [
    icon,
    makeElement("span", "glossary-word", {}, ["Glossary"]),
  ]);
  button.addEventListener("click", open);
  return button;
}
