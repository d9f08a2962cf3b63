"""A stage on a static page: the map and its keys, what lights up, what is told, and published numbers."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from model.sources.worked_examples import PUBLISHED as FOLDER
from tests.pictures.static_page import heard, panels, picture, pictures_of, update, wait_until_drawn
from tests.reading import click_cell, close_to, lit_in, number, point_at, tooltip, tooltip_numbers
from visualizer.components.picture import Picture
from visualizer.components.stage_map.model_map import model_map
from visualizer.guide.known_paths import FIRST_PATH
from visualizer.guide.walking import place_of
from visualizer.runs.compute import compute_run
from visualizer.settings.examples import OPENING
from visualizer.settings.link import write_query
from visualizer.settings.settings import Settings
from visualizer.stages.registry import on_map

WEIGHTS = "encoder.layers.0.self_attention.weights"
SHAPE = (11, 11)
PUBLISHED = json.loads((FOLDER / "two_causal_heads.json").read_text())["expected"]


def chip(page: Page, index: int) -> Locator:
    return picture(page, "token_strip").locator(".chip").nth(index)


def stage_shown(page: Page) -> Locator:
    """The stage that the map shows."""
    return page.locator(".stage-map [aria-current=step]")


def told_last(page: Page, path: str) -> None:
    """Wait until this stage is the last that the host was told."""
    page.wait_for_function("path => heard.at(-1)?.value.path === path", arg=path)


def test_arrow_keys_are_the_texts_own_while_typing(show_link):
    page = show_link()
    page.evaluate("() => document.body.append(document.createElement('textarea'))")
    page.locator("textarea").focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowUp", "Home", "End"):
        page.keyboard.press(key)
    expect(stage_shown(page)).to_have_attribute("data-code", "weights")
    assert heard(page) == []
    page.locator(".stage-map").focus()
    page.keyboard.press("ArrowLeft")
    expect(stage_shown(page)).to_have_attribute("data-code", "masked_scores")
    told_last(page, WEIGHTS.replace("weights", "masked_scores"))


def test_pointing_lights_rows_and_columns_and_only_a_click_is_told(show_link):
    page = show_link()
    stage, every_head = panels(page, "picture"), panels(page, "every_head")
    chip(page, 3).hover()
    assert lit_in(stage) == [(3, 3)] * 2
    assert lit_in(every_head) == [(3, 3)] * 4

    point_at(every_head.nth(1), 5, 2, SHAPE)
    assert lit_in(every_head) == [(5, 2)] * 4
    assert lit_in(stage) == [(5, 2)] * 2
    expect(chip(page, 5)).to_have_attribute("data-mark", "query")
    expect(chip(page, 2)).to_have_attribute("data-mark", "key")

    page.mouse.move(2, 2)
    assert lit_in(stage) == [(None, None)] * 2
    expect(tooltip(page)).to_have_count(0)
    assert heard(page) == []
    chip(page, 3).click()
    ((name, value),) = heard(page)
    assert (name, value["sequence"], value["index"]) == ("select", "source", 3)


def test_a_long_text_is_scrolled_to_the_row_that_is_chosen(show):
    def grid(query: int) -> Picture:
        drawn = pictures_of(text=" ".join(f"word{i}" for i in range(70)), view="step", query=query, key=3)
        return next(one for one in drawn if one.key == "picture")

    first, last = grid(5), grid(69)
    page = show([first])
    page.set_viewport_size({"width": 1280, "height": 400})
    row = picture(page, "picture").locator(".light-selected:visible")
    for chosen in (last, first, last):
        update(page, chosen)
        expect(row).to_be_in_viewport(ratio=1)
    page.evaluate("scrollTo(0, 0)")
    page.set_viewport_size({"width": 1200, "height": 400})
    wait_until_drawn(page)
    expect(row).not_to_be_in_viewport()  # drawn anew, and nothing else was chosen


def test_of_choices_that_follow_each_other_quickly_the_last_alone_is_scrolled_to(show):
    drawn = [
        next(
            one
            for one in pictures_of(text=" ".join("abcdefgh"), view="step", query=query, key=3)
            if one.key == "picture"
        )
        for query in (5, 6, 7)
    ]
    page = show(drawn[:1])
    wait_until_drawn(page)
    page.evaluate("""async () => {
      await scheduler.postTask(() => undefined, { priority: "background" });  // what the first drawing left is done
      window.waiting = [];
      window.nScrolled = 0;
      scheduler.postTask = (task) => (waiting.push(task), Promise.resolve());
      Element.prototype.scrollIntoView = () => (nScrolled += 1);
    }""")
    for chosen in drawn[1:]:
        update(page, chosen)
    assert page.evaluate("() => (waiting.forEach((task) => task()), nScrolled)") == 1


def test_a_blocked_cell_says_which_masks_block_it(show_link):
    page = show_link(text="a b c", pad=2, mask="causal,padding", head=0)
    for column, masks in ((2, "causal"), (4, "causal, padding")):
        point_at(panels(page, "picture").last, 1, column, (5, 5))
        expect(tooltip(page)).to_contain_text(re.compile(f"blocked by {masks}$"))
        assert tooltip_numbers(page) == [0]


def test_blocks_stages_heads_and_cells_are_chosen_with_the_pointer(show_link):
    page = show_link(d_ff=16)
    panels(page, "every_head").nth(1).locator(".matrix-title").click()
    click_cell(panels(page, "picture").last, 4, 1, SHAPE)
    ((_, head),), ((_, cell),) = heard(page, "every_head"), heard(page, "picture")
    assert (head["index"], head["row"], head["column"]) == (1, None, None)
    assert (cell["index"], cell["row"], cell["column"]) == (1, 4, 1)
    page.locator(".stage-map .block", has_text="forward").last.click()
    expect(page.locator(".stage-map .place")).to_have_text("Encoder · layer 1 · feed-forward")
    page.locator(".stage-map .stage[data-code=hidden]").click()
    told_last(page, "encoder.layers.1.feed_forward.hidden")


def test_the_chosen_cell_is_derived(show_link):
    hidden = compute_run(Settings(d_ff=16)).trace["encoder.layers.1.feed_forward.hidden"].value[0, 4]
    for column in (9, 1):
        page = show_link(d_ff=16, layer=1, stage="encoder.feed_forward.hidden", query=4, key=column, cell="on")
        result = picture(page, "derivation_0").locator(".result .value")
        assert number(result.inner_text()) == close_to(hidden[column].item())


def test_a_number_without_bars_can_follow_one_whose_bars_are_still_to_be_painted(show_link):
    page = show_link(cell="on")
    key = "derivation_0"
    stage = {"stage": "encoder.feed_forward.activation", "cell": "on"}
    (following,) = (one for one in pictures_of(**stage) if one.key == key)
    bars = picture(page, key).locator(".scroller")
    expect(bars).to_be_visible()
    page.evaluate(
        """([bars, key, bytes]) => {
          bars.dispatchEvent(new Event("scroll"));
          drawn.get(key).update(Uint8Array.from(bytes));
          return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        }""",
        [bars.element_handle(), key, list(following.data)],
    )
    expect(bars).to_be_hidden()


def test_a_token_that_a_derivation_lit_is_lit_no_more_once_another_number_is_derived(show_link):
    page = show_link(stage="encoder.self_attention.context")
    (following,) = (one for one in pictures_of(stage="encoder.feed_forward.hidden") if one.key == "derivation_0")
    picture(page, "derivation_0").locator(".scroller").hover()
    lit = picture(page, "token_strip").locator(".chip[data-mark]")
    expect(lit).to_have_count(1)
    update(page, following)
    expect(lit).to_have_count(0)


def test_the_page_keys_walk_from_block_to_block(show_link):
    link = {"architecture": "encoder-decoder", "text": "a b a", "target": "c d", "n_layers": 1}
    page = show_link(**link)
    page.locator(".stage-map").focus()
    page.keyboard.press("End")
    for block in ("add & norm", "feed-forward", "add & norm", "cross-attention"):
        page.keyboard.press("PageUp")
        expect(page.locator(".stage-map .place")).to_have_text(f"Decoder · layer 0 · {block}")
    told_last(page, "decoder.layers.0.cross_attention.weights")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    blocks = model_map(on_map(compute_run(Settings(**link)))).blocks
    second = [stage.path for block in blocks for stage in block.stages][1]
    expect(stage_shown(page)).to_have_attribute("data-code", second.rpartition(".")[2])
    told_last(page, second)


MAIN = ["Input", "Queries", "Keys", "Values", "Scores", "Mask", "Attention weights", "Context", "Attention output"]


def test_the_row_has_the_main_stages_and_the_one_looked_at_and_opens_to_all(show_link):
    page = show_link()
    row, everything = page.locator(".stage-map .stage:visible"), page.locator(".stage-map .all")
    expect(row).to_have_text(MAIN)
    page.get_by_role("button", name="Previous: Mask").click()
    page.get_by_role("button", name="Previous: Scores").click()
    told_last(page, WEIGHTS.replace("weights", "scores"))
    page.keyboard.press("ArrowRight")
    expect(row).to_have_text([*MAIN[:5], "Scaled scores", *MAIN[5:]])
    told_last(page, WEIGHTS.replace("weights", "scaled_scores"))
    everything.click()
    expect(row).to_have_count(15)
    page.get_by_role("button", name="Next: Mask").click()
    page.get_by_role("button", name="Next: Masked scores").click()
    everything.click()
    expect(row).to_have_text([*MAIN[:6], "Masked scores", *MAIN[6:]])
    page.locator(".stage-map .block", has_text="forward").first.click()
    expect(everything).to_be_hidden()


def test_the_axes_of_a_shape_are_text_with_their_names_beside_the_pointer(show_link):
    shape = panels(show_link(), "picture").last.locator(".matrix-subtitle")
    expect(shape).to_have_text("weights (B H Tq Tk) = (1, 4, 11, 11)")
    expect(shape).to_have_attribute("title", "B batch, H heads, Tq query tokens, Tk key tokens")
    expect(shape.locator("button")).to_have_count(0)


def test_a_worked_example_shows_the_published_numbers(show_link):
    page = show_link(weights="two_causal_heads", head=0)
    for query, key in ((1, 0), (2, 1), (3, 3), *((5, key) for key in range(6))):
        point_at(panels(page, "picture").last, query, key, (6, 6))
        assert tooltip_numbers(page) == [close_to(PUBLISHED["weights"][0][0][query][key])]
    page = show_link(weights="two_causal_heads", head=0, stage="attention.context")
    for query in range(6):
        point_at(panels(page, "picture").last, query, 1, (6, 2))
        assert tooltip_numbers(page) == [close_to(PUBLISHED["context"][0][0][query][1])]


def test_the_stages_of_a_worked_example_are_ticked_and_its_tokens_have_no_ids(show_link):
    page = show_link(weights="three_heads")
    page.locator(".stage-map .all").click()
    ticked = page.locator(".stage-map .stage", has=page.get_by_role("img", name="as published", exact=True))
    published = json.loads((FOLDER / "three_heads.json").read_text())["expected"]
    expect(ticked).to_have_count(len(published))
    assert [one.get_attribute("data-code") for one in ticked.all()] == list(published)
    expect(chip(page, 0)).to_be_visible()
    expect(picture(page, "token_strip").locator(".id")).to_have_count(0)


LIT = """spots => spots.map((spot) => {
  const plot = spot.closest(".matrix-plot").getBoundingClientRect();
  const { left, top, width, height } = spot.getBoundingClientRect();
  const [right, down] = [(left - plot.left) / plot.width, (top - plot.top) / plot.height];
  return [right, down, width / plot.width, height / plot.height];
})"""
"""The place of each light, from the left and from the top, and how wide and high it is, as shares of its matrix."""

ROW, ALONE, ALL = 0.9, 0.1, 1  # the last of ten
OF_SCORES = [(0, ROW, ALL, ALONE), (0.3, 0, ALONE, ALL), (0.3, ROW, ALONE, ALONE)]
OF_CONTEXT = [(0, ROW, ALL, ALONE), (1 / 16, 0, 1 / 16, ALL), (1 / 16, ROW, 1 / 16, ALONE)]
OF_WEIGHTS = [(0, ROW, ALL, ALONE), (0.3, ROW, ALONE, ALONE)]
OF_EMBEDDING = [(0, 8 / 9, ALL, 1 / 9), (0, ROW, ALL, ALONE)]  # nine different tokens, of which this is the last


@pytest.mark.parametrize(
    ("stage", "lit"),
    [
        ("self_attention.scores", OF_SCORES),
        ("self_attention.context", OF_CONTEXT),
        ("self_attention.weights", OF_WEIGHTS),
        ("embedding", OF_EMBEDDING),
    ],
)
def test_a_path_lights_the_row_and_the_column_that_make_the_lit_cell_and_tells_no_shapes(show_link, stage, lit):
    number, stop = next((i, one) for i, one in enumerate(FIRST_PATH.stops, start=1) if one.stage == stage)
    place = place_of(compute_run(OPENING.settings), stop, number, OPENING.selection)
    page = show_link(**write_query(OPENING.settings, place) | {"view": "step"})
    spots = picture(page, "picture").locator(".light-spot")
    assert spots.evaluate_all(LIT) == [pytest.approx(one, abs=0.03) for one in lit]
    expect(picture(page, "picture").locator(".matrix-subtitle:visible")).to_have_count(0)


def test_a_path_shows_the_heads_alone_and_fades_all_but_one(show_link):
    number = 1 + [stop.view for stop in FIRST_PATH.stops].index("heads")
    place = place_of(compute_run(OPENING.settings), FIRST_PATH.stops[number - 1], number, OPENING.selection)
    page = show_link(**write_query(OPENING.settings, place))
    heads = picture(page, "attention_heads_decoder_self_attention")
    for hidden in (".overview", ".heads-bar", ".chips"):
        expect(heads.locator(hidden)).to_be_hidden()
    expect(heads.locator(".legend").first).to_be_visible()
    opacities = "bodies => bodies.map((body) => getComputedStyle(body).opacity)"
    assert heads.locator(".matrix-body").evaluate_all(opacities) == ["0.55", "0.55", "1", "0.55"]
