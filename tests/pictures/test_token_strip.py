"""The token strip on a static page: the keys lead along its rows, and a choice that is broken off is taken back."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.pictures.static_page import heard, panels, picture, pictures_of, update


def test_the_keys_scroll_the_row_and_lead_from_row_to_row(show_link):
    text = "the quick brown fox " * 15
    page = show_link(architecture="encoder-decoder", text=text, target="a b c", width=390)
    source, target = picture(page, "token_strip").locator(".chips").all()
    last = source.locator(".chip").last
    expect(last).not_to_be_in_viewport()
    source.locator(".chip").first.focus()
    page.keyboard.press("End")
    expect(last).to_be_focused()
    expect(last).to_be_in_viewport(ratio=0.99)
    page.keyboard.press("ArrowDown")
    expect(target.locator(".chip:focus")).to_have_count(1)
    page.keyboard.press("ArrowUp")
    expect(source.locator(".chip:focus")).to_have_count(1)


def test_a_choice_that_is_broken_off_is_taken_back_to_what_the_host_says_by_then(show_link):
    link = {"text": "a b c d e f", "view": "heads"}
    page = show_link(**link, query=0)
    chips = picture(page, "token_strip").locator(".chip")
    chips.nth(1).hover()
    page.mouse.down()
    update(page, next(one for one in pictures_of(**link, query=4) if one.key == "token_strip"))
    expect(chips.nth(1)).to_have_attribute("aria-selected", "true")
    chips.nth(1).dispatch_event("pointercancel")  # as where the browser drags the text that is marked
    expect(chips.nth(4)).to_have_attribute("aria-selected", "true")


def test_what_is_pressed_while_another_text_comes_is_chosen_at_its_place(show_link):
    page = show_link(text="a b c d e f", view="heads", query=0)
    chips = picture(page, "token_strip").locator(".chip")
    chips.nth(2).hover()
    page.mouse.down()
    update(
        page, next(one for one in pictures_of(text="u v w x", view="heads", query=0) if one.key == "token_strip")
    )
    expect(chips).to_have_count(4)
    page.mouse.up()
    expect(chips.nth(2)).to_have_attribute("aria-selected", "true")
    assert [value["index"] for name, value in heard(page, "token_strip") if name == "select"] == [2]


def test_after_back_a_choice_that_the_host_never_hears_of_is_taken_back_though_it_sends_nothing(show_link):
    page = show_link(text="a b c d e f", view="heads", query=4)
    chips = picture(page, "token_strip").locator(".chip")
    chips.nth(1).click()
    expect(chips.nth(1)).to_have_attribute("aria-selected", "true")
    page.evaluate("() => window.dispatchEvent(new PopStateEvent('popstate'))")
    expect(chips.nth(4)).to_have_attribute("aria-selected", "true")


def test_a_choice_that_the_host_never_hears_of_gives_way_to_the_address_after_back(show_link):
    link = {"text": "a b c d e f", "view": "heads"}
    page = show_link(**link, query=0)
    strip = next(one for one in pictures_of(**link, query=4) if one.key == "token_strip")
    chips = picture(page, "token_strip").locator(".chip")
    chips.nth(1).click()
    update(page, strip)
    expect(chips.nth(1)).to_have_attribute("aria-selected", "true")
    page.evaluate("() => window.dispatchEvent(new PopStateEvent('popstate'))")
    update(page, strip)
    expect(chips.nth(4)).to_have_attribute("aria-selected", "true")
    chips.nth(2).click()
    update(page, strip)
    expect(chips.nth(2)).to_have_attribute("aria-selected", "true")


def test_what_a_picture_has_lit_is_lit_no_more_when_it_is_gone(show_link):
    page = show_link(text="a b c", view="heads")
    picture(page, "token_strip").locator(".chip").nth(1).hover()
    name = panels(page, "attention_heads_encoder_self_attention").first.locator(".light-name-row")
    expect(name).to_be_visible()
    page.evaluate("() => drawn.get('token_strip').destroy()")
    expect(name).to_be_hidden()


def test_what_is_chosen_is_told_by_its_colour_in_high_contrast_too(show_link):
    page = show_link(text="a b c", view="heads", query=1)
    page.emulate_media(forced_colors="active")
    chips = picture(page, "token_strip").locator(".chip")
    colors = chips.evaluate_all("all => all.map((one) => getComputedStyle(one).backgroundColor)")
    assert colors[1] not in (colors[0], colors[2])
