"""The glossary: any word or symbol with an entry opens it, by pointer and keyboard; the host hears nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.pictures.static_page import heard, picture
from visualizer.glossary import GLOSSARY

WITH_TERMS = ("stage_text", "symbols", "shapes")
"""The pictures of Step through in which words open the glossary."""


@pytest.fixture
def page(show_link) -> Page:
    return show_link(stage="encoder.self_attention.mask", depth="exact", text="a b a", mask="causal,padding")


def note(page: Page) -> Locator:
    return page.locator(".entry-note:popover-open")


def test_every_term_opens_its_entry_and_the_host_hears_nothing(page):
    opened: dict[str, set[str]] = {}
    for part in WITH_TERMS:
        for term in picture(page, part).locator(".term").all():
            entry = term.get_attribute("data-entry")
            term.click()
            expect(note(page).locator(".entry-name")).to_have_text(entry)
            opened.setdefault(part, set()).add(entry)
    assert opened["shapes"] == {"batch", "heads", "query tokens", "key tokens"}
    assert opened["symbols"] == {"mask", "index letters"}
    assert {"mask", "causal", "padding", "query", "key"} <= opened["stage_text"]
    assert heard(page) == []


def test_an_entry_gives_the_size_in_this_run_and_the_section_of_the_paper(page):
    picture(page, "shapes").locator(".term", has_text="Tk").first.click()
    expect(note(page).locator(".entry-size b")).to_have_text("3")
    note(page).locator(".term", has_text="self-attention").click()
    expect(note(page).locator(".entry-source")).to_have_text("Attention Is All You Need, section 3.2.3")
    page.keyboard.press("Escape")
    expect(note(page)).to_have_count(0)


def test_the_keyboard_opens_an_entry_and_comes_back(page):
    term = picture(page, "stage_text").locator(".term", has_text="padding")
    term.focus()
    page.keyboard.press("Enter")
    expect(note(page)).to_contain_text("Tokens that only bring texts to one length.")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".stage-map [aria-current=step]")).to_have_text("Mask")
    page.keyboard.press("Tab")
    expect(note(page).locator(".term")).to_be_focused()
    page.keyboard.press("Escape")
    expect(term).to_be_focused()


def test_the_list_is_searched_and_opens_at_an_entry(page):
    page.get_by_role("button", name="Glossary").click()
    entries = page.locator(".entry-list .entry:visible")
    expect(entries).to_have_count(len(GLOSSARY))
    page.keyboard.type("W^O")
    expect(entries).to_have_count(1)
    expect(entries).to_contain_text("output projection")
    page.locator(".entry-search").fill("<b>no such</b> [word](x)")
    expect(entries).to_have_count(0)
    expect(page.locator(".entry-count")).to_have_text("No entry matches.")
    page.locator(".entry-close").click()
    picture(page, "symbols").locator(".term").first.click()
    note(page).locator(".entry-all").click()
    found = page.locator(".entry-list .entry-found")
    expect(found.locator(".entry-name")).to_have_text("mask")
    expect(found).to_be_in_viewport()
    found.locator(".term", has_text="query").click()
    expect(found.locator(".entry-name")).to_have_text("query")
    page.keyboard.press("Escape")
    expect(page.locator(".entry-list[open]")).to_have_count(0)
    assert heard(page) == []
