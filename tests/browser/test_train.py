"""Training in a real browser: recorded, live, stopped, and every moment of it found again by its link."""

from __future__ import annotations

import itertools
import re

from playwright.sync_api import Locator, Page, expect

from model.learning.recordings import recorded
from model.learning.training import RECIPES, milestones
from tests.browser.headlight_page import link_of, panels, rerun, settle

STEPS = 12
PATIENCE = 120_000
SEEDS = itertools.count(2000)  # each training here is one that the server does not know


def a_training(steps: int) -> dict[str, object]:
    """A small one, as a link holds it."""
    return {"view": "train", "train_d_model": 16, "train_steps": steps, "train_seed": next(SEEDS)}


def start(page: Page) -> None:
    page.get_by_role("button", name="Start", exact=True).click()


def moments(page: Page) -> Locator:
    return page.locator(".st-key-train_moment")


def said_step(page: Page, step: int) -> Locator:
    """What stands above the handle of the slider."""
    return moments(page).get_by_text(f"step {step:,}", exact=True).first


def wait_for(page: Page, text: str) -> None:
    expect(moments(page)).to_contain_text(text, timeout=PATIENCE)
    settle(page)


def test_it_opens_with_a_recorded_training_whose_slider_the_link_carries(open_app):
    page = open_app(view="train")
    expect(moments(page)).to_contain_text("Recorded: 1,000 steps with seed 0")
    numbers = page.locator(".training-numbers")
    expect(numbers).to_contain_text("100%")
    expect(page.locator(".training-answer")).to_contain_text("headlight →thgildaeh✓ right")
    slider = moments(page).get_by_role("slider")
    with rerun(page, "training_0"):
        slider.press("ArrowLeft")
    middle = list(recorded(RECIPES["reverse"]).snapshots)[-2]
    expect(said_step(page, middle)).to_be_visible()
    assert link_of(page) == {"view": "train", "train_step": str(middle)}
    then, link = numbers.inner_text(), link_of(page)
    with rerun(page, "training_0"):
        page.go_back()
    expect(said_step(page, 1000)).to_be_visible()
    page = open_app(**link)
    numbers = page.locator(".training-numbers")
    expect(said_step(page, middle)).to_be_visible()
    expect(numbers).to_have_text(then.replace("\n", ""))


def test_a_training_ends_by_itself_and_a_reload_finds_it_at_the_same_moment(open_app):
    page = open_app(**a_training(STEPS))
    expect(page.get_by_text("Not trained yet")).to_be_visible()
    start(page)
    wait_for(page, f"Trained {STEPS} steps")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(panels(page, "training_0")).to_have_count(RECIPES["reverse"].n_heads)
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    numbers = page.locator(".training-numbers")
    last, every = numbers.inner_text(), milestones(STEPS)
    with rerun(page, "training_0"):
        moments(page).get_by_role("slider").press("Home")
    with rerun(page, "training_0"):
        moments(page).get_by_role("slider").press("ArrowRight")
    expect(said_step(page, every[1])).to_be_visible()
    then = numbers.inner_text()
    assert then != last
    page.reload()
    settle(page)
    expect(said_step(page, every[1])).to_be_visible()
    assert numbers.inner_text() == then


def test_it_draws_itself_while_it_runs_and_stop_keeps_the_model(open_app):
    page = open_app(**a_training(20_000))
    start(page)
    bar = page.get_by_test_id("stProgress")
    expect(bar).to_contain_text(re.compile(r"Step [1-9]\d* of 20,000"), timeout=PATIENCE)
    before = page.evaluate("probe.painted.training_0 ?? 0")
    page.wait_for_function("before => (probe.painted.training_0 ?? 0) > before + 1", arg=before, timeout=PATIENCE)
    another_task_stands_alone_on_the_screen(page)
    settle(page)  # the address is the last that is changed
    page.reload()
    expect(bar).to_contain_text(re.compile(r"Step [1-9]\d* of 20,000"), timeout=PATIENCE)
    page.get_by_role("button", name="Stop").click()
    wait_for(page, "What was learned until then is kept")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download its weights").click()
    assert re.fullmatch(r"reverse_step_\d+\.safetensors", download.value.suggested_filename)
    with rerun(page):
        page.get_by_role("button", name="Step through this model").click()
    link = link_of(page)
    assert link["weights"] == "trained"
    assert link["checkpoint"]
    expect(page.get_by_role("radio", name="Step through", exact=True)).to_have_attribute("aria-checked", "true")


def another_task_stands_alone_on_the_screen(page: Page) -> None:
    """While one is trained, which goes on and is shown again by a click."""
    page.get_by_role("radio", name="Sort", exact=True).click()
    elsewhere = page.locator(".st-key-elsewhere")
    expect(elsewhere).to_contain_text("Training goes on: Reverse", timeout=PATIENCE)
    expect(page.get_by_test_id("stProgress")).to_have_count(1)
    expect(page.locator(".training-answer")).to_have_count(1)
    expect(page.locator(".training-answer")).to_contain_text("3141592653")
    wait_for(page, "Recorded")
    elsewhere.get_by_role("button", name="Show it").click()
    expect(elsewhere).to_have_count(0, timeout=PATIENCE)
    expect(page.get_by_role("radio", name="Reverse", exact=True)).to_have_attribute("aria-checked", "true")


def test_a_bad_question_takes_nothing_away(open_app):
    page = open_app(view="train")
    with rerun(page):
        page.locator(".st-key-train_text input").fill("what?")
        page.locator(".st-key-train_text input").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("type 1 to 10 letters from a to z")
    expect(moments(page)).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    expect(page.locator(".training-answer")).to_contain_text("headlight")
