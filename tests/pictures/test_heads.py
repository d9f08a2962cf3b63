"""Heads on a static page: names, solo and toggle, lines, layers, dials, and numbers that come by address."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.pictures.static_page import heard, picture
from tests.reading import close_to, point_at, tooltip, tooltip_numbers
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings

HEADS = "attention_heads_encoder_self_attention"
NAMES = ["previous token", "next token", "same token", "first token"]


def panels(page: Page) -> Locator:
    return picture(page, HEADS).locator(".matrix:visible")


def titles(page: Page) -> list[str]:
    """Of the grids shown."""
    return panels(page).locator(".matrix-title").all_inner_texts()


def titled(*heads: int) -> list[str]:
    return [f"head {head} · {NAMES[head]}" for head in heads]


def head_chip(page: Page, head: int) -> Locator:
    return page.get_by_role("button", name=f"{head} · {NAMES[head]}", exact=True)


def test_heads_carry_their_names_and_are_toggled_and_shown_alone(show_link):
    page = show_link(view="heads")
    assert titles(page) == titled(0, 1, 2, 3)
    head_chip(page, 1).click()
    expect(panels(page)).to_have_count(3)
    assert titles(page) == titled(0, 2, 3)
    expect(head_chip(page, 1)).to_have_attribute("aria-pressed", "false")
    head_chip(page, 1).click()
    expect(panels(page)).to_have_count(4)

    head_chip(page, 2).dblclick()
    expect(panels(page)).to_have_count(1)
    assert titles(page) == titled(2)
    head_chip(page, 2).dblclick()
    expect(panels(page)).to_have_count(4)
    panels(page).nth(3).locator(".matrix-title").dblclick()
    expect(panels(page)).to_have_count(1)
    assert titles(page) == titled(3)
    head_chip(page, 3).press("Shift+Enter")
    expect(panels(page)).to_have_count(4)
    head_chip(page, 3).press("Shift+Enter")
    head_chip(page, 3).click()
    expect(panels(page)).to_have_count(4)


def test_the_weights_follow_a_dial_that_is_dragged(show_link):
    text = " ".join("abacus"[i % 6] for i in range(50))  # so many that colours alone are sent while it is dragged
    page = show_link(view="heads", text=text, weights="random", mask="none")
    dial = page.get_by_role("slider", name="temperature")
    dial.evaluate(MOVE_TO, 20)
    expect(page.locator(".dial-text")).to_have_text("10.00")
    expect(picture(page, HEADS).locator(".headlight[aria-busy=true]")).to_have_count(0)
    weights = (
        compute_run(Settings(text=text, weights="random", mask=(), score="score / 10"))
        .trace["encoder.layers.0.self_attention.weights"]
        .value[0, 0]
    )
    point_at(panels(page).first, 9, 1, (50, 50))
    expect(tooltip(page)).not_to_contain_text("≈")  # the exact number of the cell has come
    assert tooltip_numbers(page)[0] == close_to(float(weights[9, 1]))
    assert heard(page) == []
    dial.evaluate("dial => dial.dispatchEvent(new Event('change'))")
    assert [(name, value["dial"], value["value"]) for name, value in heard(page, HEADS)] == [
        ("turned", "temperature", 10)
    ]


MOVE_TO = """(dial, place) => {
  dial.value = place;
  dial.dispatchEvent(new Event("input", { bubbles: true }));
}"""
