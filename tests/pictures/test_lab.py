"""The painter of the Mask lab on a static page: what follows a stroke, what is undone, and what the host hears."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.pages import PATIENCE
from tests.pictures.static_page import (
    heard,
    let_answer,
    panels,
    picture,
    pictures_in,
    pictures_of,
    run_of,
    update,
    update_all,
    wait_until_drawn,
)
from tests.reading import click_cell, point_at, tooltip, tooltip_numbers
from tests.test_app import open_case
from visualizer.colors import WARNING
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Selection, Settings

PAINTER = "mask_painter"
LINK = {"view": "lab", "text": "a b c d", "weights": "random"}
SHAPE = (4, 4)
HOLD_ANSWERS = """() => {
  const ask = window.fetch;
  const gate = new Promise((open) => (window.letAnswer = open));
  window.asked = 0;
  window.fetch = async (...given) => {
    window.asked += 1;
    await gate;
    return ask(...given);
  };
}"""


def painter(page: Page) -> Locator:
    return panels(page, PAINTER).first


def undo(page: Page) -> Locator:
    return page.get_by_role("button", name="Undo", exact=True)


@pytest.mark.parametrize("width", [420, 880, 1280])
def test_no_head_is_cut_off(show_link, width):
    page = show_link(**LINK, n_heads=8, d_model=64, width=width)
    page.locator("summary", has_text="All heads").click()
    overview = picture(page, PAINTER).locator(".overview")
    assert overview.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_a_painting_of_one_head_of_one_layer_is_said_of_that_head_alone(show_link):
    page = show_link(view="heads", text="a b c d", mask="custom", custom="k <= q;1.2:k <= q or k == 3", layer=1)
    heads = panels(page, "attention_heads_encoder_self_attention")
    point_at(heads.nth(2), 0, 3, SHAPE)
    assert tooltip_numbers(page)[0] >= 0
    expect(tooltip(page)).not_to_contain_text("blocked")
    point_at(heads.nth(1), 0, 3, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by the painted mask")


def test_the_painting_is_one_of_the_masks_that_are_compared(show_link):
    page = show_link(view="compare", text="a b c d", custom="k == q", mask_a="causal", mask_b="custom")
    point_at(panels(page, "compare_grids").nth(1), 3, 0, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by the painted mask")


def test_a_finding_is_mended_by_one_click(show_link):
    page = show_link(**LINK, architecture="decoder", mask="custom", custom="q <= k", intent="causal")
    finding = page.locator(".finding")
    expect(finding).to_contain_text("rows and columns are swapped")
    finding.get_by_role("button", name="Fix: This is not causal").click()
    assert heard(page, PAINTER) == [("mend", {"finding": 0, "seq": 1})]


def test_a_mended_finding_is_one_step_of_undo_beside_other_masks(show):
    app = run_of(**LINK, architecture="decoder", mask="sliding_window", window=2, intent="causal")
    page = show(pictures_in(app))
    click_cell(painter(page), 2, 2, SHAPE)
    let_answer(app, page, PAINTER)

    def seen() -> list[list[str]]:
        return [[tooltip_of(page, query, key) for key in range(4)] for query in range(4)]

    before = seen()
    page.get_by_role("button", name="Fix: This is not causal").click()
    let_answer(app, page, PAINTER)
    expect(page.locator(".finding")).to_have_count(0)
    assert seen() != before
    undo(page).click()
    let_answer(app, page, PAINTER)
    assert seen() == before
    undo(page).click()
    let_answer(app, page, PAINTER)
    assert seen()[2][2] == "sees"


def tooltip_of(page: Page, query: int, key: int) -> str:
    point_at(painter(page), query, key, SHAPE)
    return "may not see" if "may not see" in tooltip(page).inner_text() else "sees"


def test_the_cross_attention_is_painted_and_undone_in_its_own_mask(show):
    link = LINK | {"architecture": "encoder-decoder", "target": "x y", "mask": "causal", "attention": "cross"}
    app = run_of(**link)
    page = show(pictures_in(app))
    click_cell(painter(page), 2, 3, (3, 4))
    let_answer(app, page, PAINTER)
    point_at(painter(page), 2, 3, (3, 4))
    expect(tooltip(page)).to_contain_text("painted")
    look_at(app, page, "encoder")
    expect(undo(page)).to_have_attribute("aria-disabled", "true")
    point_at(painter(page), 2, 3, SHAPE)
    expect(tooltip(page)).to_contain_text("sees")
    look_at(app, page, "cross")
    expect(undo(page)).to_have_attribute("aria-disabled", "false")
    undo(page).click()
    let_answer(app, page, PAINTER)
    assert "custom_cross" not in app.query_params


def look_at(app, page, attention):
    app.segmented_control(key="attention").set_value(attention).run()
    update_all(page, app)


def test_what_is_said_of_an_act_is_gone_with_the_focus(show_link):
    page = show_link(**LINK)
    said = picture(page, PAINTER).locator("[aria-live=polite].visually-hidden").filter(has_text="cells blocked")
    invert = page.get_by_role("button", name="Invert", exact=True)
    invert.click()
    expect(said).to_have_count(1)
    invert.blur()
    expect(said).to_have_count(0)


def test_what_was_painted_in_one_case_is_not_undone_in_the_next(show):
    app = run_of(view="lab")
    page = show(pictures_in(app))

    def take(case):
        open_case(app, case)
        update_all(page, app)

    take("transposed")
    click_cell(painter(page), 3, 0, (8, 8))
    let_answer(app, page, PAINTER)
    expect(undo(page)).to_have_attribute("aria-disabled", "false")
    take("inverted")
    expect(undo(page)).to_have_attribute("aria-disabled", "true")
    take("causal")
    click_cell(painter(page), 2, 6, (8, 8))
    said = page.get_by_role("status").filter(has_text="causal")
    expect(said).to_have_text("causal still blocks query 2, key 6, since the key comes later")
    page.locator(".painted-offer").click()
    let_answer(app, page, PAINTER)
    assert app.text_input(key="expression").value == "k <= q"


def test_all_weights_follow_a_stroke_and_nothing_is_told_until_it_ends(show_link):
    text = " ".join(f"w{i}" for i in range(64))
    link = {"architecture": "encoder", "text": text, "weights": "random", "mask": "custom", "custom": "k != 8"}
    page = show_link(view="lab", **link)
    plot = picture(page, PAINTER).locator(".matrix-plot")
    plot.scroll_into_view_if_needed()
    page.locator("summary", has_text="All heads").click()
    heads = picture(page, PAINTER).locator(".overview-pictures")
    drawn = small_pictures(heads, [])
    assert len(drawn) == 8
    box = plot.bounding_box()
    x, y = (box["x"] + 8.5 / 64 * box["width"], box["y"] + 20.5 / 64 * box["height"])
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 20 / 64 * box["height"], steps=9)
    freed = "k != 8 or (q >= 20 and q <= 40)"
    run = compute_run(Settings(architecture="encoder", text=text, weights="random", mask=("custom",), custom=freed))
    weight = float(run.trace["encoder.layers.0.self_attention.weights"].value[0, Selection().head, 40, 8])
    expect(tooltip(page)).to_contain_text(f"weight {weight:#.4g}")
    expect(tooltip(page)).not_to_contain_text("before this change")
    small_pictures(heads, drawn)
    assert heard(page) == []
    page.mouse.up()
    assert [name for name, _ in heard(page, PAINTER)] == ["paint"]


def small_pictures(canvas: Locator, before: list[str]) -> list[str]:
    """The pixels of each head's small picture, once all are drawn and none is as it was before."""
    found: list[str] = canvas.evaluate(
        """(canvas, [before, patience]) => new Promise((done, fail) => {
          const [box, context] = [canvas.getBoundingClientRect(), canvas.getContext("2d")];
          const scale = canvas.width / box.width;
          const pixelsOf = (thumbnail) => {
            const { x, y, width, height } = thumbnail.getBoundingClientRect();
            const place = [x - box.x, y - box.y, width, height].map((length) => Math.round(length * scale));
            return String(context.getImageData(...place).data);
          };
          const end = performance.now() + patience;
          const look = () => {
            const found = [...canvas.parentElement.querySelectorAll(".thumbnail")].map(pixelsOf);
            if (found.every((pixels, head) => /[1-9]/.test(pixels) && pixels !== before[head])) return done(found);
            if (performance.now() > end) return fail(new Error("a small picture is empty, or as it was"));
            requestAnimationFrame(look);
          };
          look();
        })""",
        [before, PATIENCE],
    )
    return found


