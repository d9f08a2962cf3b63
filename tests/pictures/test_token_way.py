"""One token's way on a static page: arrow keys, what pointing shows, where a click leads, and the row of tokens."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.pictures.static_page import heard, picture
from tests.reading import tooltip
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings

WAY = "token_way_encoder"


def heading(page: Page) -> Locator:
    return page.locator(".way-heading")


def test_the_way_of_a_token_is_followed_and_pointed_at_and_a_part_is_opened(show_link):
    page = show_link(view="way", query=3)
    run = compute_run(Settings())
    labels = run.tokens["source"].labels
    best = run.vocabulary[int(run.trace["logits"].value[0, 4].argmax())]
    page.locator(".token-way").focus()
    page.keyboard.press("ArrowRight")
    expect(heading(page)).to_contain_text(f"Token 4 {labels[4]} ends in {best} ")
    page.wait_for_function("() => heard.length > 0")
    assert [(name, value["query"]) for name, value in heard(page)] == [("shown", 4)]
    part = page.locator(".token-way [data-part]").nth(4)
    part.hover()
    path = "encoder.layers.0.self_attention.weights"
    weights = run.trace[path].value[0, 2, 4]
    expect(tooltip(page)).to_contain_text("head 2")
    expect(tooltip(page)).to_contain_text(f"{float(weights.max()):.2f} {int(weights.argmax())}")
    part.click()
    name, value = heard(page, WAY)[-1]
    assert (name, value["path"], value["query"], value["head"]) == ("open", path, 4, 2)


def test_the_way_follows_the_pointer_along_the_tokens_also_beyond_their_row(show_link):
    page = show_link(view="way", text="a b c d e f", architecture="encoder", query=0)
    chip = picture(page, "token_strip").locator(".chip").nth(4)
    chip.hover()
    page.mouse.down()
    expect(heading(page)).to_contain_text("Token 4 e")
    page.mouse.move(0, chip.bounding_box()["y"])  # further than the row goes
    expect(heading(page)).to_contain_text("Token 0 a")
    assert heard(page) == []
    page.mouse.up()
    page.wait_for_function("() => heard.length > 0")
    assert [(name, value["index"]) for name, value in heard(page)] == [("select", 0)]
