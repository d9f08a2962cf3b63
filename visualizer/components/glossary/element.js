/**
 * The glossary: its button, the list of all entries, and the note that opens beside any word of the page that has one.
 *
 * Words anywhere on the page ask for their entry by an event (`shared/define.js`); nothing is asked of the server.
 */

const BOOK = "M4 5.5C6.5 4 9.5 4 12 5.5v14c-2.5-1.5-5.5-1.5-8 0zM20 5.5c-2.5-1.5-5.5-1.5-8 0v14c2.5-1.5 5.5-1.5 8 0z";

/** The state of the mounted glossary. */
function createGlossary(root) {
  const list = new EntryList();
  const note = new EntryNote((entry) => list.show(glossary.sizes, entry));
  const icon = makeSvgElement("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, [makeSvgElement("path", { d: BOOK })]);
  const button = makeElement("button", "glossary-button", { type: "button", "aria-label": "Glossary" }, [
    icon,
    makeElement("span", "glossary-word", {}, ["Glossary"]),
  ]);
  button.onclick = () => list.show(glossary.sizes);
  root.append(makeElement("div", "glossary", {}, [button, list.element, note.element]));
  const stop = subscribeDefine(({ entry: name, from }) => {
    const entry = GLOSSARY.find((one) => one.name === name);
    if (!entry) return;
    if (list.element.contains(from)) list.goTo(entry);
    else note.show(entry, glossary.sizes, from);
  });
  const glossary = { root, sizes: {}, destroy: stop };
  return glossary;
}

export default function glossary({ data, parentElement }) {
  const { instance, cleanUp } = instanceFor(parentElement, createGlossary);
  const { key, sizes } = unpack(data);
  applyPalette(instance.root, readTheme(instance.root));
  instance.sizes = sizes;
  announcePainted("glossary", key);
  return cleanUp;
}
