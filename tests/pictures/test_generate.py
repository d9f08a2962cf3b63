"""A model's writing, on a static page: stepping, the growing mask, other temperatures, the tree, and its room."""

from __future__ import annotations

from itertools import product

import pytest
from playwright.sync_api import Locator, Page, expect

from model.decoding import GREEDY, Sampling
from tests.pages import set_screen
from tests.pictures.static_page import heard, picture, pictures_of, update, wait_until_drawn
from tests.reading import close_to, point_at, room_for, tooltip, tooltip_numbers
from visualizer.runs.compute import compute_run
from visualizer.runs.continuation import Beam, OneByOne, search, write
from visualizer.runs.writer import writer_of
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings

STEPS = "generation_steps"
REVERSE = {"view": "generate", "weights": "trained", "task": "reverse", "text": "headlight"}
DECODER = {"view": "generate", "weights": "random", "architecture": "decoder", "text": "a b c d", "seed": 7}


def written(page: Page) -> list[str]:
    return page.locator(".written-token .token").all_text_contents()


def stands_at(page: Page, step: int, last: int) -> None:
    """Wait until this step is shown."""
    expect(page.locator(".transport-place")).to_have_text(f"Step {step} of {last}")


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def chosen_by(page: Page) -> Locator:
    """The attention rows that the choice of a step rests on."""
    return page.locator(".chosen-by .matrix")


def test_stepping_forward_and_back_is_drawn_at_once_and_told_once(show_link):
    page = show_link(**REVERSE)
    stands_at(page, 1, 10)
    back_and_forth = """forward => {
      const place = forward.getRootNode().querySelector(".transport-place");
      const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
      for (const key of ["ArrowRight", "ArrowRight", "End", "Home"]) press(key);
      forward.click();
      return place.textContent;
    }"""
    assert page.get_by_role("button", name="step forward").evaluate(back_and_forth) == "Step 2 of 10"
    page.wait_for_function("() => heard.length > 0")
    assert [(name, value["step"], value["row_layer"]) for name, value in heard(page)] == [("shown", "1", "-1")]


def test_every_way_to_a_step_leads_there(show_link):
    page = show_link(**REVERSE)
    press(page, "step forward")
    page.keyboard.press("ArrowLeft")
    assert written(page) == ["<sos>", "t"]
    press(page, "step forward")
    page.keyboard.press("ArrowRight")
    stands_at(page, 3, 10)
    assert written(page) == ["<sos>", "t", "h", "g"]
    expect(page.locator(".written-new")).to_have_text("g")
    expect(page.locator(".bar-row").first).to_contain_text("chosen")
    writer = writer_of(compute_run(fitted(Settings(weights="trained", text="headlight"))))
    third = write(writer, OneByOne(GREEDY, 20)).steps[2]
    weights = third.trace["decoder.layers.0.cross_attention.weights"].value[0, :, 0]
    for head in range(4):
        point_at(chosen_by(page), head, 6, (4, 10))
        assert tooltip_numbers(page) == [close_to(weights[head, 6].item())]

    page.keyboard.press("ArrowLeft")
    assert written(page) == ["<sos>", "t", "h"]
    page.keyboard.press("End")
    assert written(page) == ["<sos>", *"thgildaeh", "<eos>"]
    expect(page.get_by_role("button", name="step forward")).to_be_disabled()
    page.keyboard.press("ArrowRight")
    stands_at(page, 10, 10)
    page.locator(".written-go").nth(4).click()
    stands_at(page, 5, 10)
    page.get_by_role("slider", name="step", exact=True).press("ArrowRight")
    stands_at(page, 6, 10)
    page.keyboard.press("Home")
    expect(page.get_by_role("button", name="step back")).to_be_disabled()


def test_nothing_is_shown_before_it_is_written(show_link):
    page = show_link(**REVERSE)
    strip = picture(page, "token_strip")
    assert strip.locator(".chip[data-sequence=source] .token").all_text_contents() == [*"headlight", "<eos>"]
    target = strip.locator(".chip[data-sequence=target]")
    expect(target).to_have_count(0)
    page.keyboard.press("End")
    expect(target).to_have_count(0)
    expect(strip.locator(".chip[aria-selected=true]")).to_have_count(0)


