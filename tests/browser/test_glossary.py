"""The glossary: any word or symbol with an entry opens it, by pointer and keyboard; the server hears nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from model.names import MASK_NAMES
from tests.browser.headlight_page import choose_view, link_of, messages_sent, rerun
from visualizer.glossary import GLOSSARY

WITH_TERMS = ("stage_text", "symbols", "shapes", "picture", "mask_words")
"""The parts of Step through in which words open the glossary."""


LINK = {"stage": "encoder.self_attention.mask", "depth": "exact", "text": "a b a", "mask": "causal,padding"}


@pytest.fixture
def page(open_app) -> Page:
    return open_app(**LINK)


def note(page: Page):
    return page.locator(".entry-note:popover-open")


def test_every_term_opens_its_entry_and_the_server_hears_nothing(page):
    sent = messages_sent(page)
    opened: dict[str, set[str]] = {}
    for part in WITH_TERMS:
        for term in page.locator(f".st-key-{part} .term").all():
            entry = term.get_attribute("data-entry") or ""
            term.click()
            expect(note(page).locator(".entry-name")).to_have_text(entry)
            opened.setdefault(part, set()).add(entry)
    page.keyboard.press("Escape")
    assert opened["shapes"] == opened["picture"] == {"batch", "heads", "query tokens", "key tokens"}
    assert opened["symbols"] == {"mask", "index letters"}
    assert {"mask", "causal", "padding", "query", "key"} <= opened["stage_text"]
    assert len(opened["mask_words"]) == len(MASK_NAMES)
    assert messages_sent(page) == sent


def test_an_entry_gives_the_size_in_this_run_and_the_section_of_the_paper(page):
    page.locator(".st-key-shapes .term", has_text="Tk").first.click()
    expect(note(page).locator(".entry-size b")).to_have_text("3")
    note(page).locator(".term", has_text="self-attention").click()
    expect(note(page).locator(".entry-source")).to_have_text("Attention Is All You Need, section 3.2.3")
    page.keyboard.press("Escape")
    expect(note(page)).to_have_count(0)


def test_the_keyboard_opens_an_entry_and_comes_back(page):
    term = page.locator(".st-key-stage_text .term", has_text="padding")
    term.focus()
    page.keyboard.press("Enter")
    expect(note(page)).to_contain_text("Tokens that only bring texts to one length.")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".stage-map [aria-current=step] .stage-code")).to_have_text("mask")
    page.keyboard.press("Tab")
    expect(note(page).locator(".term")).to_be_focused()
    page.keyboard.press("Escape")
    expect(term).to_be_focused()


def test_the_list_is_searched_and_opens_at_an_entry(page):
    sent = messages_sent(page)
    page.get_by_role("button", name="Glossary").click()
    entries = page.locator(".entry-list .entry:visible")
    expect(entries).to_have_count(len(GLOSSARY))
    page.keyboard.type("W^O")
    expect(entries).to_have_count(1)
    expect(entries).to_contain_text("output projection")
    page.locator(".entry-search").fill("<b>no such</b> [word](x)")
    expect(entries).to_have_count(0)
    expect(page.locator(".entry-count")).to_have_text("No entry has that.")
    page.locator(".entry-close").click()
    page.locator(".st-key-symbols .term").first.click()
    note(page).locator(".entry-all").click()
    expect(page.locator(".entry-list .entry-found .entry-name")).to_have_text("mask")
    expect(page.locator(".entry-list .entry-found")).to_be_in_viewport()
    page.locator(".entry-list .entry-found .term", has_text="query").click()
    expect(page.locator(".entry-list .entry-found .entry-name")).to_have_text("query")
    page.keyboard.press("Escape")
    expect(page.locator(".entry-list[open]")).to_have_count(0)
    assert messages_sent(page) == sent


def test_the_depth_of_the_text_is_chosen_and_in_the_link(page):
    text = page.locator(".st-key-stage_text")
    expect(text).to_contain_text("Which query (row) may attend to which key")
    with rerun(page, "stage_text"):
        page.get_by_role("radio", name="Plain", exact=True).click()
    expect(text).to_contain_text("The mask says which books")
    assert "depth" not in link_of(page)
    with rerun(page, "stage_text"):
        page.get_by_role("radio", name="Exact", exact=True).click()
    assert link_of(page)["depth"] == "exact"


def test_every_view_has_the_glossary(page):
    for view in ("Heads", "Train", "Step through"):
        choose_view(page, view)
        page.get_by_role("button", name="Glossary").click()
        expect(page.locator(".entry-list[open] .entry").first).to_be_visible()
        page.keyboard.press("Escape")
