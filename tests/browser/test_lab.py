"""The Mask lab as a person uses it: what is painted is said in words and in the link, and taken to other views."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import choose_view, link_of, panels, pill, rerun
from tests.reading import click_cell, point_at, tooltip, tooltip_numbers

PAINTER = "mask_painter"
TEXT = "a b c d"
SHAPE = (4, 4)


def painter(page: Page):
    return panels(page, PAINTER).first


def expression(page: Page) -> str:
    return page.locator("[class*='st-key-expression'] input").input_value()


def test_a_painted_cell_is_in_the_link_in_words_and_in_every_view(open_app):
    the_name_of_a_function_is_not_cut_off(open_app(view="lab", panel="load", passed_to="sdpa"))
    page = open_app(view="lab", text=TEXT, mask="none", head=0)
    with rerun(page, PAINTER):
        click_cell(painter(page), 2, 0, SHAPE)
    assert link_of(page)["mask"] == "custom"
    assert link_of(page)["custom"] == expression(page) != ""
    point_at(painter(page), 2, 0, SHAPE)
    expect(tooltip(page)).to_contain_text("may not see")
    expect(tooltip(page)).to_contain_text("painted")
    expect(pill(page, "mask", "Painted")).to_have_attribute("aria-pressed", "true")
    choose_view(page, "Step through")
    picture = panels(page, "picture").last
    point_at(picture, 2, 0, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by the painted mask")
    assert tooltip_numbers(page) == [0]
    with rerun(page, PAINTER):
        page.get_by_role("button", name="Paint the mask").click()
    assert link_of(page)["view"] == "lab"


def the_name_of_a_function_is_not_cut_off(page: Page) -> None:
    chosen = page.get_by_role("combobox", name="Where do you pass it?")
    expect(chosen).to_have_value("F.scaled_dot_product_attention: attn_mask")
    assert chosen.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_a_text_whose_help_is_pressed_is_heard_when_its_field_is_left(open_app):
    page = open_app(view="lab", architecture="decoder", text="a b c d")
    field = page.get_by_role("textbox", name="Allowed where")
    field.fill("k == q")
    page.get_by_role("button", name="Help for Allowed where").click()
    with rerun(page):
        page.get_by_role("textbox", name="Text", exact=True).click()
    assert link_of(page)["custom"] == "k == q"
