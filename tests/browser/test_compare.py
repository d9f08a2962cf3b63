"""Compare masks: cells locked together, what the words say, and what happened downstream."""

from __future__ import annotations

import re
from dataclasses import replace

from playwright.sync_api import expect

from tests.browser.headlight_page import (
    click_cell,
    close_to,
    link_of,
    lit_cells,
    messages_sent,
    panels,
    point_at,
    rerun,
    tooltip,
    tooltip_numbers,
)
from visualizer.comparison import downstream, shift
from visualizer.run import compute_run, without_layer
from visualizer.settings import Settings

SHAPE = (11, 11)
A = Settings(weights="random", seed=5, mask=())
B = replace(A, mask=("causal",))


def test_cells_are_locked_together_and_the_layer_needs_no_message(open_app):
    page = open_app(view="compare", weights="random", seed=5)
    a, b = (compute_run(settings).trace for settings in (A, B))
    sent = messages_sent(page)
    for layer in (0, 1):
        if layer:
            page.get_by_role("button", name="next layer").click()
            expect(page.locator(".layer-text")).to_have_text("Layer 1")
        before, after = (
            trace[f"encoder.layers.{layer}.self_attention.weights"].value[0, :, 6, 3].tolist() for trace in (a, b)
        )
        for head in range(4):
            point_at(panels(page, "compare_grids").nth(3 * head + 1), 6, 3, SHAPE)
            expected = (before[head], after[head], after[head] - before[head])
            assert tooltip_numbers(page) == [close_to(value) for value in expected]
            assert lit_cells(page, "compare_grids") == [(6, 3)] * 12
    assert lit_cells(page, "downstream") == [(None, 3)], "the grids of the page light the key's column"
    point_at(panels(page, "compare_grids").first, 6, 9, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by causal")
    assert messages_sent(page) == sent


def test_the_words_and_the_picture_downstream_are_the_models(open_app):
    page = open_app(view="compare", weights="random", seed=5)
    a, b = compute_run(A), compute_run(B)
    with rerun(page, "compare_grids"):
        click_cell(panels(page, "compare_grids").nth(3), 3, 0, SHAPE)
    assert {"head": "1", "query": "3", "key": "0"}.items() <= link_of(page).items()
    moved = shift(a, b, "encoder.layers.0.self_attention", batch=0, head=1, query=3)
    account = page.get_by_test_id("stMarkdown").filter(has_text=re.compile("^Layer 0, head 1, query 3 “on”"))
    expect(account).to_contain_text(f"Blocking these 7 keys freed {moved.freed:.2f} of its weight")
    for key, gain in moved.gains:
        expect(account).to_contain_text(re.compile(rf"key {key} “\w+” \(\+{gain:.2f}\)"))

    found = downstream(a, b, batch=0, prefix="encoder")
    assert found is not None
    shape = found.norms.shape
    for row in range(0, shape[0], 3):
        point_at(panels(page, "downstream"), row, 2, shape)
        assert tooltip_numbers(page) == [close_to(float(found.norms[row, 2]))]
    with rerun(page):
        click_cell(panels(page, "downstream"), 3, 2, shape)
    assert link_of(page)["stage"] == without_layer(found.paths[3])

    best = b.trace["probabilities"].value[0].max(-1)
    changed = (a.trace["probabilities"].value[0].argmax(-1) != best.indices).sum()
    expect(page.get_by_text(f"another one at {int(changed)} of 11 positions")).to_be_visible()
    word = b.vocabulary[int(best.indices[0])]
    expect(page.get_by_test_id("glide-cell-2-0")).to_contain_text(f"{word} {best.values[0].item():.1%}")
