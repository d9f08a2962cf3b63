"""A training that is left by a reload and found again, running and stopped."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import settle

LONG = {"view": "train", "train_d_model": 16, "train_steps": 20_000, "train_seed": 3000}
"""A training that the server does not know."""

RUNS = re.compile(r"Step [1-9][\d,]* of 20,000")
START, STOP = ".st-key-start_training button", ".st-key-stop_training button"


def runs(page: Page) -> None:
    expect(page.get_by_test_id("stProgress")).to_contain_text(RUNS)


def test_a_stopped_training_is_stopped_after_any_reload_and_kept(open_app):
    page = open_app(**LONG)
    page.locator(START).click()
    runs(page)
    page.reload()
    runs(page)
    page.locator(STOP).click()
    moments = page.locator("[class*='st-key-train_moment']")
    expect(moments).to_contain_text("Stopped after")
    settle(page)
    stopped = page.get_by_text(re.compile("Stopped after")).first.inner_text()
    page.reload()
    expect(moments).to_contain_text(stopped)
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
