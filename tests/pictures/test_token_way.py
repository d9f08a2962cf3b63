"""One token's way on a static page: arrow keys, what pointing shows, where a click leads, and the row of tokens."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.pictures.static_page import heard, let_answer, picture, pictures_in, run_of
from tests.reading import tooltip
from visualizer.components.packing import header_of
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings

WAY = "token_way_encoder.layers.0.self_attention.weights"


def heading(page: Page) -> Locator:
    return page.locator(".way-heading")


def test_the_way_of_a_token_is_followed_and_pointed_at_and_a_part_is_opened(show_link):
    page = show_link(view="way", query=3)
    run = compute_run(Settings())
    labels = run.tokens["source"].labels
    best = run.vocabulary[int(run.trace["logits"].value[0, 4].argmax())]
    page.locator(".token-way").focus()
    page.keyboard.press("ArrowRight")
    expect(heading(page)).to_contain_text(f"At “{labels[4]}” (token 4), the model answers “{best}” (")
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
    expect(heading(page)).to_contain_text("“e” (token 4)")
    page.mouse.move(0, chip.bounding_box()["y"])  # further than the row goes
    expect(heading(page)).to_contain_text("“a” (token 0)")
    assert heard(page) == []
    page.mouse.up()
    page.wait_for_function("() => heard.length > 0")
    assert [(name, value["index"]) for name, value in heard(page)] == [("select", 0)]


def test_every_bar_is_on_one_scale_and_has_its_norm_as_a_number(show_link):
    page = show_link(view="way", architecture="decoder", weights="hand_built")
    bars = page.locator(".token-way [data-part]").evaluate_all(
        """bars => bars.map((bar) => [
          Number(bar.querySelector("rect[fill]").getAttribute("height")),
          Number(bar.querySelector(".norm").textContent),
        ])"""
    )
    largest = max(norm for _, norm in bars)
    longest = max(height for height, _ in bars)
    assert largest > 10 * min(norm for _, norm in bars)
    for height, norm in bars:
        assert abs(height - longest * norm / largest) < 1.1
    expect(heading(page)).not_to_contain_text("adds most")  # heads of equal norms


def test_no_ribbon_begins_at_the_tokens_that_are_not_named_and_no_list_is_there_twice(show_link):
    page = show_link(view="way", text="a b c d e f g h i j k l m n o p q r s t u v", architecture="decoder")
    read = page.locator(".token-way .token-read").evaluate_all(
        "texts => texts.map((text) => text.getAttribute('x'))"
    )
    assert len(read) < 2 * 22
    starts = "ribbons => ribbons.map((ribbon) => ribbon.getAttribute('d').slice(1).split(',')[0])"
    found = page.locator(".token-way .ribbon").evaluate_all(starts)
    assert found
    assert set(found) <= set(read)
    stops = page.locator(".token-way [data-stop]").count()
    assert page.locator(f".token-way [data-lens='{stops - 2}']").count()
    assert not page.locator(f".token-way [data-lens='{stops - 1}']").count()
    expect(page.locator(".token-way [data-lens=end].answers")).to_have_count(6)  # a title and five answers


def test_likely_words_have_bars_on_one_scale_in_every_list(show_link):
    page = show_link(view="way", weights="trained", task="small_english", text="the cat sat on the")
    bars = page.locator(".token-way .answers:has(rect)").evaluate_all(
        """all => all.map((one) => [
          Number(one.querySelector("rect").getAttribute("width")), Number(one.querySelector(".end")?.textContent),
        ])"""
    )
    said = [(width, share) for width, share in bars if share >= 0.05]
    assert len(said) > 5
    assert all(width == pytest.approx(44 * share, abs=0.5) for width, share in said)


def test_the_arrow_keys_go_to_another_token_before_anything_is_clicked(show_link):
    page = show_link(view="way", architecture="decoder", query=3)
    expect(heading(page)).to_contain_text("(token 3), the model predicts")
    page.keyboard.press("ArrowRight")
    expect(heading(page)).to_contain_text("(token 4), the model predicts")
    page.keyboard.press("ArrowLeft")
    expect(heading(page)).to_contain_text("(token 3), the model predicts")


def test_the_ways_of_a_long_text_are_fetched_once_for_all_its_tokens(show):
    app = run_of(view="way", text="a b c d " * 16, query=3)
    (way,) = (one for one in pictures_in(app) if one.key == WAY)
    assert not header_of(way.data)["arrays"]
    page = show([way])
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for token in (4, 5):
        page.keyboard.press("ArrowRight")
        expect(heading(page)).to_contain_text(f"(token {token})")
        page.wait_for_function("token => heard.at(-1)?.value.query === token", arg=token)
        let_answer(app, page, WAY)
        expect(heading(page)).to_contain_text(f"(token {token})")
    assert asked == []


def test_bars_too_narrow_for_a_name_are_counted_below(show_link):
    page = show_link(view="way", n_heads=16, n_layers=4)
    parts = page.locator(".token-way [data-part]")
    narrow = [text for text in parts.all_text_contents() if text.isdecimal()]
    assert narrow == [str(head) for _ in range(4) for head in range(0, 16, 2)]
    parts.nth(3).hover()
    expect(tooltip(page)).to_contain_text("head 1")
    expect(tooltip(page)).to_contain_text("norm ")


def test_of_many_layers_one_has_room_to_be_read(show_link):
    page = show_link(view="way", n_layers=12, layer=3)
    number = page.locator(".token-way [data-layer]")
    read = page.locator(".token-way .token-read")
    expect(number).to_have_count(12)
    widths = number.evaluate_all("places => places.map((place) => Number(place.getAttribute('width')))")
    assert [layer for layer, width in enumerate(widths) if width > min(widths)] == [3]
    expect(read.nth(2)).to_be_in_viewport()
    number.nth(5).click()
    page.wait_for_function("() => heard.length > 0")
    assert [(name, value["layer"]) for name, value in heard(page)] == [("shown", 5)]
    page.locator(".token-way").focus()
    page.keyboard.press("PageDown")
    page.wait_for_function("() => heard.length > 1")
    assert heard(page)[-1][1]["layer"] == 6
    expect(page.locator(".token-way .way-title", has_text="layer 6 · self-attention")).to_be_in_viewport()


def test_a_column_that_opens_or_closes_is_drawn_at_any_width(show_link):
    page = show_link(view="way")
    for width in (4, 1, 60):
        section = picture(page, WAY)
        section.evaluate("(section, width) => (section.style.width = `${width}px`)", width)
        expect(section).to_have_js_property("clientWidth", width)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        drawn = page.locator(".token-way rect").evaluate_all(
            "(rects) => rects.map((one) => one.width.baseVal.value)"
        )
        assert min(drawn) >= 0
