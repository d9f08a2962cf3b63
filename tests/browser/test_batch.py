"""Several texts at once: one line each, one of them on the screen, their padding hidden until that is undone."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import choose_view, link_of, panels, pill, rerun, tokens, type_text
from tests.reading import point_at, tooltip, tooltip_numbers

HEADS = "attention_heads_decoder_self_attention"
SHAPE = (4, 4)


def choose_sequence(page: Page, beginning: str) -> None:
    with rerun(page):
        page.locator(".st-key-batch").get_by_role("radio", name=beginning, exact=True).click()


def test_lines_become_a_batch_and_each_view_shows_the_one_that_is_chosen(open_app):
    page = open_app(architecture="decoder", query=1, key=0, head=0)
    type_text(page, "one two three four\n\na dog\n")
    assert tokens(page) == ["one", "two", "three", "four"]
    expect(pill(page, "mask", "Padding")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text("2 lines are a batch of 2 sequences, padded to 4 tokens")).to_be_visible()
    choose_sequence(page, "1 a dog")
    assert tokens(page) == ["a", "dog", "<pad>", "<pad>"]
    assert page.locator(".st-key-token_strip .chip.padding").count() == 2
    assert link_of(page)["batch"] == "1"
    point_at(panels(page, "picture").last, 3, 2, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by padding")
    choose_view(page, "Heads")
    point_at(panels(page, HEADS).first, 3, 2, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by padding")
    for view in ("Compare masks", "Mask lab", "Generate"):
        choose_view(page, view)
        padding = [] if view == "Generate" else ["<pad>", "<pad>"]  # what is continued has none
        assert tokens(page) == ["a", "dog", *padding]
        expect(page.locator(".st-key-batch").get_by_role("radio", name="1 a dog")).to_be_checked()
    choose_view(page, "Heads")
    with rerun(page, HEADS):
        pill(page, "mask", "Padding").click()
    expect(page.get_by_text("The padding mask is off")).to_be_visible()
    point_at(panels(page, HEADS).first, 3, 2, SHAPE)
    assert tooltip_numbers(page)[-1] > 0
    page.go_back()
    expect(page.get_by_text("The padding mask follows from the lengths")).to_be_visible()


def test_targets_are_lines_too(open_app):
    page = open_app(architecture="encoder-decoder", text="one two\nthree", target="eins zwei")
    expect(page.get_by_role("alert")).to_contain_text("The text has 2 lines and the target 1 line")
    area = page.locator(".st-key-target textarea")
    area.fill("eins zwei\ndrei")
    with rerun(page):
        area.press("Control+Enter")
    choose_sequence(page, "1 three")
    assert (tokens(page), tokens(page, "target")) == (["three", "<pad>"], ["<s>", "drei", "<pad>"])


def test_shuffled_tokens_go_back_to_their_places(open_app):
    page = open_app(text="I love AI", positions="none", mask="none")
    with rerun(page):
        page.get_by_role("button", name="Shuffle").click()
    assert tokens(page) == ["AI", "love", "I"]
    expect(page.get_by_text("the vectors are the same, shuffled")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("in another order than typed")).to_have_count(0)
    assert tokens(page) == ["I", "love", "AI"]
