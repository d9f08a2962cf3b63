"""Generate: stepping asks the server for nothing; another temperature keeps what it can; the tree is walked."""

from __future__ import annotations

from itertools import product

import pytest
from playwright.sync_api import Locator, Page, expect

from model.decoding import GREEDY, Sampling
from tests.browser.headlight_page import choose_view, messages_sent, rerun, settle, tokens
from tests.pages import set_screen
from tests.reading import close_to, point_at, room_for, tooltip_numbers
from visualizer.runs.compute import compute_run
from visualizer.runs.writer import writer_of
from visualizer.runs.written import Beam, OneByOne, search, write
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings

STEPS, TREE = "generation_steps", "generation_tree"
REVERSE = {"view": "generate", "weights": "trained", "task": "reverse", "text": "headlight"}
DECODER = {"view": "generate", "weights": "random", "architecture": "decoder", "text": "a b c d", "seed": 7}


def written(page: Page) -> list[str]:
    return page.locator(f".st-key-{STEPS} .written-token .token").all_text_contents()


def bars(page: Page) -> Locator:
    return page.locator(f".st-key-{STEPS} .bar-row")


def place(page: Page) -> Locator:
    return page.locator(f".st-key-{STEPS} .transport-place")


def matrix(page: Page, section: str) -> Locator:
    return page.locator(f".st-key-{STEPS} .{section} .matrix")


def choose_strategy(page: Page, name: str, key: str) -> None:
    with rerun(page, key):
        page.locator(".st-key-strategy").get_by_role("radio", name=name).click()


def test_stepping_forward_and_back_is_drawn_at_once_and_told_in_one_message(open_app):
    page = open_app(**REVERSE)
    writer = writer_of(compute_run(fitted(Settings(weights="trained", text="headlight"))))
    steps = write(writer, OneByOne(GREEDY, 20)).steps
    sent = messages_sent(page)
    back_and_forth = """forward => {
      const place = forward.getRootNode().querySelector(".transport-place");
      const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
      for (const key of ["ArrowRight", "ArrowRight", "End", "Home"]) press(key);
      forward.click();
      return place.textContent;
    }"""
    assert page.get_by_role("button", name="step forward").evaluate(back_and_forth) == "Step 2 of 10"
    page.wait_for_url(lambda url: "step=1" in url)
    assert messages_sent(page) == sent + 1
    page.keyboard.press("ArrowLeft")
    assert written(page) == ["<sos>", "t"]
    page.get_by_role("button", name="step forward").click()
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_have_text("Step 3 of 10")
    assert written(page) == ["<sos>", "t", "h", "g"]
    expect(page.locator(".written-new")).to_have_text("g")
    expect(bars(page).first).to_contain_text("chosen")
    weights = steps[2].trace["decoder.layers.0.cross_attention.weights"].value[0, :, 0]
    for head in range(4):
        point_at(matrix(page, "chosen-by"), head, 6, (4, 10))
        assert tooltip_numbers(page) == [close_to(weights[head, 6].item())]

    page.keyboard.press("ArrowLeft")
    assert written(page) == ["<sos>", "t", "h"]
    page.get_by_role("button", name="to the end").click()
    assert written(page) == ["<sos>", *"thgildaeh", "<eos>"]
    expect(page.get_by_role("button", name="step forward")).to_be_disabled()
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_have_text("Step 10 of 10")
    page.locator(".written-go").nth(4).click()
    expect(place(page)).to_have_text("Step 5 of 10")
    page.get_by_role("slider", name="step", exact=True).press("ArrowRight")
    expect(place(page)).to_have_text("Step 6 of 10")
    page.get_by_role("button", name="from the start").click()
    expect(page.get_by_role("button", name="step back")).to_be_disabled()


def test_nothing_is_shown_before_it_is_written(open_app):
    page = open_app(**REVERSE)
    assert tokens(page) == [*"headlight", "<eos>"]
    assert tokens(page, "target") == []
    page.get_by_role("button", name="to the end").click()
    assert tokens(page, "target") == []
    expect(page.locator(".st-key-token_strip .chip[aria-selected=true]")).to_have_count(0)


def test_a_click_leads_from_what_only_reads_to_what_writes(open_app):
    page = open_app(view="generate")
    with rerun(page, STEPS):
        page.get_by_role("button", name="Trained: Reverse").click()
    assert written(page) == ["<sos>", "t"]
    expect(place(page)).to_have_text("Step 1 of 10")


