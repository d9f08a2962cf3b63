"""Heads on a static page: names, one head or several, lines, layers, dials, and numbers that come by address."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.pictures.static_page import LET_GO, answer, heard, panels, picture, pictures_of, update, wait_until_told
from tests.reading import (
    LAYERS_BACK_AND_FORTH,
    MOVE_TO,
    click_cell,
    open_fold,
    point_at,
    room_for,
    tooltip,
    wait_for_numbers,
    wait_until_lit,
)
from visualizer.components.attention_heads.element import attention_heads
from visualizer.components.axis import Axis
from visualizer.components.looks import Looks
from visualizer.runs.compute import compute_run
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings

HEADS = "attention_heads_encoder_self_attention"
WEIGHTS = "encoder.layers.0.self_attention.weights"
SHAPE = (11, 11)
NAMES = ["previous token", "next token (causal: mostly itself)", "same token", "first token"]


def shows(page: Page, *heads: int) -> None:
    """Wait until the grids of these heads are shown, and no others."""
    titles = [f"head {head} · {NAMES[head]}" for head in heads]
    expect(panels(page, HEADS).locator(".matrix-title")).to_have_text(titles)


def as_lines(page: Page) -> None:
    open_fold(page, "View")
    page.get_by_role("button", name="Lines", exact=True).click()


def head_chip(page: Page, head: int) -> Locator:
    return page.get_by_role("button", name=f"{head} · {NAMES[head]}", exact=True)


def test_a_head_is_chosen_by_its_chip_and_all_are_back_by_another_click(show_link):
    page = show_link(view="heads")
    shows(page, 0, 1, 2, 3)
    head_chip(page, 1).click()
    shows(page, 1)
    expect(head_chip(page, 0)).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("option", name="layer 0, head 1 · next token")).to_have_attribute(
        "aria-selected", "true"
    )
    page.wait_for_function("() => heard.at(-1)?.value.head === 1 && String(heard.at(-1).value.shown) === '1'")
    head_chip(page, 3).press("Enter")
    shows(page, 3)
    head_chip(page, 3).press("Enter")
    shows(page, 0, 1, 2, 3)


def test_heads_are_hidden_and_shown_beside_others_with_a_modifier(show_link):
    page = show_link(view="heads")
    head_chip(page, 1).click(modifiers=["Control"])
    shows(page, 0, 2, 3)
    head_chip(page, 0).press("Shift+Enter")
    shows(page, 2, 3)
    head_chip(page, 1).press("Control+Enter")
    shows(page, 1, 2, 3)
    for head in (1, 2, 3):
        head_chip(page, head).click(modifiers=["Shift"])
    shows(page, 0, 1, 2, 3)  # never none


UNTIL_FAR = """panel => new Promise(done => {
  new IntersectionObserver(([seen]) => seen.isIntersecting || done(), { rootMargin: "50%" }).observe(panel);
})"""
"""Waits until the browser has told the page's own observers, which were there before, that a panel is far away."""


def test_rows_far_below_the_window_are_not_read_with_the_numbers_of_before(show_link):
    page = show_link(view="heads", weights="random", width=390)
    last = panels(page, HEADS).last
    expect(panels(page, HEADS).first.locator(".reading li").first).to_be_attached()
    last.scroll_into_view_if_needed()
    expect(last.locator(".reading:not([aria-busy]) li").first).to_be_attached()
    page.evaluate("scrollTo(0, 0)")
    last.evaluate(UNTIL_FAR)
    page.get_by_role("button", name="next layer").evaluate("button => button.click()")
    expect(last.locator(".reading[aria-busy]")).to_be_attached()
    expect(last.locator(".reading li")).to_have_count(0)


def test_the_overview_of_many_layers_stands_beside_the_heads_where_there_is_room(show):
    labels = tuple("abcdef")
    weights = np.full((20, 3, 6, 6), 1 / 6, np.float32)
    heads = attention_heads(
        weights,
        blocked=None,
        blocked_by=(),
        rows=Axis("query", labels),
        columns=Axis("key", labels),
        head_names=[[""] * 3] * 20,
        layer=19,
        head=0,
        looks=Looks(),
        key=HEADS,
    )
    page = show([heads])
    expect(panels(page, HEADS)).to_have_count(3)
    overview, first = picture(page, HEADS).locator(".overview"), panels(page, HEADS).first
    of_map, of_head = overview.bounding_box(), first.bounding_box()
    assert of_map["x"] + of_map["width"] <= of_head["x"]
    assert of_head["y"] < of_map["y"] + of_map["height"] / 2
    assert overview.evaluate("one => getComputedStyle(one).position") == "sticky"
    page.set_viewport_size({"width": 390, "height": 1000})
    page.wait_for_function(
        "([map, head]) => head.getBoundingClientRect().top >= map.getBoundingClientRect().bottom",
        arg=[overview.element_handle(), first.element_handle()],
    )


