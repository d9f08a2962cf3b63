"""The address holds everything chosen: it can be sent to someone, reloaded, and gone back and forward through."""

from __future__ import annotations

import json
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
    "mask_a": "padding",
    "mask_b": "causal,prefix",
    "prefix": "1",
}


def shown(page: Page) -> str:
    """Everything on the page as a screen reader meets it: texts, choices, and what each picture says of itself."""
    page.bring_to_front()
    more = page.locator("details[open] > summary", has_text="More")
    if more.count():  # a person's own, and in no link
        more.click()
        expect(more).to_have_count(0)  # it closes slowly
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
            page.locator(".st-key-n_heads").get_by_role("slider").press("ArrowLeft")
    with rerun(page, "picture"):
        pill(page, "mask", "Strided").click()
    enter_number(page, "stride", 2)
    choose_view(page, "Heads")
    page.get_by_role("button", name="next layer").click()
    with rerun(page):
        click_cell(panels(page, "attention_heads_encoder_self_attention").nth(1), 3, 2, (4, 4))
    choose_view(page, "Compare masks")
    for name, mask in (("mask_a", "Padding"), ("mask_b", "Prefix")):
        with rerun(page):
            pill(page, name, mask).click()
    enter_number(page, "prefix", 1)
    assert link_of(page) == CHOSEN

    brought_back(page, open_app)
    before = shown(page)
    page.reload()
    assert shown(page) == before


def choose_weights(page: Page, title: str) -> None:
    page.locator(".st-key-weights [role=combobox]").click()
    with rerun(page):
        page.get_by_role("option", name=title).click()


def enter_number(page: Page, name: str, value: int) -> None:
    field = page.locator(f".st-key-{name} input")
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


def test_the_opening_note_goes_with_what_it_speaks_of(open_app):
    page = open_app()
    note = page.get_by_text("gives half of its weight to the first")
    expect(note).to_be_visible()
    with rerun(page):
        click_cell(panels(page, "every_head").nth(0), 3, 2, (11, 11))
    expect(note).to_have_count(0)
    with rerun(page):
        page.go_back()
    expect(note).to_be_visible()


def test_a_bad_value_becomes_a_good_one_and_says_so(open_app):
    page = open_app(n_heads="nan", norm="prr", mask="<img src=x>", view="hedas")
    notice = (
        "n_heads=nan is not a number",
        "norm=prr is not one of",
        "mask=<img src=x> is not",
        "view=hedas is not",
    )
    alert = page.get_by_role("alert")
    text = alert.inner_text().replace("\u2060", "")
    for part in notice:
        assert part in text
    assert link_of(page) == {"norm": "pre", "mask": "none", "view": "heads"}
    assert tokens(page)
    expect(page.locator(".st-key-n_heads").get_by_role("slider")).to_have_value("4")
    with rerun(page):
        pill(page, "mask", "Causal").click()
    expect(alert).to_have_count(0)


def test_what_is_changed_inside_the_pictures_of_heads_comes_back(open_app):
    page = open_app(view="heads", text=TEXT)
    heads = page.locator(".st-key-attention_heads_encoder_self_attention")
    change(page, heads.get_by_role("button", name="√ lifts small").click, curve="root")
    change(page, heads.get_by_role("button", name="2 · same token", exact=True).dblclick, shown="2")
    change(page, heads.get_by_role("button", name="next layer").click, layer="1")
    brought_back(page, open_app)
    expect(panels(page, "attention_heads_encoder_self_attention")).to_have_count(1)

    change(page, heads.get_by_role("button", name="Lines", exact=True).click, drawn="lines")
    slider = heads.get_by_role("slider", name="least weight of a line")
    change(page, lambda: slider.press("End"), least_weight="0.5")
    change(page, heads.locator(".lines-query .lines-token").nth(3).click, pinned="q3")
    brought_back(page, open_app)
    expect(heads.locator(".lines-pinned")).to_contain_text("one")
    expect(heads.locator(".lines-note")).to_contain_text("of weight 0.5 and more")


def test_relative_lengths_the_table_of_numbers_and_the_claim_come_back(open_app):
    page = open_app(view="compare", text=TEXT)
    change(page, page.locator(".st-key-relative label").click, relative="on")
    change(page, page.get_by_role("button", name="3 · first token", exact=True).dblclick, shown="3")
    brought_back(page, open_app)
    choose_view(page, "Step through")
    change(page, page.locator(".st-key-numbers label").click, numbers="on")
    brought_back(page, open_app)
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    choose_view(page, "Mask lab")
    change(page, page.get_by_role("radio", name="FlexAttention").click, library="flex_attention")
    brought_back(page, open_app)
    change(page, page.get_by_role("radio", name="Prove").click, panel="prove")
    change(page, page.get_by_role("radio", name="No look ahead").click, claim="causal")
    brought_back(page, open_app)
    expect(page.get_by_text("No later token changes an earlier output")).to_be_visible()


def test_the_place_in_what_a_model_writes_comes_back(open_app):
    page = open_app(view="generate", architecture="decoder", weights="random", text=TEXT)
    change(page, page.get_by_role("radio", name="Sampling").click, strategy="sampling")
    enter_number(page, "most_tokens", 6)
    enter_number(page, "likely_tokens_left", 3)
    enter_number(page, "draws", 5)
    change(page, lambda: page.locator(".st-key-temperature").get_by_role("slider").press("End"), temperature="3")
    change(page, page.locator(".st-key-cached label").click, cached="on")
    change(page, page.get_by_role("button", name="to the end").click, step="5")
    change(page, page.get_by_role("button", name="previous layer").click, row_layer="0")
    assert link_of(page).items() >= {"limit": "6", "top_k": "3", "draws": "5"}.items()
    brought_back(page, open_app)
    expect(page.locator(".transport-place")).to_have_text("Step 6 of 6")

    change(page, page.get_by_role("radio", name="Beam search").click, strategy="beam")
    change(page, lambda: page.locator(".st-key-beams").get_by_role("slider").press("Home"), beams="1")
    change(page, page.locator(".tree-node[data-index='2']").click, node="2")
    brought_back(page, open_app)
    expect(page.locator(".tree-node[data-index='2']")).to_have_attribute("aria-selected", "true")


def change(page: Page, act: Callable[[], None], **expected: str) -> None:
    """Do something that the address comes to hold."""
    act()
    wanted = json.dumps(expected)
    settle(
        page,
        f"() => Object.entries({wanted}).every(([name, value]) => "
        "new URLSearchParams(location.search).get(name) === value)",
    )


def brought_back(page: Page, open_app: Callable[..., Page]) -> None:
    """The same link gives someone who was never there the same picture."""
    link, before = link_of(page), shown(page)
    visitor = open_app(**link)
    assert shown(visitor) == before
    assert link_of(visitor) == link
