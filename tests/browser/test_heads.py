"""Pictures, controls and the address: what a picture of heads turns, what is told in time, and asked for once."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from model.decoding import Sampling
from tests.browser.headlight_page import choose_view, link_of, messages_sent, panels, rerun
from tests.reading import MOVE_TO, close_to, point_at, tooltip, tooltip_numbers
from visualizer.runs.compute import compute_run
from visualizer.runs.continuation import OneByOne, write
from visualizer.runs.writer import writer_of
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings

HEADS = "attention_heads_encoder_self_attention"


def test_what_is_changed_in_a_picture_is_told_before_a_view_or_a_control_is_changed(open_app):
    link = {"architecture": "decoder", "weights": "random", "text": "a b c d", "seed": 7, "n_layers": 3}
    run = compute_run(fitted(Settings(**link)))
    page = open_app(view="heads", **link)
    for _ in range(2):
        page.get_by_role("slider", name="layer", exact=True).press("ArrowRight")
    choose_view(page, "Step through")
    page.wait_for_url(lambda url: "layer=2" in url)
    expect(page.locator(".stage-map .place")).to_have_text("Decoder · layer 2 · self-attention")
    weights = run.trace["decoder.layers.2.self_attention.weights"].value[0, 2]
    point_at(panels(page, "picture").last, 3, 1, (4, 4))
    assert tooltip_numbers(page) == [close_to(weights[3, 1].item())]

    choose_view(page, "Generate")
    with rerun(page, "generation_steps"):
        page.locator("[class*='st-key-strategy']").get_by_role("radio", name="Sampling").click()
    for _ in range(3):
        page.get_by_role("button", name="step forward").click()
    page.locator("summary", has_text="Options").click()
    with rerun(page, "generation_steps"):
        page.locator("[class*='st-key-temperature']").get_by_role("slider").press("End")
    warm = write(writer_of(run), OneByOne(Sampling(temperature=3.0), 12)).tokens
    labels = ["a", "b", "c", "d", *(run.vocabulary[token] for token in warm[:4])]
    assert {"generate.step": "3", "generate.temperature": "3"}.items() <= link_of(page).items()
    expect(page.locator(".written-token .token")).to_have_text(labels)
    for view in ("Heads", "Generate"):
        choose_view(page, view)
    expect(page.locator(".transport-place")).to_have_text("Step 4 of 12")
    expect(page.locator(".written-token .token")).to_have_text(labels)


def test_masks_and_padding_are_turned_in_the_picture_and_back_leads_to_the_values_before(open_app):
    page = open_app(
        view="heads", text="a b c d", mask="sliding_window,padding", window=1, pad=1, architecture="encoder"
    )
    dials = page.locator(f".st-key-{HEADS} .dial")
    masks = "MasksCausalPaddingSliding windowPrefixStridedPainted"
    expect(dials).to_have_text(["Temperature1.00", masks, "Heads4", "Window1", "Padding tokens1"])
    dials.nth(4).get_by_role("slider").evaluate(MOVE_TO, 3)
    expect(panels(page, HEADS).first.get_by_role("img")).to_have_attribute("aria-label", re.compile("7 by 7"))
    with rerun(page, HEADS):
        dials.nth(4).get_by_role("slider").evaluate("dial => dial.dispatchEvent(new Event('change'))")
    assert link_of(page)["pad"] == "3"
    sent = messages_sent(page)
    with rerun(page, HEADS):
        dials.nth(3).get_by_role("slider").evaluate(TWO_KEYS)
    assert messages_sent(page) == sent + 1
    assert "window" not in link_of(page)  # 3 is what is usual
    point_at(panels(page, HEADS).first, 0, 2, (7, 7))
    expect(tooltip(page)).not_to_contain_text("blocked")
    with rerun(page, HEADS):
        page.go_back()
    expect(dials).to_have_text(["Temperature1.00", masks, "Heads4", "Window1", "Padding tokens3"])
    with rerun(page, HEADS):
        page.go_back()
    expect(dials).to_have_text(["Temperature1.00", masks, "Heads4", "Window1", "Padding tokens1"])
    expect(panels(page, HEADS).first.get_by_role("img")).to_have_attribute("aria-label", re.compile("5 by 5"))
    page = open_app(view="heads", text="a b c d", architecture="encoder", mask="causal")
    masks_that_are_pressed_stay_under_the_hand(page)


TWO_KEYS = """dial => {
  for (const key of ["ArrowRight", "ArrowRight"]) {
    dial.dispatchEvent(new KeyboardEvent("keydown", { key }));
    dial.stepUp();
    for (const heard of ["input", "change"]) dial.dispatchEvent(new Event(heard, { bubbles: true }));
  }
}"""
"""Two steps of a dial by the keys within one task of the page, however slow that is."""


def masks_that_are_pressed_stay_under_the_hand(page: Page) -> None:
    masks = page.locator(f".st-key-{HEADS} .segment[data-name]")
    expect(masks).to_have_count(6)
    before = [mask.bounding_box() for mask in masks.all()]
    for name in ("sliding_window", "padding", "custom"):
        with rerun(page, HEADS):
            masks.and_(page.locator(f"[data-name={name}]")).click()
    expect(page.get_by_text("+3 padding")).to_be_visible()
    assert [mask.bounding_box() for mask in masks.all()] == before
