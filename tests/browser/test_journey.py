"""The way a person goes through the app, with every number on it that of the model."""

from __future__ import annotations

import re
from dataclasses import replace

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import choose_view, compared, link_of, panels, pill, rerun, tokens, type_text
from tests.reading import click_cell, close_to, number, point_at, tooltip, tooltip_numbers
from visualizer.runs.compute import compute_run
from visualizer.settings.fitting import widths
from visualizer.settings.settings import Settings

TEXT = "the dog saw the cat and the cat ran"
N_HEADS, N_TOKENS = 6, 9
SHAPE = (N_TOKENS, N_TOKENS)
HEAD, QUERY, KEY = 2, 6, 3
MASKS = ("causal", "sliding_window")
WEIGHTS = "encoder.layers.0.self_attention.weights"


def test_from_a_text_to_a_comparison_of_masks(open_app):
    page = open_app()
    type_text(page, TEXT)
    assert tokens(page) == TEXT.split()
    choose_heads_and_masks(page)
    step_to_the_weights(page)
    with rerun(page, "derivation_1"):
        click_cell(panels(page, "picture").last, QUERY, KEY, SHAPE)
    link = link_of(page)
    width = int(link.pop("d_model"))
    assert width in widths(N_HEADS, width)
    expected = {"text": TEXT, "n_heads": "6", "mask": "causal,sliding_window", "window": "5"}
    asked = {"asked_width": "64"}  # which six heads cannot share
    assert link == {**expected, **asked, "query": str(QUERY), "key": str(KEY)}
    chosen = Settings(text=TEXT, n_heads=N_HEADS, d_model=width, mask=MASKS, window=5)
    numbers_of_the_step_are_those_of_the_model(page, chosen)
    numbers_of_the_comparison_are_those_of_the_model(page, chosen)


def choose_heads_and_masks(page: Page) -> None:
    slider = page.locator("[class*='st-key-n_heads']").get_by_role("slider")
    slider.focus()
    for expected in ("5", "6"):
        with rerun(page, "every_head"):
            slider.press("ArrowRight")
        expect(slider).to_have_value(expected)
    expect(panels(page, "every_head")).to_have_count(N_HEADS)
    with rerun(page, "picture"):
        pill(page, "mask", "Sliding window").click()
    with rerun(page, "picture"):
        page.locator("[class*='st-key-window'] input").fill("5")
        page.keyboard.press("Enter")


def step_to_the_weights(page: Page) -> None:
    """From the scores: with the button, then with the arrow keys."""
    with rerun(page, "picture"):
        page.locator(".stage-map .stage[data-code=scores]").click()
    with rerun(page, "picture"):
        page.locator(".stage-map .next").click()
    for stage in ("masked_scores", "weights"):
        with rerun(page, "picture"):
            page.keyboard.press("ArrowRight")
        expect(page.locator(".stage-map [aria-current=step]")).to_have_attribute("data-code", stage)
    expect(page.get_by_role("heading", name="Attention weights")).to_be_visible()


def numbers_of_the_step_are_those_of_the_model(page: Page, chosen: Settings) -> None:
    every = compute_run(chosen).trace[WEIGHTS].value
    weights = every[0]
    cell = weights[HEAD, QUERY, KEY].item()
    assert 0.1 < cell < 0.9, "a telling cell"

    point_at(panels(page, "picture").last, QUERY, KEY, SHAPE)
    expect(tooltip(page)).to_contain_text(f"query {QUERY} the → key {KEY} the")
    assert tooltip_numbers(page) == [close_to(cell)]
    for head in range(N_HEADS):
        point_at(panels(page, "every_head").nth(head), QUERY, KEY, SHAPE)
        assert tooltip_numbers(page) == [close_to(weights[head, QUERY, KEY].item())]

    last = page.locator(".st-key-derivation_1")
    assert number(last.locator(".result .value").inner_text()) == close_to(cell)
    expect(last.locator(".verdict")).to_have_text(re.compile("^equals the model's number"))

    page.get_by_text("shapes and code").click()
    facts = page.get_by_text(re.compile("^min .* max .* mean")).inner_text()
    expected = [every.min().item(), every.max().item(), every.mean().item()]
    assert [number(text) for text in re.findall(r"[-\d.e+]*\d", facts)] == [close_to(value) for value in expected]

    with rerun(page):
        page.locator("[class*='st-key-numbers'] input").press("Space")  # what opened above may still move it
    for key in range(KEY + 1):
        shown = page.get_by_test_id(f"glide-cell-{key + 1}-{QUERY}")
        assert number(shown.text_content()) == close_to(weights[HEAD, QUERY, key].item())


def numbers_of_the_comparison_are_those_of_the_model(page: Page, chosen: Settings) -> None:
    choose_view(page, "Compare")
    with rerun(page, "compare_grids"):
        pill(page, "mask_b", "Sliding window").click()
    assert link_of(page)["compare.mask_b"] == "causal,sliding_window"
    a, b = (compute_run(replace(chosen, mask=mask)).trace[WEIGHTS].value[0] for mask in ((), MASKS))
    for head in range(N_HEADS):
        before, after = a[head, QUERY, KEY].item(), b[head, QUERY, KEY].item()
        side = head % 3
        point_at(compared(page, head).nth(side), QUERY, KEY, SHAPE)
        assert tooltip_numbers(page) == [close_to(before), close_to(after), close_to(after - before)]
