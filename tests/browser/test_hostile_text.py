"""A text may hold anything: it is drawn as it was typed, never interpreted, and nothing breaks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import choose_view, panels, rerun, settle, tokens, type_text
from tests.reading import point_at, tooltip
from visualizer.runs.tokens import encode
from visualizer.settings.fields import MAX_TEXT
from visualizer.settings.settings import Settings

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
EVERYTHING = " ".join([ATTACK, "**b** $x$ :red[y] :material/home: [t](https://example.com) שלום 👩‍👩‍👧‍👦 a\u200bb"])

_ELEMENTS = """() => {
  const tags = "img script iframe object embed svg math strong em b i u s a del mark code pre h1 h2 ol".split(" ");
  const count = Object.fromEntries([...tags, "katex", "icon", "colored"].map((name) => [name, 0]));
  const colored = "[style*=color]:not(.headlight *)";
  const classes = { katex: ".katex", icon: "[data-testid=stIconMaterial]", colored };
  const visit = (root) => {
    for (const tag of tags) count[tag] += root.querySelectorAll(`${tag}:not(.tooltip *)`).length;
    for (const [name, selector] of Object.entries(classes)) count[name] += root.querySelectorAll(selector).length;
    for (const element of root.querySelectorAll("*")) if (element.shadowRoot) visit(element.shadowRoot);
  };
  visit(document.querySelector("[data-testid=stMain]"));
  return count;
}"""
"""Counts what a text could turn into, in the main part of the page and inside every component."""


def elements(page: Page) -> dict[str, int]:
    settle(page)
    found: dict[str, int] = page.evaluate(_ELEMENTS)
    return found


def test_a_text_is_shown_exactly_and_becomes_no_element(open_app):
    page = open_app(text="plain words only")
    harmless = elements(page)
    for texts in (MARKUP, LETTERS):
        type_text(page, " ".join(texts))
        held = page.locator(".st-key-text textarea").input_value()
        shown = tokens(page)
        assert shown == list(encode(Settings(text=held)).sources[0].labels)
        assert elements(page) == harmless
        for row in ends_of(texts):
            point_at(panels(page, "picture").last, row, 0, (len(shown), len(shown)))
            expect(tooltip(page).locator("bdi").first).to_have_text(re.compile(f"^{re.escape(shown[row])}$"))
        page.mouse.move(1, 1)
        assert page.evaluate("window.attacked") is None


def test_the_name_of_a_line_is_drawn_as_typed(open_app):
    harmless = elements(open_app(text="plain words\nand more"))
    page = open_app(text="**b** $x$\n:red[y] <i>")
    names = page.locator(".st-key-batch").get_by_role("radio")
    expect(names).to_have_text([re.compile(re.escape(name)) for name in ("**b** $x$", ":red[y] <i>")])
    assert elements(page) == harmless


def ends_of(texts: Sequence[str]) -> list[int]:
    """The place of the last token of each of these texts, where they are one."""
    counts = [len(encode(Settings(text=text)).sources[0].labels) for text in texts]
    return [end - 1 for end in accumulate(counts)]


def test_no_view_interprets_a_text(open_app):
    page = open_app(text="nothing yet", view="compare", query=3)
    for view, title in {"compare": "Compare masks", "heads": "Heads", "step": "Step through"}.items():
        if view != "compare":
            choose_view(page, title)
        type_text(page, "one two three four five six seven")
        before = elements(page)
        type_text(page, EVERYTHING)
        after = elements(page)
        accounts = before["strong"] - after["strong"] if view == "compare" else 0  # two sentences, or one
        assert after == before | {"strong": before["strong"] - accounts}
    page.locator(".stage-map").focus()
    with rerun(page, "picture"):
        page.keyboard.press("End")
    expect(page.locator(".js-plotly-plot .yaxislayer-above, .js-plotly-plot .ytick").first).to_be_attached()
    shown = page.locator(".js-plotly-plot").inner_text()
    assert "onerror" in shown or "img" in shown
    assert page.locator(".js-plotly-plot img, .js-plotly-plot a, .js-plotly-plot b").count() == 0
    assert page.evaluate("window.attacked") is None


EMPTY = "There is nothing to run yet: type at least one word into the text."
UNDRAWN = {
    "": EMPTY,
    " \n\t  ": EMPTY,
    "x " * (MAX_TEXT // 2): "The text has 10,000 tokens and 1,024 is the most that is drawn: shorten it.",
}


def test_what_cannot_be_drawn_gets_one_clear_sentence(open_app):
    page = open_app()
    errors = page.get_by_test_id("stAlertContentError")
    for text, sentence in UNDRAWN.items():
        type_text(page, text)
        expect(errors).to_have_count(1)
        assert errors.inner_text().replace("\u2060", "").endswith(sentence)
        expect(panels(page, "picture")).to_have_count(0)
    type_text(page, "usable again")
    expect(errors).to_have_count(0)
    assert tokens(page) == ["usable", "again"]
    expect(panels(page, "picture").last).to_be_visible()


def test_one_word_of_many_letters_is_one_short_token(open_app):
    page = open_app()
    type_text(page, "x" * MAX_TEXT)
    assert tokens(page) == ["x" * 23 + "…"]
    expect(page.get_by_text("The text is too long for a link")).to_be_visible()
    type_text(page, "usable again")
    assert tokens(page) == ["usable", "again"]
