"""Two runs compared on a static page: cells locked together, what moved, dials, and numbers that come late."""

from __future__ import annotations

from dataclasses import replace

from playwright.sync_api import Locator, Page, Route, expect
from torch import Tensor

from tests.pictures.static_page import (
    LET_GO,
    answer,
    heard,
    panels,
    picture,
    pictures_of,
    update,
    wait_until_drawn,
    wait_until_told,
)
from tests.reading import (
    MOVE_TO,
    click_cell,
    close_to,
    lit_in,
    open_fold,
    point_at,
    tooltip,
    tooltip_numbers,
    wait_for_numbers,
)
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings
from visualizer.views.comparison import downstream

GRIDS = "compare_grids"
SHAPE = (11, 11)
LINK = {"view": "compare", "weights": "random", "seed": 5}
A = Settings(weights="random", seed=5, mask=())
B = replace(A, mask=("causal",))


def matrices(page: Page, head: int) -> Locator:
    """The matrices A, B and B - A of one head, wherever it stands."""
    return page.locator(f".compare-head[data-head='{head}'] .matrix")


def have_order(page: Page, moved: Tensor) -> None:
    """Wait until the heads stand from the one of which most moved down to the one of which least did."""
    for rank, head in enumerate(moved.argsort(descending=True).tolist()):
        expect(page.locator(".compare-head").nth(rank)).to_have_attribute("data-head", str(head))


def weights_of(layer: int, **changes: str) -> tuple[Tensor, Tensor]:
    """The weights of A and of B, (H, Tq, Tk)."""
    path = f"encoder.layers.{layer}.self_attention.weights"
    a, b = (compute_run(replace(settings, **changes)).trace[path].value[0] for settings in (A, B))  # type: ignore[arg-type]
    return a, b


def moved_in(before: Tensor, after: Tensor) -> Tensor:
    """The share of its weight that each head of A has elsewhere in B."""
    return (before - after).clamp_min(0).sum(-1).mean(-1)


