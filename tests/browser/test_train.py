"""Training in a real browser: it runs by itself, stops, and every moment of it can be looked at."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from model.training import RECIPES, milestones
from tests.browser.headlight_page import link_of, panels, rerun, settle

STEPS = 40
PATIENCE = 120_000


def set_number(page: Page, name: str, value: int) -> None:
    field = page.locator(f".st-key-train_reverse_{name} input")
    field.fill(str(value))
    with rerun(page):
        field.press("Enter")


def make_small(page: Page, steps: int) -> None:
    page.get_by_role("button", name="Change the model").click()
    set_number(page, "d_model", 16)
    set_number(page, "steps", steps)
    page.keyboard.press("Escape")


def start(page: Page) -> None:
    page.get_by_role("button", name="Start", exact=True).click()


def moments(page: Page) -> Locator:
    return page.locator("[class*=st-key-moment_]")


def said_step(page: Page, step: int) -> Locator:
    """What stands above the handle of the slider."""
    return moments(page).get_by_text(f"step {step}", exact=True).first


def wait_for_the_end(page: Page) -> None:
    expect(moments(page)).to_be_visible(timeout=PATIENCE)
    settle(page)


def test_a_training_ends_by_itself_and_the_slider_goes_back_through_it(open_app):
    page = open_app(view="train")
    make_small(page, STEPS)
    start(page)
    wait_for_the_end(page)
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(moments(page)).to_contain_text(f"Trained {STEPS} steps")
    expect(panels(page, "training_0_0")).to_have_count(RECIPES["reverse"].n_heads)
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    slider = moments(page).get_by_role("slider")
    numbers = page.locator(".training-numbers")
    last = numbers.inner_text()
    every = milestones(STEPS)
    expect(said_step(page, every[-1])).to_be_visible()
    with rerun(page, "training_0_0"):
        slider.press("Home")
    expect(said_step(page, 0)).to_be_visible()
    expect(numbers).not_to_have_text(last)
    with rerun(page, "training_0_0"):
        slider.press("ArrowRight")
    expect(said_step(page, every[1])).to_be_visible()


def test_it_draws_itself_while_it_runs_and_stop_keeps_the_model(open_app):
    page = open_app(view="train")
    make_small(page, 20_000)
    start(page)
    bar = page.get_by_test_id("stProgress")
    expect(bar).to_contain_text(re.compile(r"Step [1-9]\d* of 20,000"), timeout=PATIENCE)
    before = page.evaluate("probe.painted.training_0_0 ?? 0")
    page.wait_for_function("before => (probe.painted.training_0_0 ?? 0) > before + 1", arg=before, timeout=PATIENCE)
    page.get_by_role("button", name="Stop").click()
    wait_for_the_end(page)
    expect(moments(page)).to_contain_text("What was learned until then is kept")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download its weights").click()
    assert re.fullmatch(r"reverse_step_\d+\.safetensors", download.value.suggested_filename)
    with rerun(page):
        page.get_by_role("button", name="Step through this model").click()
    link = link_of(page)
    assert (link["weights"], link["text"]) == ("trained", "headlight")
    assert link["checkpoint"]
    expect(page.get_by_role("radio", name="Step through", exact=True)).to_have_attribute("aria-checked", "true")
