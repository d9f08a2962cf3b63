"""One token's way: arrow keys without a message, what pointing shows, where a click leads, and that it fits."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import link_of, messages_sent, settle
from tests.reading import tooltip
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings


def test_the_way_of_a_token_is_followed_pointed_at_and_left_for_a_stage(open_app):
    page = open_app(view="way", query=3)
    page.set_viewport_size({"width": 1280, "height": 720})
    settle(page)
    frame = page.locator(".token-way")
    box = frame.bounding_box()
    assert box["x"] + box["width"] <= 1280
    assert box["y"] + box["height"] <= 720
    run = compute_run(Settings())
    labels = run.tokens["source"].labels
    best = run.vocabulary[int(run.trace["logits"].value[0, 4].argmax())]
    frame.focus()
    sent = messages_sent(page)
    page.keyboard.press("ArrowRight")
    expect(frame.locator(".way-heading")).to_contain_text(f"Token 4 {labels[4]} ends in {best} ")
    assert messages_sent(page) == sent
    page.wait_for_url(lambda url: "query=4" in url)
    settle(page)
    frame.locator("[data-part]").nth(4).hover()
    weights = run.trace["encoder.layers.0.self_attention.weights"].value[0, 2, 4]
    expect(tooltip(page)).to_contain_text("head 2")
    expect(tooltip(page)).to_contain_text(f"{float(weights.max()):.2f} {int(weights.argmax())}")
    frame.locator("[data-part]").nth(4).click()
    page.wait_for_url(lambda url: "view=way" not in url)
    expect(page.locator(".stage-map [aria-current=step] .stage-code")).to_have_text("weights")
    assert link_of(page).get("query", "8") == "4"
