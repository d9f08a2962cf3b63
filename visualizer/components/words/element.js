/** Lines of words: prose, symbols of a formula, shapes. What opens the glossary is a button. */

/** Write the lines, unless they stand there already: a button that has the focus keeps it. */
function write(instance, { look, lines }) {
  const content = JSON.stringify([look, lines]);
  if (instance.content === content) return;
  instance.content = content;
  const drawn = lines.map((line) => makeElement("div", "line", {}, wordNodes(line)));
  instance.root.replaceChildren(makeElement("div", `words words-${look}`, {}, drawn));
}

export default function words({ data, parentElement }) {
  const { instance, cleanUp } = instanceFor(parentElement, (root) => ({ root, content: "" }));
  const content = unpack(data);
  applyPalette(instance.root, readTheme(instance.root));
  write(instance, content);
  announcePainted("words", content.key);
  return cleanUp;
}