def test_the_overview_names_each_layer_as_the_host_does(show):
    axis = Axis("token", ("a", "b"), None)
    weights = np.full((2, 1, 2, 2), 0.5, np.float32)
    names = ("model.layers.17.self_attn", "model.layers.29.self_attn")
    page = show(
        [
            attention_heads(
                weights,
                blocked=None,
                blocked_by=(),
                rows=axis,
                columns=axis,
                head_names=[[""], [""]],
                layer=0,
                head=0,
                looks=Looks(),
                key=HEADS,
                layer_names=names,
            )
        ]
    )
    expect(page.locator(".overview-name")).to_have_text(["", "h0", "L17", "L29"])
    expect(page.get_by_role("option").last).to_have_accessible_name("model.layers.29.self_attn, head 0")


def test_every_layer_of_twelve_has_its_number(show_link):
    page = show_link(view="heads", n_layers=12, n_heads=1)
    expect(page.locator(".overview-name")).to_have_text(["", "h0", *(f"L{layer}" for layer in range(12))])


def test_lines_join_a_token_to_those_it_attends_to(show_link):
    page = show_link(view="heads")
    weights = compute_run(Settings()).trace[WEIGHTS].value[0]
    as_lines(page)
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
    head_chip(page, 2).click()
    page.locator(".lines-query .lines-token").nth(8).hover()
    expect(page.locator(".lines-note")).to_have_text(re.compile(": 2 lines of weight"))
    page.wait_for_function(
        "() => heard.at(-1)?.value.drawn === 'lines' && String(heard.at(-1).value.shown) === '2'"
    )


def drawn_pixels(canvas: Locator) -> int:
    """Count the pixels of a canvas that are not empty, in the frame after the next."""
    drawn: int = canvas.evaluate(
        """canvas => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let count = 0;
          for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
          done(count);
        })))"""
    )
    return drawn


def test_each_head_has_a_line_of_its_own_kind(show_link):
    page = show_link(view="heads", weights="random")
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
    as_lines(page)
    lines = page.locator(".chips-of-lines .chip-line:visible line")
    expect(lines).to_have_count(4)
    shown = {lines.nth(head).get_attribute("stroke-dasharray").replace(" ", ",") for head in range(4)}
    assert len(shown) == 4
    page.wait_for_function("shown => shown.every((one) => dashes.has(one))", arg=sorted(shown))


def test_the_layer_changes_at_once_and_the_host_hears_of_the_last(show_link):
    page = show_link(view="heads", weights="random", seed=3, n_layers=4)
    trace = compute_run(Settings(weights="random", seed=3, n_layers=4)).trace
    layer_1 = trace["encoder.layers.1.self_attention.weights"].value[0]
    assert page.get_by_role("button", name="next layer").evaluate(LAYERS_BACK_AND_FORTH) == "Layer 1"
    page.wait_for_function("() => heard.length > 0")
    assert [(name, value["layer"]) for name, value in heard(page, HEADS)] == [("shown", 1)]
    for head in range(4):
        point_at(panels(page, HEADS).nth(head), 7, 4, SHAPE)
        wait_for_numbers(page, [layer_1[head, 7, 4].item()])
    wait_until_lit(panels(page, HEADS), [(7, 4)] * 4)


def test_a_thumbnail_selects_and_a_cell_is_told_with_its_layer(show_link):
    page = show_link(view="heads", n_layers=3)
    overview = picture(page, HEADS).locator(".overview")
    assert overview.evaluate("one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight")
    page.get_by_role("option", name="layer 2, head 1 · next token").click()
    expect(page.locator(".layer-text")).to_have_text("Layer 2")
    click_cell(panels(page, HEADS).nth(3), 6, 0, SHAPE)
    page.wait_for_function("() => heard.some(({ name }) => name === 'select')")
    _, told = next(event for event in heard(page, HEADS) if event[0] == "select")
    assert {name: told[name] for name in ("layer", "head", "query", "key")} == {
        "layer": 2,
        "head": 3,
        "query": 6,
        "key": 0,
    }
    expect(tooltip(page)).to_contain_text("head 3 · first token")


@pytest.mark.parametrize(("before", "after"), [("0", [1]), ("0,2", [0, 1, 2])])
def test_a_thumbnail_of_a_hidden_head_shows_it(show_link, before, after):
    page = show_link(view="heads", shown=before, head=0)
    page.get_by_role("option", name="layer 1, head 1 · next token").click()
    shows(page, *after)
    page.wait_for_function("() => heard.length > 0")
    _, told = heard(page, HEADS)[-1]
    assert (told["layer"], told["head"], told["shown"]) == (1, 1, ",".join(map(str, after)))