def test_the_mask_grows_by_one_row_and_the_new_row_is_lit(open_app):
    page = open_app(**DECODER)
    for n_read in (4, 5, 6):
        name = matrix(page, "growing-mask").locator(".light-name-row")
        expect(name).to_be_visible()
        lit = matrix(page, "growing-mask").locator(".light-row")
        plot = matrix(page, "growing-mask").locator(".matrix-plot")
        assert lit.bounding_box()["height"] * n_read == pytest.approx(plot.bounding_box()["height"], abs=4)
        point_at(matrix(page, "growing-mask"), 0, n_read - 1, (n_read, n_read))
        expect(page.locator(".tooltip:popover-open")).to_contain_text("blocked by causal")
        page.keyboard.press("ArrowRight")


def test_another_temperature_keeps_the_place_and_what_was_computed(open_app):
    page = open_app(**DECODER)
    settings = fitted(Settings(architecture="decoder", weights="random", text="a b c d", seed=7))
    run = compute_run(settings)
    choose_strategy(page, "Sampling", STEPS)
    for _ in range(3):
        page.get_by_role("button", name="step forward").click()
    slider = page.locator(".st-key-temperature").get_by_role("slider")
    with rerun(page, STEPS):
        slider.press("End")
    expect(place(page)).to_have_text("Step 4 of 12")
    warm = write(writer_of(run), OneByOne(Sampling(temperature=3.0), 12))
    labels = [run.vocabulary[token] for token in warm.tokens]
    assert written(page) == [*"abcd", *labels[:4]]
    share = float(warm.steps[3].probabilities[warm.steps[3].token])
    expect(page.locator(".bar-chosen")).to_contain_text(f"{100 * share:.1f} %")
    expect(page.get_by_text("another token is chosen now")).to_be_visible()

    choose_view(page, "Heads")
    choose_view(page, "Generate")
    expect(place(page)).to_have_text("Step 4 of 12")
    assert written(page) == [*"abcd", *labels[:4]]


def test_the_cache_shows_which_rows_were_computed(open_app):
    page = open_app(**REVERSE)
    with rerun(page, STEPS):
        page.locator(".st-key-cached").get_by_text("Key/value cache").click()
    page.get_by_role("button", name="to the end").click()
    said = page.locator(f".st-key-{STEPS} .cache-sum")
    expect(said).to_contain_text("10 rows of the tokens so far instead of 55, and 10 of the source instead of 100")
    expect(page.get_by_role("img", name="step 10: 1 computed, 9 from the cache")).to_be_visible()
    expect(page.get_by_text("With the cache as without")).to_be_visible()


def test_the_tree_tells_every_node(open_app):
    page = open_app(**REVERSE)
    choose_strategy(page, "Beam search", TREE)
    writer = writer_of(compute_run(fitted(Settings(weights="trained", text="headlight"))))
    tree = search(writer, Beam(3, 0.6, 20))
    nodes = page.locator(f".st-key-{TREE} .tree-node")
    expect(nodes).to_have_count(len(tree.nodes))
    results = page.locator(f".st-key-{TREE} .tree-result")
    expect(results).to_have_count(3)
    expect(results.first).to_have_attribute("aria-pressed", "true")
    detail = page.locator(f".st-key-{TREE} .tree-detail")
    assert detail.locator(".token").all_text_contents() == [*"thgildaeh", "<eos>"]

    pruned = next(index for index, node in enumerate(tree.nodes) if not node.kept)
    page.locator(f".st-key-{TREE} .tree-node[data-index='{pruned}']").hover()
    expect(detail).to_contain_text("pruned")
    root = page.locator(f".st-key-{TREE} .tree-node[data-index='0']")
    root.click()
    root.press("ArrowRight")
    expect(detail.locator(".token")).to_have_text(["t"])
    page.keyboard.press("ArrowDown")
    assert detail.locator(".token").all_text_contents() != ["t"]
    results.nth(1).click()
    expect(detail).to_contain_text("result 2, finished")


def test_nothing_is_wider_than_the_page(open_app):
    page = open_app(**REVERSE)
    page.get_by_role("button", name="to the end").click()
    fits_on_every_screen(page)
    choose_strategy(page, "Beam search", TREE)
    fits_on_every_screen(page)


def fits_on_every_screen(page: Page) -> None:
    for width, dark in product((1280, 420), (False, True)):
        set_screen(page, dark=dark, width=width)
        settle(page)
        assert widest(page) <= width


def widest(page: Page) -> int:
    scroll_width: int = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    return scroll_width


def test_names_are_whole(open_app):
    page = open_app(view="generate", architecture="encoder-decoder")
    plot = matrix(page, "chosen-by").locator(".matrix-plot")
    for width in (1280, 390):
        set_screen(page, dark=False, width=width)
        settle(page)
        assert room_for(plot, "head 0 · previous token")
    choose_strategy(page, "Beam search", TREE)
    labels = page.locator(f".st-key-{TREE} .tree-node .tree-label")
    for width in (390, 1280):
        set_screen(page, dark=False, width=width)
        settle(page)
        assert "\u2068because\u2069" in labels.all_text_contents()
