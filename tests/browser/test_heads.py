"""Heads: names, solo and toggle, lines, and the layer, which is changed without the server."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.headlight_page import (
    choose_view,
    click_cell,
    close_to,
    link_of,
    lit_cells,
    messages_sent,
    panels,
    point_at,
    rerun,
    settle,
    tooltip,
    tooltip_numbers,
)
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings

HEADS = "attention_heads_encoder_self_attention"
SHAPE = (11, 11)
NAMES = ["previous token", "next token", "same token", "first token"]


def titles(page: Page) -> list[str]:
    """Of the grids shown."""
    return panels(page, HEADS).locator(".matrix-title").all_inner_texts()


def titled(*heads: int) -> list[str]:
    return [f"head {head} · {NAMES[head]}" for head in heads]


def head_chip(page: Page, head: int):
    return page.get_by_role("button", name=f"{head} · {NAMES[head]}", exact=True)


def test_heads_carry_their_names_and_are_toggled_and_shown_alone(open_link):
    page = open_link(view="heads")
    assert titles(page) == titled(0, 1, 2, 3)
    head_chip(page, 1).click()
    expect(panels(page, HEADS)).to_have_count(3)
    assert titles(page) == titled(0, 2, 3)
    expect(head_chip(page, 1)).to_have_attribute("aria-pressed", "false")
    head_chip(page, 1).click()
    expect(panels(page, HEADS)).to_have_count(4)

    head_chip(page, 2).dblclick()
    expect(panels(page, HEADS)).to_have_count(1)
    assert titles(page) == titled(2)
    head_chip(page, 2).dblclick()
    expect(panels(page, HEADS)).to_have_count(4)
    panels(page, HEADS).nth(3).locator(".matrix-title").dblclick()
    expect(panels(page, HEADS)).to_have_count(1)
    assert titles(page) == titled(3)
    head_chip(page, 3).press("Shift+Enter")
    expect(panels(page, HEADS)).to_have_count(4)
    head_chip(page, 3).press("Shift+Enter")
    head_chip(page, 3).click()
    expect(panels(page, HEADS)).to_have_count(4)


def test_lines_join_a_token_to_those_it_attends_to(open_link):
    page = open_link(view="heads")
    weights = compute_run(Settings()).trace["encoder.layers.0.self_attention.weights"].value[0]
    page.get_by_role("button", name="Lines", exact=True).click()
    expect(panels(page, HEADS)).to_have_count(0)
    canvas = page.get_by_role("img", name="attention of layer 0 as lines")
    resting = drawn_pixels(canvas)
    assert resting > 0
    page.locator(".lines-query .lines-token").nth(8).hover()
    n_lines = int((weights[:, 8] >= 0.01).sum())
    expect(page.locator(".lines-note")).to_have_text(re.compile(rf"^query 8 .*cat.*: {n_lines} lines of weight"))
    assert 0 < drawn_pixels(canvas) < resting
    strengths = page.locator(".lines-key .lines-token").evaluate_all(
        "tokens => tokens.map((token) => Number(token.style.getPropertyValue('--strength')))"
    )
    assert strengths == [pytest.approx(weights[:, 8, key].max().item(), abs=1e-3) for key in range(11)]
    head_chip(page, 2).dblclick()
    page.locator(".lines-query .lines-token").nth(8).hover()
    expect(page.locator(".lines-note")).to_have_text(re.compile(": 2 lines of weight"))
    page.wait_for_url(lambda url: "drawn=lines" in url and "shown=" in url)


def drawn_pixels(canvas) -> int:
    """How many pixels of a canvas are not empty."""
    drawn: int = canvas.evaluate(
        """canvas => new Promise((done) => requestAnimationFrame(() => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let count = 0;
          for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
          done(count);
        }))"""
    )
    return drawn


def test_the_layer_changes_at_once_and_other_views_know_it(open_link):
    page = open_link(view="heads", weights="random", seed=3, n_layers=4)
    trace = compute_run(Settings(weights="random", seed=3, n_layers=4)).trace
    layer_1 = trace["encoder.layers.1.self_attention.weights"].value[0]
    sent = messages_sent(page)
    back_and_forth = """forward => {
      const root = forward.getRootNode();
      const press = (name) => root.querySelector(`[aria-label="${name}"]`).click();
      for (const way of ["next", "next", "next", "previous", "previous"]) press(`${way} layer`);
      return root.querySelector(".layer-text").textContent;
    }"""
    assert page.get_by_role("button", name="next layer").evaluate(back_and_forth) == "Layer 1"
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


def test_a_thumbnail_selects_and_a_cell_is_told_with_its_layer(open_link):
    page = open_link(view="heads", n_layers=3)
    overview = page.locator(f".st-key-{HEADS} .overview")
    assert overview.evaluate("one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight")
    page.get_by_role("button", name="layer 2, head 1 · next token").click()
    expect(page.locator(".layer-text")).to_have_text("Layer 2")
    with rerun(page):
        click_cell(panels(page, HEADS).nth(3), 6, 0, SHAPE)
    page.wait_for_url(lambda url: "query=6" in url)
    assert link_of(page) == {
        "n_layers": "3",
        "view": "heads",
        "layer": "2",
        "head": "3",
        "query": "6",
        "key": "0",
    }
    expect(tooltip(page)).to_contain_text("head 3 · first token")


def test_each_head_has_a_line_of_its_own_kind(open_link):
    page = open_link(view="heads", weights="random")
    page.evaluate(
        """() => {
          window.dashes = new Set();
          const { prototype } = CanvasRenderingContext2D;
          const set = prototype.setLineDash;
          prototype.setLineDash = function (dashes) {
            window.dashes.add(String(dashes));
            return set.call(this, dashes);
          };
        }"""
    )
    page.get_by_role("button", name="Lines", exact=True).click()
    expect(page.locator(".lines-canvas")).to_be_visible()
    lines = page.locator(".chips-of-lines .chip-line:visible line")
    expect(lines).to_have_count(4)
    shown = [lines.nth(head).get_attribute("stroke-dasharray") for head in range(4)]
    assert len(set(shown)) == 4
    assert set(page.evaluate("[...dashes]")) == {dashes.replace(" ", ",") for dashes in shown}


def test_the_weights_follow_a_dial_that_is_dragged_and_the_link_when_it_rests(open_link):
    text = " ".join("abacus"[i % 6] for i in range(50))  # so many that colours alone are sent while it is dragged
    page = open_link(view="heads", text=text, weights="random", mask="none")
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


def test_masks_and_padding_are_turned_in_the_picture_and_back_leads_to_the_values_before(open_link):
    page = open_link(
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


def test_the_query_follows_the_pointer_along_the_tokens_and_the_link_when_it_lets_go(open_link):
    page = open_link(view="heads", text="a b c d e f", architecture="encoder", query=0, key=1)
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


def test_a_changed_control_is_drawn_before_the_server_hears_of_it_and_asks_once(open_link):
    page = open_link(view="heads", weights="random")
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


MOVE_TO = """(dial, place) => {
  dial.value = place;
  dial.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def test_weights_come_by_address_and_the_picture_stays_while_they_are_under_way(open_link):
    page = open_link(view="heads", n_heads=1)
    title = panels(page, HEADS).locator(".matrix-title")
    requests, waiting = [], []

    def refuse(route):  # a status that the browser does not log as an error of the page
        route.fulfill(status=300, content_type="text/plain", body="The server has too much to compute.\n")

    def answer(route):
        requests.append(dict(parse_qsl(urlsplit(route.request.url).query)))
        waiting.append(route) if len(requests) == 1 else route.continue_()

    page.route("**/pictures/heads?*", refuse)  # whether it is asked for ahead or by the picture
    page.locator(".st-key-n_heads input").press("ArrowRight")
    problem = page.locator(f".st-key-{HEADS}").get_by_role("alert")
    expect(problem).to_contain_text("The server has too much to compute.")
    expect(title).to_have_count(1)  # the picture of one head is still there

    page.unroute("**/pictures/heads?*")
    page.route("**/pictures/heads?*", answer)
    problem.get_by_role("button", name="Try again").click()
    sign = page.locator(f".st-key-{HEADS} .arrivals-sign")
    expect(sign).to_be_visible()
    expect(problem).to_be_hidden()
    expect(title).to_have_count(1)

    with page.expect_response("**/pictures/heads?*layers=1"):
        waiting.pop().continue_()
    expect(title).to_have_count(2)
    expect(sign).to_be_hidden()
    assert [asked["layers"] for asked in requests] == ["0", "1"]
    assert {asked["n_heads"] for asked in requests} == {"2"}
    assert "version" in requests[0]
