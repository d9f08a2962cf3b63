"""Streamlit's calls of a picture, and of its clean-ups, in whatever order they come."""

from __future__ import annotations

import pytest

from tests.pictures.modules_page import scripted_page
from visualizer.components.javascript_modules import ROOT

ENTRY = """import { mounting } from "./mount.js";
const picture = {
  style: "",
  render(root, bytes) {
    const say = (what) => (root.dataset.said = `${root.dataset.said ?? ""} ${what}`.trim());
    say(`drawn ${bytes[0]}`);
    const update = (next) => say(`updated ${next[0]}`);
    return { isSaved: true, figureTitle: "", seen: {}, update, destroy: () => say("ended") };
  },
};
const element = document.body.appendChild(document.createElement("div"));
const parentElement = element.attachShadow({ mode: "open" });
parentElement.innerHTML = '<div class="headlight"></div>';
const root = parentElement.querySelector(".headlight");
const host = { style: "", colors: {}, page: {}, modules: { some: "some/element.js" } };
const call = mounting({ "some/element.js": picture }, host);
const told = { setTriggerValue() {}, setStateValue() {} };
window.given = (number) => call({ name: "some", data: Uint8Array.of(number), parentElement, ...told });
window.element = element;
window.said = () => [root.dataset.said, parentElement.querySelectorAll(".saving").length];
"""


@pytest.fixture
def page(browser):
    with scripted_page(browser, ENTRY, ROOT / "server", "said") as found:
        yield found


@pytest.mark.parametrize("order", ["first()", "second()", "first(); second()", "second(); first()"])
def test_the_clean_up_of_a_call_that_was_overtaken_ends_nothing(page, order):
    page.evaluate(f"() => {{ const first = given(1), second = given(2); {order}; given(3); }}")
    assert page.evaluate("said()") == ["drawn 1 updated 2 updated 3", 1]


def test_the_clean_up_of_what_has_left_the_page_ends_it(page):
    page.evaluate("() => { const first = given(1), second = given(2); element.remove(); first(); second(); }")
    assert page.evaluate("said()") == ["drawn 1 updated 2 ended", 0]