@pytest.mark.parametrize("n_tokens", [12, 24, 60])
def test_the_verdict_is_in_sight_whatever_the_length_of_the_text(show, n_tokens):
    text = " ".join(["abc"] * n_tokens)
    drawn = pictures_in(run_of(view="lab", architecture="decoder", intent="window:4", text=text))
    page = show([one for one in drawn if one.key == PAINTER], width=560)
    page.set_viewport_size({"width": 540, "height": 600})
    expect(page.locator(".finding")).to_be_in_viewport(ratio=1)
    grid, finding = (page.locator(name).bounding_box()["y"] for name in (".matrix-plot", ".finding"))
    assert (grid < finding) == (n_tokens == 12)


def test_the_verdict_is_in_sight_below_a_grid_that_has_its_labels(show):
    drawn = pictures_in(run_of(view="lab", architecture="decoder", intent="window:4"))
    page = show([one for one in drawn if one.key == PAINTER], width=560)
    page.set_viewport_size({"width": 540, "height": 720})
    expect(page.locator(".finding")).to_be_in_viewport(ratio=1)
    above = "document.body.prepend(Object.assign(document.createElement('div'), {style: 'height: 100px'}))"
    page.evaluate(above)
    expect(page.locator(".finding")).to_be_in_viewport(ratio=1)
    page.evaluate(above.replace("100px", "400px"))
    page.wait_for_function(
        "() => document.querySelector('.picture div').shadowRoot.querySelector('.matrix-plot').clientHeight > 250"
    )


