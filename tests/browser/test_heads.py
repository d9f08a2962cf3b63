"""Heads: names, solo and toggle, lines, and the layer, which is changed without the server."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.headlight_page import choose_view, link_of, lit_cells, messages_sent, panels, rerun, settle
from tests.reading import LAYERS_BACK_AND_FORTH, MOVE_TO, close_to, point_at, tooltip, tooltip_numbers
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings

HEADS = "attention_heads_encoder_self_attention"
SHAPE = (11, 11)


def test_the_layer_changes_at_once_and_other_views_know_it(open_app):
    page = open_app(view="heads", weights="random", seed=3, n_layers=4)
    trace = compute_run(Settings(weights="random", seed=3, n_layers=4)).trace
    layer_1 = trace["encoder.layers.1.self_attention.weights"].value[0]
    sent = messages_sent(page)
    assert page.get_by_role("button", name="next layer").evaluate(LAYERS_BACK_AND_FORTH) == "Layer 1"
    page.wait_for_url(lambda url: "layer=1" in url)
    assert messages_sent(page) == sent + 1
    for head in range(4):
        point_at(panels(page, HEADS).nth(head), 7, 4, SHAPE)
        assert tooltip_numbers(page) == [close_to(layer_1[head, 7, 4].item())]
    assert lit_cells(page, HEADS) == [(7, 4)] * 4

    page.get_by_role("slider", name="layer", exact=True).press("ArrowRight")
    choose_view(page, "Step through")  # told before the view goes, however soon that is
    page.wait_for_url(lambda url: "layer=2" in url)
    expect(page.locator(".stage-map .place")).to_have_text("Encoder · layer 2 · self-attention")
    layer_2 = trace["encoder.layers.2.self_attention.weights"].value[0]
    point_at(panels(page, "picture").last, 7, 4, SHAPE)
    assert tooltip_numbers(page) == [close_to(layer_2[2, 7, 4].item())]


def test_the_weights_follow_a_dial_that_is_dragged_and_the_link_when_it_rests(open_app):
    text = " ".join("abacus"[i % 6] for i in range(50))  # so many that colours alone are sent while it is dragged
    page = open_app(view="heads", text=text, weights="random", mask="none")
    dial = page.get_by_role("slider", name="temperature")
    sent = messages_sent(page)
    dial.evaluate(MOVE_TO, 20)
    expect(page.locator(".dial-text")).to_have_text("10.00")
    page.wait_for_function(f"probe.painted['{HEADS}'] > 1")
    expect(page.locator(f".st-key-{HEADS} .headlight[aria-busy=true]")).to_have_count(0)
    weights = (
        compute_run(Settings(text=text, weights="random", mask=(), score="score / 10"))
        .trace["encoder.layers.0.self_attention.weights"]
        .value[0, 0]
    )
    point_at(panels(page, HEADS).first, 9, 1, (50, 50))
    expect(tooltip(page)).not_to_contain_text("≈")  # the exact number of the cell has come
    assert tooltip_numbers(page)[0] == close_to(float(weights[9, 1]))
    assert messages_sent(page) == sent
    assert "score" not in link_of(page)
    with rerun(page):
        dial.evaluate("dial => dial.dispatchEvent(new Event('change'))")
    assert link_of(page)["score"] == "score / 10"
    expect(page.locator(".dial-text")).to_have_text("10.00")


def test_masks_and_padding_are_turned_in_the_picture_and_back_leads_to_the_values_before(open_app):
    page = open_app(
        view="heads", text="a b c d", mask="sliding_window,padding", window=1, pad=1, architecture="encoder"
    )
    dials = page.locator(f".st-key-{HEADS} .dial")
    expect(dials).to_have_text(["Temperature1.00", "Window1", "Padding tokens1"])
    sent = messages_sent(page)
    dials.nth(2).get_by_role("slider").evaluate(MOVE_TO, 3)
    expect(panels(page, HEADS).first.get_by_role("img")).to_have_attribute("aria-label", re.compile("7 by 7"))
    with rerun(page, HEADS):
        dials.nth(2).get_by_role("slider").evaluate("dial => dial.dispatchEvent(new Event('change'))")
    assert link_of(page)["pad"] == "3"
    sent = messages_sent(page)
    with rerun(page, HEADS):
        for _ in range(2):
            dials.nth(1).get_by_role("slider").press("ArrowRight")
        assert messages_sent(page) == sent
    assert "window" not in link_of(page)  # 3 is what is usual
    point_at(panels(page, HEADS).first, 0, 2, (7, 7))
    expect(tooltip(page)).not_to_contain_text("blocked")
    with rerun(page, HEADS):
        page.go_back()
    expect(dials).to_have_text(["Temperature1.00", "Window1", "Padding tokens3"])
    with rerun(page, HEADS):
        page.go_back()
    expect(dials).to_have_text(["Temperature1.00", "Window1", "Padding tokens1"])
    expect(panels(page, HEADS).first.get_by_role("img")).to_have_attribute("aria-label", re.compile("5 by 5"))


def test_the_query_follows_the_pointer_along_the_tokens_and_the_link_when_it_lets_go(open_app):
    page = open_app(view="heads", text="a b c d e f", architecture="encoder", query=0, key=1)
    chips = page.locator(".st-key-token_strip .chip")
    sent = messages_sent(page)
    chips.nth(1).hover()
    page.mouse.down()
    expect(chips.nth(1)).to_have_attribute("aria-selected", "true")
    chips.nth(4).hover()
    assert [row for row, _ in lit_cells(page, HEADS)] == [4] * 4
    expect(chips.nth(4)).to_have_attribute("aria-selected", "true")
    cell, plot = (
        page.locator(f".st-key-{HEADS} .matrix-current {part}").bounding_box()
        for part in (".light-selected", ".matrix-plot")
    )
    assert (cell["y"] + cell["height"] / 2 - plot["y"]) / plot["height"] == pytest.approx(4.5 / 6, abs=0.01)
    assert messages_sent(page) == sent
    assert link_of(page)["query"] == "0"
    with rerun(page, HEADS):
        page.mouse.up()
    assert link_of(page)["query"] == "4"
    choose_view(page, "One token's way")
    sent = messages_sent(page)
    chips.nth(4).hover()
    page.mouse.down()
    page.mouse.move(0, chips.nth(4).bounding_box()["y"])  # further than the row goes
    expect(page.locator(".token-way")).to_contain_text("Token 0 a")
    assert messages_sent(page) == sent
    with rerun(page):
        page.mouse.up()
    assert link_of(page)["query"] == "0"


HOLD = """() => {
  const sockets = Object.getPrototypeOf(WebSocket.prototype);
  const send = sockets.send;
  window.held = [];
  sockets.send = function (data) { window.held.push(() => send.call(this, data)); };
  window.release = () => { sockets.send = send; window.held.splice(0).forEach((say) => say()); };
}"""


def test_a_changed_control_is_drawn_before_the_server_hears_of_it_and_asks_once(open_app):
    page = open_app(view="heads", weights="random")
    page.wait_for_function("probe.worker")  # it listens a second after the first picture
    asked = []

    def note(request):
        if "/pictures/heads?" in request.url and "layers=0" in request.url:
            asked.append(request.url)

    def type_into(field, text, *, taken_with):
        field.fill(text)
        field.press(taken_with)

    acts = {
        "mask": lambda control: control.get_by_role("button", name="Padding", exact=True).click(),
        "positions": lambda control: control.get_by_role("radio", name="Learned").click(),
        "scale_scores": lambda control: control.locator("label").first.click(),
        "seed": lambda control: type_into(control.locator("input"), "5", taken_with="Enter"),
        "d_ff": lambda control: control.locator("input").press("ArrowLeft"),
        "text": lambda control: type_into(control.locator("textarea"), "a~b *", taken_with="Control+Enter"),
    }
    page.on("request", note)
    page.locator("summary", has_text="More").click()
    settle(page)
    for name, act in acts.items():
        before, drawn = page.url, page.evaluate("key => probe.painted[key]", HEADS)
        asked.clear()
        page.evaluate(HOLD)
        try:
            act(page.locator(f".st-key-{name}"))
            page.wait_for_function("([key, n]) => probe.painted[key] > n", arg=[HEADS, drawn])
            assert page.url == before, f"{name}: the server has heard of it"
        finally:
            with rerun(page):
                page.evaluate("release()")
        assert f"{name}=" in page.url
        assert sum(f"{name}=" in address for address in asked) == 1, f"{name}: {asked}"
    page.remove_listener("request", note)
    with rerun(page):
        page.locator(".st-key-n_heads input").press("ArrowLeft")
    assert "asked_width=" in page.url  # a line more stands above it
    expect(page.locator(".st-key-seed")).to_be_visible()  # "More" is still open