def test_the_weights_follow_a_dial_that_is_dragged(show_link):
    text = " ".join("abacus"[i % 6] for i in range(50))  # so many that colours alone are sent while it is dragged
    page = show_link(view="heads", text=text, weights="random", mask="none")
    open_fold(page, "View")
    dial = page.get_by_role("slider", name="temperature")
    dial.evaluate(MOVE_TO, 20)
    expect(page.locator(".dial-text")).to_have_text(["10.00", "4"])
    expect(picture(page, HEADS).locator(".headlight[aria-busy=true]")).to_have_count(0)
    flat = Settings(text=text, weights="random", mask=(), score="score / 10")
    point_at(panels(page, HEADS).first, 9, 1, (50, 50))
    wait_for_numbers(page, [float(compute_run(flat).trace[WEIGHTS].value[0, 0, 9, 1])])
    expect(tooltip(page)).not_to_contain_text("≈")  # the exact number of the cell has come
    assert heard(page) == []
    dial.evaluate(LET_GO)
    wait_until_told(page, HEADS, temperature=10)


def test_the_masks_are_pressed_in_the_picture(show_link):
    page = show_link(view="heads", text="a b c d", weights="random", mask="none")
    masks = page.locator("[data-dial=mask]")
    causal = masks.get_by_role("button", name="Causal", exact=True)
    expect(causal).to_have_attribute("aria-pressed", "false")
    causal.click()
    expect(causal).to_have_attribute("aria-pressed", "true")
    expect(picture(page, HEADS).locator(".headlight[aria-busy=true]")).to_have_count(0)
    masked = compute_run(Settings(text="a b c d", weights="random", mask=("causal",)))
    point_at(panels(page, HEADS).first, 2, 1, (4, 4))
    wait_for_numbers(page, [float(masked.trace[WEIGHTS].value[0, 0, 2, 1])])
    causal.click()
    expect(causal).to_have_attribute("aria-pressed", "false")
    free = compute_run(Settings(text="a b c d", weights="random", mask=()))
    point_at(panels(page, HEADS).first, 2, 1, (4, 4))
    wait_for_numbers(page, [float(free.trace[WEIGHTS].value[0, 0, 2, 1])])


def test_the_number_of_heads_is_turned_in_the_picture(show_link):
    page = show_link(view="heads", text="a b c d", weights="random")
    dial = page.get_by_role("slider", name="Heads")
    for n_heads in (6, 2, 6):  # heads that are there no more, and then again
        dial.evaluate(MOVE_TO, n_heads)
        titles = [f"head {head}" for head in range(n_heads)]
        expect(panels(page, HEADS).locator(".matrix-title")).to_have_text(titles)
    expect(picture(page, HEADS).locator(".headlight[aria-busy=true]")).to_have_count(0)
    six = fitted(Settings(text="a b c d", weights="random", n_heads=6))
    point_at(panels(page, HEADS).nth(5), 3, 1, (4, 4))
    wait_for_numbers(page, [float(compute_run(six).trace[WEIGHTS].value[0, 5, 3, 1])])
    assert heard(page) == []
    dial.evaluate(LET_GO)
    wait_until_told(page, HEADS, n_heads=6)


def test_after_back_a_dial_that_the_host_never_hears_of_is_turned_back(show_link):
    page = show_link(view="heads", text="a b c d", weights="random")
    titles, dial = panels(page, HEADS).locator(".matrix-title"), page.get_by_role("slider", name="Heads")
    dial.evaluate(MOVE_TO, 6)
    expect(titles).to_have_text([f"head {head}" for head in range(6)])
    page.evaluate("() => window.dispatchEvent(new PopStateEvent('popstate'))")
    expect(titles).to_have_text([f"head {head}" for head in range(4)])
    expect(dial).to_have_value("4")
    expect(picture(page, HEADS).locator(".headlight[aria-busy=true]")).to_have_count(0)
    four = fitted(Settings(text="a b c d", weights="random"))
    point_at(panels(page, HEADS).nth(3), 3, 1, (4, 4))
    wait_for_numbers(page, [float(compute_run(four).trace[WEIGHTS].value[0, 3, 3, 1])])


def test_what_is_turned_is_told_together_once_the_hand_rests(show_link):
    page = show_link(view="heads", text="a b c d", weights="random", mask="none")
    press = "masks => [%s].forEach((one) => masks.querySelector(`[data-name=${one}]`).click())"
    masks = page.locator("[data-dial=mask]")
    masks.evaluate(press % "'causal', 'strided', 'causal'")
    wait_until_told(page, HEADS, mask=["strided"])