def test_the_mask_grows_by_one_row_and_the_new_row_is_lit(show_link):
    page = show_link(**DECODER)
    expect(page.locator(".part-note", has_text="The next token is read from")).to_have_count(1)
    mask = page.locator(".growing-mask .matrix")
    for n_read in (4, 5, 6):
        expect(mask.locator(".light-name-row")).to_be_visible()
        lit, plot = (mask.locator(part).bounding_box() for part in (".light-row", ".matrix-plot"))
        assert lit["height"] * n_read == pytest.approx(plot["height"], abs=4)
        point_at(mask, 0, n_read - 1, (n_read, n_read))
        expect(tooltip(page)).to_contain_text("blocked by causal")
        page.keyboard.press("ArrowRight")


def test_another_temperature_is_drawn_at_the_step_that_a_person_went_to_meanwhile(show_link):
    page = show_link(**DECODER, strategy="sampling")
    for _ in range(3):
        press(page, "step forward")
    update(
        page, next(one for one in pictures_of(**DECODER, strategy="sampling", temperature=3) if one.key == STEPS)
    )
    run = compute_run(fitted(Settings(architecture="decoder", weights="random", text="a b c d", seed=7)))
    warm = write(writer_of(run), OneByOne(Sampling(temperature=3.0), 12))
    stands_at(page, 4, 12)
    assert written(page) == [*"abcd", *(run.vocabulary[token] for token in warm.tokens[:4])]
    share = float(warm.steps[3].probabilities[warm.steps[3].token])
    expect(page.locator(".bar-chosen")).to_contain_text(f"{100 * share:.1f}%")


def test_the_cache_shows_which_rows_were_computed(show_link):
    page = show_link(**REVERSE, cached="on")
    page.keyboard.press("End")
    said = "10 rows instead of 55, and 10 of the source instead of 100"
    expect(page.locator(".cache-sum")).to_contain_text(said)
    cache = page.locator(".cache-rows .matrix")
    expect(cache.locator("li").last).to_have_text("step 10: 1 computed, 9 from the cache")
    for row, column, what in (
        (0, 0, "computed in this step"),
        (9, 9, "computed in this step"),
        (9, 8, "from the cache"),
        (0, 1, "not read yet"),
    ):
        point_at(cache, row, column, (10, 10))
        expect(tooltip(page)).to_contain_text(what)


def test_the_tree_tells_every_node(show_link):
    page = show_link(**REVERSE, strategy="beam")
    writer = writer_of(compute_run(fitted(Settings(weights="trained", text="headlight"))))
    tree = search(writer, Beam(3, 0.6, 20))
    expect(page.locator(".tree-node")).to_have_count(len(tree.nodes))
    results = page.locator(".tree-result")
    expect(results).to_have_count(3)
    expect(results.first).to_have_attribute("aria-pressed", "true")
    detail = page.locator(".tree-detail")
    assert detail.locator(".token").all_text_contents() == [*"thgildaeh", "<eos>"]

    pruned = next(index for index, node in enumerate(tree.nodes) if not node.kept)
    page.locator(f".tree-node[data-index='{pruned}']").hover()
    expect(detail).to_contain_text("pruned")
    root = page.locator(".tree-node[data-index='0']")
    root.click()
    root.press("ArrowRight")
    expect(detail.locator(".token")).to_have_text(["t"])
    page.keyboard.press("ArrowDown")
    assert detail.locator(".token").all_text_contents() != ["t"]
    results.nth(1).click()
    expect(detail).to_contain_text("result 2, finished")
    chosen = results.nth(1).get_attribute("data-index")
    page.wait_for_function("node => heard.at(-1)?.value.node === node", arg=chosen)


@pytest.mark.parametrize("strategy", ["greedy", "beam"])
def test_nothing_is_wider_than_the_page(show_link, strategy):
    page = show_link(**REVERSE, strategy=strategy, step=9)
    for width, dark in product((1280, 420), (False, True)):
        set_screen(page, dark=dark, width=width)
        wait_until_drawn(page)
        page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)


@pytest.mark.parametrize("width", [1280, 390])
def test_names_are_whole(show_link, width):
    link = {"view": "generate", "architecture": "encoder-decoder"}
    page = show_link(**link, width=width)
    assert room_for(chosen_by(page).locator(".matrix-plot"), "head 0 · previous token")
    page = show_link(**link, strategy="beam", width=width)
    assert "\u2068because\u2069" in page.locator(".tree-node .tree-label").all_text_contents()
