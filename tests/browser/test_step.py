"""Step through: arrow keys that are faster than the server, and what is in sight on a wide and on a low screen."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.browser.headlight_page import choose_view, link_of, panels, settle
from visualizer.components.stage_map.model_map import model_map
from visualizer.runs.compute import compute_run
from visualizer.runs.paths import layer_of, without_layer
from visualizer.settings.settings import Settings
from visualizer.stages.registry import on_map

WEIGHTS = "encoder.layers.0.self_attention.weights"


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


def edge_of(element: Locator, side: str, size: str) -> float:
    """Return the position of an element's end, from the left ("x", "width") or from the top ("y", "height")."""
    box: dict[str, float] = dict(element.bounding_box())  # type: ignore[call-overload]
    return box[side] + box[size]


def test_the_picture_fills_a_wide_screen_and_stands_in_sight_on_a_low_one(open_app):
    page = open_app(width=1920)
    picture, plot = page.locator(".st-key-picture"), panels(page, "picture").last.locator(".matrix-plot")
    assert edge_of(plot, "x", "width") > 0.97 * edge_of(picture, "x", "width")
    expect(page.locator(".stage-map .place")).to_have_text("Encoder · layer 0 · self-attention")
    page.set_viewport_size({"width": 1280, "height": 720})
    settle(page)
    assert edge_of(plot, "y", "height") <= 720
    for above in (".stage-map .stages", ".st-key-stage_text", ".st-key-formula", ".st-key-header"):
        assert edge_of(page.locator(above), "y", "height") < plot.bounding_box()["y"], above
    choose_view(page, "Follow a token")
    way = page.locator(".token-way")
    assert edge_of(way, "x", "width") <= 1280
    assert edge_of(way, "y", "height") <= 720

    page = open_app(view="step", width=390)
    first = panels(page, "picture").first.locator(".matrix-plot")
    assert first.bounding_box()["y"] < 640 < page.locator(".st-key-stage_text").bounding_box()["y"]
    page = open_app(architecture="encoder-decoder", height=720)
    assert edge_of(panels(page, "picture").last.locator(".matrix-plot"), "y", "height") <= 720
    page = open_app(weights="cross_attention")  # a batch, with a citation
    assert page.locator(".st-key-picture").bounding_box()["y"] < 0.9 * page.viewport_size["height"]
    cut = page.locator(".katex-display").evaluate("formula => formula.scrollHeight - formula.clientHeight")
    assert cut == 0, "the formula is whole"
