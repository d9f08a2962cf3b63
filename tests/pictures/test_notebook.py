"""A cell's output in a page like a notebook: interactive, as dark as the page, an image without scripts."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, expect

import headlight
from tests.pages import fresh_context, watched
from tests.pictures.static_page import ADDRESS
from tests.reading import close_to, point_at, tooltip_numbers

TOKENS = ("the", "<b>cat", "sat")
WEIGHTS = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(1)).softmax(-1)
OUTPUT = "<body style='background:{ground}'><p>In [1]</p><div id=output>{output}</div><p id=after>In [2]</p></body>"


def notebook(browser: Browser, path: Path, output: str, *, ground: str = "white"):
    """A page with the output of a cell, of which neither an error nor a request is expected."""
    path.write_text(OUTPUT.format(ground=ground, output=output), encoding="utf-8")
    return fresh_context(browser), path.as_uri()


@pytest.mark.parametrize(
    ("ground", "theme", "around"),
    [("white", "light", ""), ("#111", "dark", ""), ("rgb(30, 30, 46)", "dark", "div")],
    ids=["light", "dark", "the frame in a box of its own, as in marimo"],
)
def test_a_cell_shows_its_numbers_without_a_request(browser, tmp_path: Path, ground: str, theme: str, around: str):
    shown = headlight.attention(WEIGHTS, TOKENS, mask=torch.ones(3, 3).tril().bool())
    html = shown._repr_html_()
    if around:
        html = re.sub(
            r"<iframe.*?</iframe>", lambda frame: f"<{around}>{frame[0]}</{around}>", html, flags=re.DOTALL
        )
    context, address = notebook(browser, tmp_path / "cell.html", html, ground=ground)
    with context as opened, watched(page := opened.new_page(), address):
        page.goto(address)
        frame = page.frame_locator("iframe")
        expect(frame.locator("html")).to_have_attribute("data-theme", theme)
        expect(frame.locator(".matrix:visible")).to_have_count(2)
        point_at(frame.locator(".matrix:visible").nth(1), 2, 1, (3, 3))
        number = frame.locator(".tooltip:popover-open .tooltip-value b")
        assert float(number.inner_text()) == close_to(WEIGHTS[1, 2, 1].item())
        expect(page.locator(".headlight-image")).to_be_hidden()
        is_as_high = (
            "frame => Math.abs(frame.contentDocument.documentElement.offsetHeight - frame.offsetHeight) < 9"
        )
        page.wait_for_function(f"() => ({is_as_high})(document.querySelector('iframe'))")
        assert grounds_of(page) == [grounds_of(page)[0]] * 2


def test_the_button_below_a_picture_is_whole(browser: Browser, tmp_path: Path):
    context, address = notebook(browser, tmp_path / "cell.html", headlight.attention(WEIGHTS)._repr_html_())
    with context as opened, watched(page := opened.new_page(), address):
        page.goto(address)
        expect(page.frame_locator("iframe").locator(".matrix:visible")).to_have_count(2)
        is_whole = """() => {
            const frame = document.querySelector("iframe");
            const button = frame.contentDocument.querySelector(".saving-open").getBoundingClientRect();
            return button.height > 0 && button.bottom <= frame.clientHeight;
        }"""
        page.wait_for_function(is_whole)


def grounds_of(page: Page) -> list[str]:
    """The colours of the page's ground and of the frame's."""
    of = "element => getComputedStyle(element).backgroundColor"
    return [page.locator("body").evaluate(of), page.frame_locator("iframe").locator("body").evaluate(of)]


def test_where_scripts_are_not_trusted_an_image_stands_there(browser: Browser, tmp_path: Path):
    """Notebooks take frames and scripts out of what they do not trust."""
    html = headlight.attention(WEIGHTS, TOKENS)._repr_html_()
    sanitized = re.sub(r"<iframe.*?</iframe>", "", html, flags=re.DOTALL)
    context, address = notebook(browser, tmp_path / "cell.html", sanitized)
    with context as opened, watched(page := opened.new_page(), address):
        page.goto(address)
        images = page.locator(".headlight-image img")
        expect(images).to_have_count(2)
        expect(images.first).to_be_visible()
        assert "largest weight" in str(images.first.get_attribute("title"))


def test_several_cells_of_one_page_do_not_know_each_other(browser: Browser, tmp_path: Path):
    cells = [headlight.attention(WEIGHTS, TOKENS), headlight.show(text="a b c", heads=2, view="way")]
    output = "".join(shown._repr_html_() for shown in cells)
    context, address = notebook(browser, tmp_path / "cells.html", output)
    with context as opened, watched(page := opened.new_page(), address):
        page.goto(address)
        expect(page.frame_locator("iframe >> nth=0").locator(".matrix:visible")).to_have_count(2)
        expect(page.frame_locator("iframe >> nth=1").locator(".headlight").first).to_be_visible()


def test_a_saved_output_is_a_page(browser: Browser, tmp_path: Path):
    file = tmp_path / "page.html"
    headlight.show(text="a b c", heads=2, mask="causal", title="Heads").save(file)
    with fresh_context(browser) as opened, watched(page := opened.new_page(), file.as_uri()):
        page.goto(file.as_uri())
        expect(page.locator("h1")).to_have_text("Heads")
        point_at(page.locator(".matrix:visible").first, 2, 1, (3, 3))
        assert len(tooltip_numbers(page)) == 1


WIDGET = """<!doctype html><body style="background: {ground}"><div id=output></div><script type=module>
const widget = (await import("./widget.js")).default;
const bytes = Uint8Array.from(atob("{data}"), (letter) => letter.charCodeAt(0));
const kept = {{ data: new DataView(bytes.buffer) }};
window.saved = [];
const model = {{
  get: (name) => kept[name],
  set: (name, value) => (kept[name] = value),
  save_changes: () => saved.push(kept.event),
  on: () => {{}},
  off: () => {{}},
}};
const output = document.querySelector("#output"); // JupyterLab draws in the page, marimo in a tree of its own
const cell = document.createElement("div");
({in_a_tree} ? output.attachShadow({{ mode: "open" }}) : output).append(cell);
widget.render({{ model, el: cell }});
</script></body>"""


@pytest.mark.parametrize(
    ("ground", "theme", "in_a_tree"),
    [("white", "light", "false"), ("#111", "dark", "false"), ("#111", "dark", "true")],
)
def test_a_mask_is_painted_in_a_cell_and_read_as_an_array(browser, ground: str, theme: str, in_a_tree: str):
    widget = headlight.paint(TOKENS)
    text = WIDGET.format(ground=ground, in_a_tree=in_a_tree, data=base64.b64encode(widget.data).decode())
    with fresh_context(browser) as opened, watched(page := opened.new_page(), ADDRESS):
        page.route(ADDRESS, lambda route: route.fulfill(body=text, content_type="text/html"))
        page.route(
            f"{ADDRESS}widget.js", lambda route: route.fulfill(body=widget._esm, content_type="text/javascript")
        )
        page.goto(ADDRESS)
        expect(page.locator(".headlight")).to_have_attribute("data-theme", theme)
        page.get_by_role("application").first.focus()
        page.keyboard.press("Space")
        page.wait_for_function("() => saved.length")
        widget.event = page.evaluate("() => saved.at(-1)")
        expected = np.ones((3, 3), dtype=bool)
        expected[0, 0] = False
        np.testing.assert_array_equal(widget.mask, expected)
