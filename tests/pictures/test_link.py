"""A change inside a picture: the host is told, its link holds it, and that link's picture is the same."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.pictures.static_page import heard, picture
from tests.reading import open_fold
from tests.test_app import open_app
from tests.visualizer.test_link import TEXT, WRITING, link_of
from tests.visualizer.told import tell
from visualizer.settings.settings import FIELDS

HEADS = "attention_heads_encoder_self_attention"
OF_HEADS = {"view": "heads", "text": TEXT}
SAMPLING = WRITING | {"strategy": "sampling", "limit": "6", "top_k": "3", "temperature": "3"}


def press(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_role("button", name=name, exact=True).click()


def show_head_alone(page: Page, name: str) -> None:
    open_fold(page, "View")
    press(page, name)


def change_the_grids(page: Page) -> None:
    show_head_alone(page, "2 · same token")
    press(page, "√ lifts small")
    press(page, "next layer")
    expect(picture(page, HEADS).locator(".matrix:visible")).to_have_count(1)


def change_the_lines(page: Page) -> None:
    open_fold(page, "View")
    press(page, "Lines")
    page.get_by_role("slider", name="smallest weight drawn").press("End")
    page.locator(".lines-query .lines-token").nth(3).click()
    expect(page.locator(".lines-pinned")).to_contain_text("one")
    expect(page.locator(".lines-note")).to_contain_text("of weight 0.5 and more")


def go_to_the_end(page: Page) -> None:
    page.keyboard.press("End")
    press(page, "previous layer")
    expect(page.locator(".transport-place")).to_have_text("Step 6 of 6")


def go_to_a_node(page: Page) -> None:
    node = page.locator(".tree-node[data-index='2']")
    node.click()
    expect(node).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize(
    ("link", "key", "act", "expected"),
    [
        (OF_HEADS, HEADS, change_the_grids, {"curve": "root", "shown": "2", "layer": "1"}),
        (OF_HEADS, HEADS, change_the_lines, {"drawn": "lines", "least_weight": "0.5", "pinned": "q3"}),
        (
            {"view": "compare", "text": TEXT},
            "compare_grids",
            lambda page: show_head_alone(page, "3 · first token"),
            {"shown": "3"},
        ),
        (SAMPLING, "generation_steps", go_to_the_end, {"step": "5", "row_layer": "0"}),
        (WRITING | {"strategy": "beam", "beams": "1"}, "generation_tree", go_to_a_node, {"node": "2"}),
    ],
    ids=["grids", "lines", "comparison", "steps", "tree"],
)
def test_what_is_changed_in_a_picture_comes_back(show_link, link, key, act, expected):
    page = show_link(**link)
    act(page)
    kept = link_after(page, key, link)
    assert kept.items() >= {FIELDS[name].parameter: value for name, value in (link | expected).items()}.items()
    assert in_words(page, key) == in_words(show_link(**kept), key)


def link_after(page: Page, key: str, link: dict[str, str]) -> dict[str, str]:
    """The link that the host makes of another, and of all that a picture has told it."""
    page.evaluate("() => dispatchEvent(new Event('blur'))")  # who turns away has told everything
    app = open_app(**link)
    told = heard(page, key)
    assert told
    for name, value in told:
        tell(app, key, name, value)
    return link_of(app)


def in_words(page: Page, key: str) -> str:
    """A picture as a screen reader meets it, without the pointer on it."""
    for fold in page.locator(".fold[open] > .fold-title").all():  # a person's own, and in no link
        fold.click()
    page.mouse.move(1, 1)
    page.evaluate("() => document.activeElement.shadowRoot?.activeElement.blur()")
    expect(page.locator(".reading[aria-busy]")).to_have_count(0)
    return picture(page, key).aria_snapshot()
