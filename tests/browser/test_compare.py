"""Compare masks: cells locked together, what the words say, and what happened downstream."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from tests.browser.headlight_page import compared, link_of, lit_cells, messages_sent, panels, pill, rerun, settle
from tests.reading import MOVE_TO, click_cell, close_to, point_at, tooltip, tooltip_numbers
from visualizer.runs.compute import compute_run
from visualizer.runs.paths import without_layer
from visualizer.settings.settings import Settings
from visualizer.views.comparison import downstream, shift

SHAPE = (11, 11)
A = Settings(weights="random", seed=5, mask=())
B = replace(A, mask=("causal",))


def test_cells_are_locked_together_in_every_layer(open_app):
    page = open_app(view="compare", weights="random", seed=5)
    picture, said = (page.locator(f".st-key-{key}").bounding_box()["y"] for key in ("compare_grids", "agreement"))
    assert picture < said, "what is said of the numbers stands below them"
    a, b = (compute_run(settings).trace for settings in (A, B))
    for layer in (0, 1):
        if layer:
            page.get_by_role("button", name="next layer").click()
            expect(page.locator(".layer-text")).to_have_text("Layer 1")
        before, after = (
            trace[f"encoder.layers.{layer}.self_attention.weights"].value[0, :, 6, 3].tolist() for trace in (a, b)
        )
        for head in range(4):
            point_at(compared(page, head).nth(1), 6, 3, SHAPE)
            expected = (before[head], after[head], after[head] - before[head])
            assert tooltip_numbers(page) == [close_to(value) for value in expected]
            assert lit_cells(page, "compare_grids") == [(6, 3)] * 12
    assert lit_cells(page, "downstream") == [(None, 3)], "the grids of the page light the key's column"
    point_at(panels(page, "compare_grids").first, 6, 9, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by causal")

    dial = page.locator(".st-key-compare_grids .dial").get_by_role("slider")
    order = "heads => heads.map((head) => head.dataset.head)"
    heads = page.locator(".compare-head")
    before_turning, sent = heads.evaluate_all(order), messages_sent(page)
    dial.evaluate(MOVE_TO, dial.get_attribute("max"))
    flat = [
        compute_run(replace(settings, score="score / 10")).trace["encoder.layers.1.self_attention.weights"].value
        for settings in (A, B)
    ]
    moved = (flat[0] - flat[1]).clamp_min(0).sum(-1).mean(-1)[0]
    expect(page.locator(".compare-head[data-head='2']")).to_contain_text(
        f"{100 * moved[2]:.1f} % of the weight moved"
    )
    before, after = (float(weights[0, 2, 6, 3]) for weights in flat)
    point_at(compared(page, 2).nth(2), 6, 3, SHAPE)
    assert tooltip_numbers(page) == [close_to(value) for value in (before, after, after - before)]
    assert heads.evaluate_all(order) == before_turning, "they keep their places under the hand"
    assert messages_sent(page) == sent
    with rerun(page, "compare_grids"):
        dial.evaluate("dial => dial.dispatchEvent(new Event('change'))")
    assert link_of(page)["score"] == "score / 10"
    assert [int(head) for head in heads.evaluate_all(order)] == moved.argsort(descending=True).tolist()


def test_the_words_and_the_picture_downstream_are_the_models(open_app):
    page = open_app(view="compare", weights="random", seed=5)
    a, b = compute_run(A), compute_run(B)
    with rerun(page, "compare_grids"):
        click_cell(compared(page, 1).first, 3, 0, SHAPE)
    assert {"head": "1", "query": "3", "key": "0"}.items() <= link_of(page).items()
    moved = shift(a, b, "encoder.layers.0.self_attention", batch=0, head=1, query=3)
    account = page.get_by_test_id("stMarkdown").filter(has_text=re.compile("^Layer 0, head 1, query 3 “on”"))
    expect(account).to_contain_text("Blocking these 7 keys freed")
    said = account.inner_text().partition("freed ")[2]
    freed, *gains = (float(number) for number in re.findall(r"\d\.\d\d", said))
    assert [int(key) for key in re.findall(r"key (\d)", said)] == [key for key, _ in moved.gains]
    assert "and 1 other (" in said
    assert [freed, *gains] == pytest.approx(
        [moved.freed, *(g for _, g in moved.gains), *moved.other_gains], abs=0.01
    )
    assert sum(gains) == pytest.approx(freed)

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
    expect(page.get_by_test_id("stDataFrame").last).to_contain_text("Changed")
    word = b.vocabulary[int(best.indices[0])]
    expect(page.get_by_test_id("glide-cell-2-0")).to_contain_text(f"{word} {best.values[0].item():.1%}")


def test_the_head_that_changed_most_is_first_and_the_sign_needs_no_colour(open_app):
    text = " ".join(f"w{i % 7}" for i in range(44))
    page = open_app(view="compare", weights="random", seed=5, text=text)
    settings = replace(A, text=text)
    before, after = (
        compute_run(replace(settings, mask=mask)).trace["encoder.layers.0.self_attention.weights"].value[0]
        for mask in ((), ("causal",))
    )
    moved = (before - after).clamp_min(0).sum(-1).mean(-1)
    heads = page.locator(".compare-head")
    order = [int(heads.nth(rank).get_attribute("data-head")) for rank in range(4)]
    assert order == moved.argsort(descending=True).tolist()
    expect(heads.first).to_contain_text(f"{100 * moved.max():.1f} % of the weight moved")

    change = after[order[0]] - before[order[0]]
    lined = compared(page, order[0]).nth(2).evaluate(_LINED_CELLS, [44, 44])
    assert all(lined[i][j] == 0 for i, j in (change > 0).nonzero().tolist()), "no line over a gain"
    strong = (change < -0.2 * change.abs().max()).nonzero().tolist()
    assert strong
    assert all(lined[i][j] > 0 for i, j in strong), "lines over every clear loss"


_LINED_CELLS = """(panel, [rows, columns]) => {
  const overlay = panel.querySelector(".matrix-overlay");
  const boxOf = (element) => element.getBoundingClientRect();
  const [plot, whole] = [boxOf(panel.querySelector(".matrix-plot")), boxOf(overlay)];
  const ratio = overlay.width / whole.width;
  const [left, top] = [(plot.left - whole.left) * ratio, (plot.top - whole.top) * ratio];
  const [width, height] = [(plot.width / columns) * ratio, (plot.height / rows) * ratio];
  const context = overlay.getContext("2d");
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => {
      const x = Math.ceil(left + column * width) + 1;
      const y = Math.ceil(top + row * height) + 1;
      const inside = [Math.max(1, Math.floor(width) - 2), Math.max(1, Math.floor(height) - 2)];
      const { data } = context.getImageData(x, y, ...inside);
      return data.filter((value, i) => i % 4 === 3 && value > 0).length;
    }),
  );
}"""


def test_no_mask_is_a_choice_of_its_own(open_app):
    page = open_app(view="compare")
    expect(pill(page, "mask_a", "No mask")).to_have_attribute("aria-pressed", "true")
    with rerun(page, "compare_grids"):
        pill(page, "mask_a", "Padding").click()
    expect(pill(page, "mask_a", "No mask")).to_have_attribute("aria-pressed", "false")
    assert link_of(page)["mask_a"] == "padding"
    with rerun(page, "compare_grids"):
        pill(page, "mask_b", "Causal").click()
    expect(pill(page, "mask_b", "No mask")).to_have_attribute("aria-pressed", "true")
    assert link_of(page)["mask_b"] == "none"
    with rerun(page, "compare_grids"):
        pill(page, "mask_a", "No mask").click()
    expect(pill(page, "mask_a", "Padding")).to_have_attribute("aria-pressed", "false")
    assert "mask_a" not in link_of(page)


def test_an_answer_that_comes_late_is_not_drawn(open_app):
    page = open_app(view="compare", n_heads=1)
    heads = page.locator(".st-key-compare_grids .compare-head")
    expect(heads).to_have_count(1)
    held = []

    def answer(route):
        held.append(route) if "n_heads=2" in route.request.url else route.continue_()

    page.route("**/pictures/compare?*", answer)
    with page.expect_request("**/pictures/compare?*n_heads=2*"):
        page.locator(".st-key-n_heads input").press("ArrowRight")
    expect(page.locator(".st-key-compare_grids .arrivals-sign")).to_be_visible()
    expect(heads).to_have_count(1)  # the old picture stays, with its own words
    with rerun(page, "compare_grids"):
        page.locator(".st-key-n_heads input").press("ArrowRight")
    expect(heads).to_have_count(3)
    late = page.request.get(held[0].request.url)
    held[0].fulfill(status=200, body=late.body())
    settle(page)
    expect(heads).to_have_count(3)
    expect(page.locator(".st-key-compare_grids .arrivals-sign")).to_be_hidden()
