"""Texts that an app could take for markup, and letters that a page could lose or misplace."""

from __future__ import annotations

ATTACK = "<img src=x onerror=window.attacked=1>"
MARKUP = (
    "<script>window.attacked = 1</script> after",
    f"{ATTACK} <svg onload=window.attacked=1></svg>",
    "https://example.com www.example.com <a href='https://example.com'>here</a> me@example.com",
    "**bold** _it_ `code` # head [text](https://example.com) ![](https://example.com/x.png)",
    "$x$ $$\\frac{1}{2}$$ \\(y\\)",
    ":red[x] :material/home: :streamlit: :smile: :blue-background[y] -> <- --",
    "&lt;b&gt; &amp; &#60;i&#62; %{x} %7B",
)
LETTERS = (
    "שלום עולם مرحبا \u202eabc\u202c end",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪 1️⃣ é",
    "a\u200bb \u200b \ufeff \u00ad c\u2060d",
    "a\x01b \x07 \x1b[31m \x7f \u0085 \u2028 e",
    "Z̸̡̢̛̗̘̙̜͔̖̟̠a̵l̶ ́ x",
    "W" * 300 + " " + "漢字仮名" * 12,
)

ELEMENTS = """root => {
  const tags = "img script iframe object embed svg math strong em b i u s a del mark code pre h1 h2 ol".split(" ");
  const count = Object.fromEntries([...tags, "katex", "icon", "colored"].map((name) => [name, 0]));
  const colored = "[style*=color]:not(.headlight *)";
  const classes = { katex: ".katex", icon: "[data-testid=stIconMaterial]", colored };
  const visit = (root) => {
    for (const tag of tags) count[tag] += root.querySelectorAll(`${tag}:not(.tooltip *)`).length;
    for (const [name, selector] of Object.entries(classes)) count[name] += root.querySelectorAll(selector).length;
    for (const element of root.querySelectorAll("*")) if (element.shadowRoot) visit(element.shadowRoot);
  };
  visit(root);
  return count;
}"""
"""Counts what a text could turn into, in a part of a page and in every picture there."""
