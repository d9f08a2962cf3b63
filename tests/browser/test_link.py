"""The address holds everything chosen: it can be sent to someone, reloaded, and gone back and forward through."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import choose_view, link_of, panels, pill, rerun, settle, tokens, type_text
from tests.reading import click_cell

TEXT = "one two three one"
CHOSEN = {
    "text": TEXT,
    "n_heads": "2",
    "weights": "random",
    "mask": "causal,strided",
    "stride": "2",
    "view": "compare",
    "layer": "1",
    "head": "1",
    "query": "3",
    "key": "2",
    "compare.mask_a": "padding",
    "compare.mask_b": "causal,prefix",
    "prefix": "1",
}


def shown(page: Page) -> str:
    """Everything on the page as a screen reader meets it: texts, choices, and what each picture says of itself."""
    page.bring_to_front()
    opened = page.locator("details[open] > summary")
    while n_opened := opened.count():  # a person's own, and in no link
        opened.first.click()
        expect(opened).to_have_count(n_opened - 1)  # it closes slowly
    page.mouse.move(1, 1)
    page.evaluate("(document.activeElement?.shadowRoot?.activeElement ?? document.activeElement)?.blur()")
    settle(page)
    expect(page.locator(".reading[aria-busy]")).to_have_count(0)  # in words a moment after the picture
    return page.get_by_test_id("stApp").aria_snapshot()


def test_a_link_brings_back_all_that_was_chosen(open_app):
    page = open_app()
    type_text(page, TEXT)
    choose_weights(page, "Random")
    for _ in range(2):  # three heads cannot share the width, which is said of the change and not of the link
        with rerun(page, "every_head"):
            page.locator("[class*='st-key-n_heads']").get_by_role("slider").press("ArrowLeft")
    with rerun(page, "picture"):
        pill(page, "mask", "Strided").click()
    enter_number(page, "stride", 2)
    choose_view(page, "Heads")
    page.get_by_role("button", name="next layer").click()
    with rerun(page):
        click_cell(panels(page, "attention_heads_encoder_self_attention").nth(1), 3, 2, (4, 4))
    choose_view(page, "Compare")
    for name, mask in (("mask_a", "Padding"), ("mask_b", "Prefix")):
        with rerun(page):
            pill(page, name, mask).click()
    enter_number(page, "prefix", 1)
    assert link_of(page) == CHOSEN

    before = shown(page)
    visitor = open_app(beside=True, **CHOSEN)  # who was never there
    assert shown(visitor) == before
    assert link_of(visitor) == CHOSEN
    page.reload()
    assert shown(page) == before


def choose_weights(page: Page, title: str) -> None:
    page.locator("[class*='st-key-model'] [role=combobox]").click()
    with rerun(page):
        page.get_by_role("option", name=title, exact=True).click()


def enter_number(page: Page, name: str, value: int) -> None:
    field = page.locator(f"[class*='st-key-{name}'] input")
    field.fill(str(value))
    with rerun(page):
        field.press("Enter")


def test_back_undoes_the_last_choice_and_forward_does_it_again(open_app):
    page = open_app(text=TEXT)
    steps: list[tuple[Callable[[], None], dict[str, str]]] = [
        (lambda: choose_view(page, "Heads"), {"view": "heads"}),
        (lambda: chip(page, 2), {"view": "heads", "query": "2"}),
        (lambda: type_text(page, "four five six"), {"view": "heads", "query": "2", "text": "four five six"}),
    ]
    pictures = [shown(page)]
    for act, expected in steps:
        act()
        assert link_of(page) == {"text": TEXT} | expected
        pictures.append(shown(page))
    for picture in reversed(pictures[:-1]):
        with rerun(page):
            page.go_back()
        assert shown(page) == picture
    assert tokens(page) == TEXT.split()
    for picture in pictures[1:]:
        with rerun(page):
            page.go_forward()
        assert shown(page) == picture
    assert tokens(page) == ["four", "five", "six"]


def chip(page: Page, index: int) -> None:
    with rerun(page, "token_strip"):
        page.locator(".st-key-token_strip .chip").nth(index).click()


def test_a_screen_that_no_link_carries_is_saved_and_opened_elsewhere(open_app, tmp_path):
    text = "donaudampfschifffahrt " * 400
    page = open_app(view="heads", text="a b")
    with rerun(page):
        type_text(page, text.strip())
    expect(page.get_by_text("Copy link saves the screen as a file")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Copy link").click()
    download.value.save_as(tmp_path / "screen.json")

    page = open_app(view="step", text="a b")
    for content, is_screen in (("{}", False), ((tmp_path / "screen.json").read_text(encoding="utf-8"), True)):
        with rerun(page):
            page.get_by_role("button", name="Examples").click()
        with rerun(page):
            file = {"name": "screen.json", "mimeType": "application/json", "buffer": content.encode()}
            page.locator("[class*=st-key-screen_file] input[type=file]").set_input_files([file])
        if not is_screen:
            expect(page.get_by_text("A saved screen begins with")).to_be_visible()
            assert tokens(page) == ["a", "b"]
            with rerun(page):  # it has closed before it is opened again
                page.keyboard.press("Escape")
    expect(page.locator(".st-key-token_strip")).to_contain_text("400 tokens")
    assert link_of(page)["view"] == "heads"
