"""Training in a real browser: it draws itself, ends by itself or is stopped, and what was learned can be taken."""

from __future__ import annotations

import itertools
import re

from playwright.sync_api import Locator, Page, expect

from model.learning.training import RECIPES
from tests.browser.headlight_page import link_of, panels, rerun, settle

STEPS = 12
SEEDS = itertools.count(2000)  # each training here is one that the server does not know


def a_training(steps: int) -> dict[str, object]:
    """A small one, as a link holds it."""
    return {"view": "train", "train_d_model": 16, "train_steps": steps, "train_seed": next(SEEDS)}


def start(page: Page) -> None:
    page.get_by_role("button", name="Start", exact=True).click()


def runs(page: Page) -> None:
    """Waits for a step of a long training, however far it is by then."""
    expect(bars(page)).to_contain_text(re.compile(r"Step [1-9][\d,]* of 20,000"))


def bars(page: Page) -> Locator:
    return page.locator(".progress-bar:visible")


def moments(page: Page) -> Locator:
    return page.locator("[class*='st-key-train_moment']")


def wait_for(page: Page, text: str) -> None:
    expect(moments(page)).to_contain_text(text)
    settle(page)


def test_a_training_ends_by_itself_with_loss_answer_and_heads_in_sight_at_once(open_app):
    page = open_app(height=720, **a_training(STEPS))
    expect(page.get_by_text("Not trained yet")).to_be_visible()
    start(page)
    wait_for(page, f"Trained {STEPS} steps")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(panels(page, "training")).to_have_count(RECIPES["reverse"].n_heads)
    expect(page.locator(".curves svg")).to_have_count(2)
    all_is_in_sight(page)
    all_is_in_sight(open_app(view="train", height=720))  # what was recorded


def all_is_in_sight(page: Page) -> None:
    for shown in (page.locator(".training-answer"), panels(page, "training"), page.locator(".curves svg")):
        box = shown.first.bounding_box()
        assert box["y"] + box["height"] < 720


def test_it_draws_itself_while_it_runs_and_is_stopped_and_kept_after_any_reload(open_app):
    page = open_app(**a_training(20_000))
    start(page)
    runs(page)
    settle(page)
    before = page.evaluate("({ drawn: probe.painted.training, finished: probe.finished })")
    page.wait_for_function("before => probe.painted.training > before.drawn + 1", arg=before)
    assert page.evaluate("probe.finished") == before["finished"], "no script runs for it"
    another_task_stands_alone_on_the_screen(page)
    settle(page)  # the address is the last that is changed
    page.reload()
    runs(page)
    page.get_by_role("button", name="Stop").click()
    wait_for(page, "Stopped after")
    stopped = page.get_by_text(re.compile("Stopped after")).first.inner_text()
    page.reload()
    expect(moments(page)).to_contain_text(stopped)
    expect(bars(page)).to_have_count(0)
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
    page.get_by_role("combobox", name="Task").click()
    page.get_by_role("option", name="Sort", exact=True).click()
    elsewhere = page.locator(".st-key-elsewhere")
    expect(elsewhere).to_contain_text("Training goes on: Reverse")
    expect(bars(page)).to_have_count(1)
    expect(page.locator(".training-answer")).to_have_count(1)
    expect(page.locator(".training-answer")).to_contain_text("3141592653")
    wait_for(page, "Recorded")
    elsewhere.get_by_role("button", name="Show it").click()
    expect(elsewhere).to_have_count(0)
    expect(page.get_by_role("combobox", name="Task")).to_have_value("Reverse")
