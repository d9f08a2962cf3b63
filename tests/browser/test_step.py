"""Step through: the arrow keys, what lights up, the map, and the numbers of a worked example."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Locator, Page, expect

from model.sources.worked_examples import PUBLISHED as FOLDER
from tests.browser.headlight_page import link_of, lit_cells, messages_sent, panels, rerun, settle
from tests.reading import click_cell, close_to, number, point_at, tooltip, tooltip_numbers
from visualizer.components.stage_map import model_map
from visualizer.runs.compute import compute_run
from visualizer.runs.paths import layer_of, without_layer
from visualizer.settings.published import PUBLISHED
from visualizer.settings.settings import Settings
from visualizer.stages.registry import on_map

WEIGHTS = "encoder.layers.0.self_attention.weights"
SHAPE = (11, 11)


def chip(page: Page, index: int):
    return page.locator(".st-key-token_strip .chip").nth(index)


def test_fast_arrow_keys_lose_nothing(open_app):
    page = open_app()
    model = model_map(on_map(compute_run(Settings())))
    paths = [stage.path for block in model.blocks for stage in block.stages]
    target = paths[paths.index(WEIGHTS) + 8]
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".stage-map .counter")).to_have_text(f"stage {paths.index(target) + 1} of {len(paths)}")
    page.wait_for_url(lambda url: f"stage={without_layer(target)}" in url)
    settle(page)
    expect(page.locator(".stage-map .counter")).to_have_text(f"stage {paths.index(target) + 1} of {len(paths)}")
    assert int(link_of(page).get("layer", "0")) == layer_of(target)
    expect(panels(page, "picture").last.locator(".matrix-subtitle")).to_have_text(
        re.compile(f"^{target.rpartition('.')[2]} ")
    )


def test_arrow_keys_are_the_texts_own_while_typing(open_app):
    page = open_app()
    area = page.locator(".st-key-text textarea")
    area.focus()
    sent = messages_sent(page)
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowUp", "Home", "End"):
        page.keyboard.press(key)
    expect(page.locator(".stage-map [aria-current=step] .stage-code")).to_have_text("weights")
    assert messages_sent(page) == sent
    page.locator(".stage-map").focus()
    with rerun(page, "picture"):
        page.keyboard.press("ArrowLeft")
    expect(page.locator(".stage-map [aria-current=step] .stage-code")).to_have_text("masked_scores")


def test_pointing_lights_rows_and_columns_without_a_message(open_app):
    page = open_app()
    sent = messages_sent(page)

    chip(page, 3).hover()
    assert lit_cells(page, "picture") == [(3, 3)] * 2
    assert lit_cells(page, "every_head") == [(3, 3)] * 4

    point_at(panels(page, "every_head").nth(1), 5, 2, SHAPE)
    assert lit_cells(page, "every_head") == [(5, 2)] * 4
    assert lit_cells(page, "picture") == [(5, 2)] * 2
    expect(chip(page, 5)).to_have_attribute("data-mark", "query")
    expect(chip(page, 2)).to_have_attribute("data-mark", "key")

    page.mouse.move(2, 2)
    assert lit_cells(page, "picture") == [(None, None)] * 2
    expect(tooltip(page)).to_have_count(0)

    assert messages_sent(page) == sent
    with rerun(page, "picture"):
        chip(page, 3).click()
    assert messages_sent(page) == sent + 1
    assert link_of(page) == {"query": "3"}


def test_a_blocked_cell_says_which_masks_block_it(open_app):
    page = open_app(text="a b c", pad=2, mask="causal,padding", head=0)
    for column, masks in ((2, "causal"), (4, "causal, padding")):
        point_at(panels(page, "picture").last, 1, column, (5, 5))
        expect(tooltip(page)).to_contain_text(re.compile(f"blocked by {masks}$"))
        assert tooltip_numbers(page) == [0]


def test_blocks_stages_and_heads_are_chosen_with_the_pointer(open_app):
    page = open_app(d_ff=16)
    with rerun(page, "picture"):
        panels(page, "every_head").nth(1).locator(".matrix-title").click()
    assert link_of(page)["head"] == "1"
    expect(panels(page, "picture").last.locator(".matrix-title")).to_have_text("Attention weights · head 1")
    with rerun(page, "picture"):
        page.locator(".stage-map .block", has_text="forward").last.click()
    assert link_of(page)["layer"] == "1"
    expect(page.locator(".stage-map .place")).to_have_text("Encoder · layer 1 · feed-forward")
    with rerun(page, "picture"):
        page.locator(".stage-map .stage-code", has_text=re.compile("^hidden$")).click()
    assert link_of(page)["stage"] == "encoder.feed_forward.hidden"
    for column in (9, 1):
        with rerun(page, "derivation_0"):
            click_cell(panels(page, "picture").last, 4, column, (11, 16))
        value = compute_run(Settings(d_ff=16)).trace["encoder.layers.1.feed_forward.hidden"].value[0, 4, column]
        assert number(page.locator(".st-key-derivation_0 .result .value").inner_text()) == close_to(value.item())
    assert link_of(page)["query"] == "4"


def test_the_page_keys_walk_from_block_to_block(open_app):
    link = {"architecture": "encoder-decoder", "text": "a b a", "target": "c d", "n_layers": 1}
    page = open_app(**link)
    page.locator(".stage-map").focus()
    with rerun(page, "picture"):
        page.keyboard.press("End")
    for block in ("add & norm", "feed-forward", "add & norm", "cross-attention"):
        with rerun(page, "picture"):
            page.keyboard.press("PageUp")
        expect(page.locator(".stage-map .place")).to_have_text(f"Decoder · layer 0 · {block}")
        expect(page.locator(".st-key-derivation_0 .verdict")).to_have_text(re.compile("^equals"))
    with rerun(page, "picture"):
        page.keyboard.press("Home")
    with rerun(page, "picture"):
        page.keyboard.press("ArrowRight")
    second = list(compute_run(Settings(**link)).trace)[1].rpartition(".")[2]
    expect(page.locator(".stage-map [aria-current=step] .stage-code")).to_have_text(second)
    expect(panels(page, "picture").last.locator(".matrix-subtitle")).to_contain_text(second)


def test_a_worked_example_shows_the_published_numbers(open_app):
    page = open_app()
    with rerun(page):
        page.get_by_role("button", name="Examples", exact=True).click()
    with rerun(page, "token_strip", "picture"):
        page.get_by_role("button", name="Two causal heads").click()
    published = json.loads((FOLDER / "two_causal_heads.json").read_text())["expected"]
    assert link_of(page)["weights"] == "two_causal_heads"
    for query, key in ((1, 0), (2, 1), (3, 3), *((5, key) for key in range(6))):
        point_at(panels(page, "picture").last, query, key, (6, 6))
        assert tooltip_numbers(page) == [close_to(published["weights"][0][0][query][key])]
    page.mouse.move(2, 2)
    with rerun(page, "picture"):
        page.keyboard.press("ArrowRight")
    for query in range(6):
        point_at(panels(page, "picture").last, query, 1, (6, 2))
        assert tooltip_numbers(page) == [close_to(published["context"][0][0][query][1])]


def test_a_worked_example_is_chosen_from_the_menu_that_cites_it(open_app):
    page = open_app(view="generate")
    with rerun(page):
        page.get_by_role("button", name="Worked examples").click()
    menu = page.get_by_test_id("stPopoverBody")
    expect(menu.get_by_role("button")).to_have_count(len(PUBLISHED))
    expect(menu).to_contain_text("np.random.seed(42); q = rand(1, 2)")
    with rerun(page, "separate_heads"):
        menu.get_by_role("button", name="Three separate heads, one fused matrix").click()
    expect(menu).to_have_count(0)
    assert link_of(page)["weights"] == "three_heads"
    cited = page.locator(".st-key-citation")
    expect(cited).to_contain_text("Published in: Notebook 'Implementation of Multi-Head Attention'")
    expect(cited).to_contain_text("All 480 published numbers, in 10 stages, come out to 1e-9")
    ticked = page.locator(".stage-map .stage", has=page.get_by_role("img", name="as published", exact=True))
    published = json.loads((FOLDER / "three_heads.json").read_text())["expected"]
    expect(ticked.locator(".stage-code")).to_have_text(list(published))
    expect(page.get_by_text("equal the fused matrix to 1e-12")).to_be_visible()
    expect(page.get_by_text("exponentials = np.exp")).to_be_visible()
    expect(page.locator(".st-key-token_strip .id")).to_have_count(0)


def test_a_batch_with_a_citation_leaves_the_picture_in_sight_and_the_formula_whole(open_app):
    page = open_app(weights="cross_attention")
    assert page.locator(".st-key-picture").bounding_box()["y"] < 0.9 * page.viewport_size["height"]
    cut = page.locator(".katex-display").evaluate("formula => formula.scrollHeight - formula.clientHeight")
    assert cut == 0


def test_the_picture_fills_a_wide_screen_and_stands_in_sight_on_a_low_one(open_app):
    page = open_app(width=1920)
    picture, plot = page.locator(".st-key-picture"), panels(page, "picture").last.locator(".matrix-plot")

    def edge_of(element: Locator, side: str, size: str) -> float:
        box = element.bounding_box()
        return box[side] + box[size]

    assert edge_of(plot, "x", "width") > 0.97 * edge_of(picture, "x", "width")
    expect(page.locator(".stage-map .place")).to_have_text("Encoder · layer 0 · self-attention")
    page.set_viewport_size({"width": 1280, "height": 720})
    settle(page)
    assert edge_of(plot, "y", "height") <= 720
    for above in (".stage-map .stages", ".st-key-stage_text", ".st-key-formula", ".st-key-header"):
        assert edge_of(page.locator(above), "y", "height") < plot.bounding_box()["y"], above

    page = open_app(architecture="encoder-decoder", height=720)
    assert edge_of(panels(page, "picture").last.locator(".matrix-plot"), "y", "height") <= 720
    page = open_app(view="step", width=390)
    first = panels(page, "picture").first.locator(".matrix-plot")
    assert first.bounding_box()["y"] < 640 < page.locator(".st-key-stage_text").bounding_box()["y"]