def test_a_path_shows_the_map_of_all_heads_and_the_one_that_is_chosen_there(show):
    labels = tuple("abcd")
    axes = {"rows": Axis("query", labels), "columns": Axis("key", labels), "head_names": [[""] * 3] * 2}
    masks = {"blocked": None, "blocked_by": ()}
    weights = np.full((2, 3, 4, 4), 0.25, np.float32)
    page = show([attention_heads(weights, **masks, **axes, layer=0, head=2, looks=Looks(), key=HEADS, light="map")])
    titles = panels(page, HEADS).locator(".matrix-title")
    expect(titles.filter(visible=True)).to_have_text(["head 2"])
    page.locator(".thumbnail").nth(4).click()
    expect(titles.filter(visible=True)).to_have_text(["head 1"])
    expect(picture(page, HEADS).locator(".heads-bar, .chips").filter(visible=True)).to_have_count(0)


def test_the_query_follows_the_pointer_along_the_tokens_and_the_host_hears_where_it_lets_go(show_link):
    page = show_link(view="heads", text="a b c d e f", architecture="encoder", query=0, key=1)
    chips = picture(page, "token_strip").locator(".chip")
    chips.nth(1).hover()
    page.mouse.down()
    expect(chips.nth(1)).to_have_attribute("aria-selected", "true")
    chips.nth(4).hover()
    wait_until_lit(panels(page, HEADS), [(4, None)] * 4)
    expect(chips.nth(4)).to_have_attribute("aria-selected", "true")
    cell, plot = (
        picture(page, HEADS).locator(f".matrix-current {part}").bounding_box()
        for part in (".light-selected", ".matrix-plot")
    )
    assert (cell["y"] + cell["height"] / 2 - plot["y"]) / plot["height"] == pytest.approx(4.5 / 6, abs=0.01)
    assert heard(page, "token_strip") == []
    page.mouse.up()
    page.wait_for_function("() => heard.some(({ key }) => key === 'token_strip')")
    assert [value["index"] for _, value in heard(page, "token_strip")] == [4]


def test_weights_come_by_address_and_the_picture_stays_while_they_are_under_way(show_link):
    page = show_link(view="heads", n_heads=1)
    two_heads = next(one for one in pictures_of(view="heads", n_heads=2) if one.key == HEADS)
    titles = panels(page, HEADS).locator(".matrix-title")
    requests: list[dict[str, str]] = []
    waiting: list[Route] = []

    def refuse(route: Route) -> None:  # a status that the browser does not log as an error of the page
        route.fulfill(status=300, content_type="text/plain", body="The server has too much to compute.\n")

    def hold_first(route: Route) -> None:
        requests.append(dict(parse_qsl(urlsplit(route.request.url).query)))
        waiting.append(route) if len(requests) == 1 else route.fulfill(body=answer(route.request.url))

    page.route("**/pictures/heads?*", refuse)
    update(page, two_heads)
    problem = picture(page, HEADS).get_by_role("alert")
    expect(problem).to_contain_text("The server has too much to compute.")
    expect(titles).to_have_count(1)

    page.unroute("**/pictures/heads?*")
    page.route("**/pictures/heads?*", hold_first)
    problem.get_by_role("button", name="Try again").click()
    sign = picture(page, HEADS).locator(".arrivals-sign")
    expect(sign).to_be_visible()
    expect(problem).to_be_hidden()
    expect(titles).to_have_count(1)

    waiting.pop().fulfill(
        body=answer(page.url + "pictures/heads?" + "&".join(f"{k}={v}" for k, v in requests[0].items()))
    )
    expect(titles).to_have_count(2)
    expect(sign).to_be_hidden()
    assert [asked["layers"] for asked in requests] == ["0", "1"]
    assert {asked["n_heads"] for asked in requests} == {"2"}


def test_nothing_can_be_turned_before_the_first_weights_are_there(show_link):
    page = show_link(view="heads")
    held: list[Route] = []
    page.route("**/pictures/heads?*", lambda route: held.append(route))
    with page.expect_request("**/pictures/heads?*"):
        page.reload()
    controls = picture(page, HEADS).locator(".heads-top")
    expect(controls).to_have_js_property("inert", True)
    page.unroute("**/pictures/heads?*")
    held[0].fulfill(body=answer(held[0].request.url))
    expect(controls).to_have_js_property("inert", False)


def test_rows_that_learned_carry_the_token_read_and_the_one_predicted(show_link):
    page = show_link(view="heads", weights="trained", task="reverse", text="xyz")
    plot = panels(page, "attention_heads_decoder_self_attention").first.locator(".matrix-plot")
    assert room_for(plot, "x → <eos>")
    as_lines(page)
    expect(page.locator(".lines-query .token").last).to_have_text("x → <eos>")