def test_cells_are_locked_together_in_every_layer(show_link):
    page = show_link(**LINK)
    for layer in (0, 1):
        if layer:
            page.get_by_role("button", name="next layer").click()
            expect(page.locator(".layer-text")).to_have_text("Layer 1")
        before, after = (weights[:, 6, 3].tolist() for weights in weights_of(layer))
        for head in range(4):
            point_at(matrices(page, head).nth(1), 6, 3, SHAPE)
            wait_for_numbers(page, [before[head], after[head], after[head] - before[head]])
            assert lit_in(panels(page, GRIDS)) == [(6, 3)] * 12
    assert lit_in(panels(page, "downstream")) == [(None, 3)], "the grids of the page light the key's column"
    point_at(panels(page, GRIDS).first, 6, 9, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by causal")


def test_a_mask_is_pressed_in_its_fold_and_the_title_of_its_side_names_it(show_link):
    page = show_link(**LINK, layer=1)
    masks = page.locator("[data-dial=mask_a]")
    masks.locator("summary").click()
    masks.get_by_role("button", name="Padding", exact=True).click()
    masks.get_by_role("button", name="Causal", exact=True).click()
    expect(masks.locator("summary")).to_have_text("Masks A: padding, causal")
    expect(page.get_by_text("A · causal and padding")).to_have_count(4)
    wait_until_told(page, GRIDS, mask_a=["padding", "causal"])


def test_the_masks_that_are_offered_are_those_of_the_model_that_is_shown(show):
    recorded, built = (
        next(one for one in pictures_of(view="compare", **link) if one.key == GRIDS)
        for link in ({"source": "recording", "watched_source": "example"}, {"weights": "random"})
    )
    page = show([recorded])
    names = page.locator(".dial[data-dial=mask_b] .segment")
    of_recording = ["Causal", "Sliding window", "Prefix", "Strided"]
    for other, offered in ((built, ["Causal", "Padding", *of_recording[1:], "Painted"]), (recorded, of_recording)):
        update(page, other)
        expect(names).to_have_text(offered)


def test_weight_that_only_one_of_both_has_is_not_passed_over(show_link):
    page = show_link(view="compare", text="a b c", mask_a="custom", custom="k > q + 99", mask_b="none")
    expect(page.locator(".compare-moved").first).to_have_text("100.0% of the weight moved")


def test_the_heads_keep_their_places_while_a_dial_is_turned_and_are_in_order_after(show_link):
    page = show_link(**LINK, layer=1)
    open_fold(page, "View")
    dial = page.get_by_role("slider", name="Temperature")
    before_turning = moved_in(*weights_of(1))
    have_order(page, before_turning)
    dial.evaluate(MOVE_TO, dial.get_attribute("max"))
    flat = weights_of(1, score="score / 10")
    moved = moved_in(*flat)
    assert moved.argsort().tolist() != before_turning.argsort().tolist()
    expect(page.locator(".compare-head[data-head='2']")).to_contain_text(
        f"{100 * moved[2]:.1f}% of the weight moved"
    )
    before, after = (float(weights[2, 6, 3]) for weights in flat)
    point_at(matrices(page, 2).nth(2), 6, 3, SHAPE)
    wait_for_numbers(page, [before, after, after - before])
    have_order(page, before_turning)
    assert heard(page) == []
    dial.evaluate(LET_GO)
    wait_until_told(page, GRIDS, temperature=10)
    answered = pictures_of(**LINK, layer=1, score="score / 10")
    update(page, next(one for one in answered if one.key == GRIDS))
    have_order(page, moved)


def test_a_cell_is_told_with_its_head_and_a_stage_downstream_by_its_row(show_link):
    page = show_link(**LINK)
    click_cell(matrices(page, 1).first, 3, 0, SHAPE)
    found = downstream(compute_run(A), compute_run(B), batch=0, prefix="encoder")
    shape = found.norms.shape
    for row in range(0, shape[0], 3):
        point_at(panels(page, "downstream"), row, 2, shape)
        assert tooltip_numbers(page) == [close_to(float(found.norms[row, 2]))]
    click_cell(panels(page, "downstream"), 3, 2, shape)
    ((_, cell),), ((_, stage),) = heard(page, GRIDS), heard(page, "downstream")
    assert {"layer": 0, "head": 1, "query": 3, "key": 0}.items() <= cell.items()
    assert {"row": 3, "column": 2}.items() <= stage.items()


def test_the_head_that_changed_most_is_first_and_the_sign_needs_no_colour(show_link):
    text = " ".join(f"w{i % 7}" for i in range(44))
    page = show_link(**LINK, text=text)
    before, after = weights_of(0, text=text)
    moved = moved_in(before, after)
    have_order(page, moved)
    expect(page.locator(".compare-head").first).to_contain_text(f"{100 * moved.max():.1f}% of the weight moved")

    first = int(moved.argmax())
    change = after[first] - before[first]
    lined = matrices(page, first).nth(2).evaluate(_LINED_CELLS, [44, 44])
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


def test_heads_that_are_hidden_are_counted_beside_the_fold(show_link):
    page = show_link(**LINK)
    view = page.locator(".fold-title").last
    expect(view).to_have_text("View")
    open_fold(page, "View")
    page.get_by_role("button", name="head 2", exact=True).click()
    expect(page.locator(".compare-head")).to_have_count(1)
    expect(view).to_have_text("View · 1 of 4 heads")


def test_an_answer_that_comes_late_is_not_drawn(show_link):
    page = show_link(view="compare", n_heads=1)
    two, three = (next(one for one in pictures_of(view="compare", n_heads=n) if one.key == GRIDS) for n in (2, 3))
    heads = page.locator(".compare-head")
    held: list[Route] = []
    page.route("**/pictures/compare?*n_heads=2*", lambda route: held.append(route))
    with page.expect_request("**/pictures/compare?*n_heads=2*"):
        update(page, two)
    sign = picture(page, GRIDS).locator(".arrivals-sign")
    expect(sign).to_be_visible()
    expect(heads).to_have_count(1)  # the old picture stays, with its own words
    with page.expect_event("requestfailed"):  # nobody waits for it any more
        update(page, three)
    expect(heads).to_have_count(3)
    held[0].fulfill(body=answer(held[0].request.url))
    wait_until_drawn(page)
    expect(heads).to_have_count(3)
    expect(sign).to_be_hidden()


def test_no_colour_is_for_what_rounding_leaves(show_link):
    recorded = {"source": "recording", "watched_source": "example", "stage": "layers.0.self_attn"}
    page = show_link(view="compare", mask_b="causal", **recorded)
    expect(page.locator(".compare-moved")).to_have_text(["no weight moved"] * 4)
    expect(page.locator(".legend").last).to_contain_text("B − A−101")
