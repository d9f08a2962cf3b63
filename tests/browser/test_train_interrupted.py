"""A training that is stopped, left and found again, by clicks that come one right after the other."""

from __future__ import annotations

import itertools
import re

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import link_of, settle

SEEDS = itertools.count(3000)  # each training here is one that the server does not know
RUNS = re.compile(r"Step [1-9][\d,]* of 20,000")
CLICK_ALL = """selectors => {
  for (const selector of selectors) document.querySelector(selector).click();
}"""
"""Clicks on several things before the page comes to draw what follows from the first."""
START, STOP, SHOW = (f".st-key-{key} button" for key in ("start_training", "stop_training", "show_training"))


def a_training() -> dict[str, object]:
    """A long one, as a link holds it."""
    return {"view": "train", "train_d_model": 16, "train_steps": 20_000, "train_seed": next(SEEDS)}


def runs(page: Page) -> None:
    expect(page.get_by_test_id("stProgress")).to_contain_text(RUNS)


def look_at_sort(page: Page) -> None:
    page.get_by_role("radio", name="Sort", exact=True).click()
    expect(page.locator(".st-key-elsewhere")).to_contain_text(RUNS)
    settle(page)


def test_a_stopped_training_is_stopped_after_any_reload_and_kept(open_app):
    page = open_app(**a_training())
    page.locator(START).click()
    runs(page)
    page.reload()
    runs(page)
    page.locator(STOP).click()
    moments = page.locator(".st-key-train_moment")
    expect(moments).to_contain_text("What was learned until then is kept")
    settle(page)
    stopped = page.get_by_text(re.compile("Stopped after")).first.inner_text()
    page.reload()
    expect(moments).to_contain_text(stopped)
    expect(page.get_by_test_id("stProgress")).to_have_count(0)


def test_stop_right_after_show_it_stops_what_is_shown(open_app):
    training = a_training()
    page = open_app(**training)
    page.locator(START).click()
    runs(page)
    look_at_sort(page)
    page.evaluate(CLICK_ALL, [SHOW])
    page.evaluate(CLICK_ALL, [STOP])  # the server has heard of the first, the page has drawn nothing of it
    expect(page.locator(".st-key-train_moment")).to_contain_text("Stopped after")
    settle(page)
    link = link_of(page)
    assert {name: link.get(name) for name in training} == {name: str(value) for name, value in training.items()}


def test_another_task_chosen_in_the_instant_of_start_does_not_take_its_place(open_app):
    page = open_app(**a_training())
    sort = "[role=radiogroup] [role=radio]:nth-of-type(4)"
    name = page.locator(f".st-key-train_task {sort}").inner_text()
    assert name == "Sort"
    page.evaluate(CLICK_ALL, [START, f".st-key-train_task {sort}"])
    expect(page.locator(".st-key-elsewhere")).to_contain_text("Training goes on: Reverse")
    page.locator(STOP).click()
    expect(page.locator(".st-key-elsewhere")).to_have_count(0)