def test_a_marked_cell_is_outlined_and_no_other(show):
    marked = np.zeros((4, 4), dtype=np.bool_)
    marked[1, 3] = True
    rows, columns = Axis("query", tuple("abcd")), Axis("key", tuple("abcd"))
    page = show([tensor_grid([Panel("mask", "Mask", np.ones((4, 4)), rows, columns, marked=marked)], key="mask")])
    wait_until_drawn(page)
    warned = """(overlay, [red, green, blue]) => {
      const plot = overlay.parentElement.querySelector(".matrix-plot").getBoundingClientRect();
      const box = overlay.getBoundingClientRect();
      const ratio = overlay.width / box.width;
      const { data, width } = overlay.getContext("2d").getImageData(0, 0, overlay.width, overlay.height);
      const cells = new Set();
      for (let i = 0; i < data.length; i += 4) {
        if (data[i] !== red || data[i + 1] !== green || data[i + 2] !== blue || data[i + 3] !== 255) continue;
        const [x, y] = [(i / 4) % width, Math.floor(i / 4 / width)].map((at) => (at + 0.5) / ratio);
        const row = Math.floor((y + box.top - plot.top) / (plot.height / 4));
        cells.add(`${row} ${Math.floor((x + box.left - plot.left) / (plot.width / 4))}`);
      }
      return [...cells];
    }"""
    color = list(bytes.fromhex(WARNING["light"][1:]))
    assert panels(page, "mask").first.locator("canvas.matrix-overlay").evaluate(warned, color) == ["1 3"]


def test_what_arrives_after_the_small_pictures_have_gone_is_not_drawn(show):
    app = run_of(**LINK | {"mask": "causal"})
    page = show(pictures_in(app))
    page.evaluate(HOLD_ANSWERS)
    update_all(page, run_of(**LINK | {"mask": "causal", "seed": 9}))
    page.wait_for_function("() => asked")
    update_all(page, run_of(**LINK | {"mask": "causal", "hidden": "on"}))
    page.evaluate("() => letAnswer()")
    wait_until_drawn(page)
    expect(picture(page, PAINTER).locator(".painted-heads")).to_be_hidden()
    update_all(page, run_of(**LINK | {"mask": "causal", "seed": 9}))
    wait_until_drawn(page)
    expect(picture(page, PAINTER).locator(".painted-heads")).to_be_visible()


def test_a_stroke_that_is_answered_once_another_layer_is_looked_at_changes_nothing_of_that(show):
    long = {"view": "lab", "text": "a b c d " * 32, "weights": "random", "mask": "causal", "n_layers": 6}
    page = show(pictures_of(**long))
    page.evaluate(HOLD_ANSWERS)
    click_cell(painter(page), 9, 3, (128, 128))
    page.wait_for_function("() => asked")
    for one in pictures_of(**long, layer=1):
        if one.key == PAINTER:
            update(page, one)
    page.evaluate("() => letAnswer()")
    expect(picture(page, PAINTER).locator(".painted-heads")).not_to_have_attribute("aria-busy", "true")
    wait_until_drawn(page)


@pytest.mark.parametrize("view", ["lab", "step"])
def test_blocked_cells_are_plain_where_the_browser_has_lost_the_hatch(show_link, view):
    """As the browser says it when it is short of memory."""
    page = show_link(view=view, text="a b c d", mask="causal", stage="encoder.self_attention.weights", key=3)
    page.evaluate(
        """() => {
          window.nLost = 0;
          for (const { prototype } of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D])
            prototype.createPattern = () => {
              nLost += 1;
              throw new DOMException("The canvas height is 0.", "InvalidStateError");
            };
        }"""
    )
    page.set_viewport_size({"width": 700, "height": 700})
    page.wait_for_function("() => nLost > 0")
    wait_until_drawn(page)  # no picture has ended in an error
