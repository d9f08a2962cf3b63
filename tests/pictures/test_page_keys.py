"""Parts of the whole page: keys, their overview, and how long a text may be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.pictures.static_page import heard, picture, pictures_of, update
from visualizer.components.packing import header_of
from visualizer.components.page_keys.element import page_keys

KEYS = "keys"


@pytest.fixture
def page(show) -> Page:
    """A page with a field and the picture that listens to its keys."""
    page = show([page_keys(longest={"": 10}, seq=0, key=KEYS)])
    page.evaluate("() => document.body.append(document.createElement('textarea'))")
    return page


def test_a_key_that_is_not_told_yet_is_told_at_the_end(page):
    page.evaluate(
        """() => {
          document.dispatchEvent(new KeyboardEvent("keydown", { key: "L" }));
          drawn.get("keys").destroy();
        }"""
    )
    [(name, told)] = heard(page, KEYS)
    assert name == "act"
    assert told["seq"] == 1
    assert len(told["acts"]) == 1


def test_keys_are_told_in_their_order_but_for_those_that_are_written_or_pressed_below_the_overview(page):
    field = page.locator("textarea")
    field.press_sequentially("vphx?")
    expect(field).to_have_value("vphx?")
    field.blur()
    page.keyboard.press("?")
    overview = page.get_by_role("dialog", name="Keys")
    expect(overview).to_contain_text("next view")
    page.keyboard.press("v")
    page.keyboard.press("Escape")
    expect(overview).to_be_hidden()
    for letter in "LHTtp":
        page.keyboard.press(letter)
    page.wait_for_function("() => heard.at(-1)?.value.seq === 5")
    acts = ["layer_back", "head_back", "token_back", "token_next", "present"]
    assert heard(page, KEYS)[-1] == ("act", {"acts": [[i, act] for i, act in enumerate(acts, 1)], "seq": 5})


def test_a_text_that_is_too_long_is_refused_in_one_sentence_and_takes_nothing_away(page):
    field = page.locator("textarea")
    field.fill("cat sat")
    page.keyboard.insert_text("word " * 100_000)
    assert field.input_value() == "cat sat"
    said = "This field takes 10 characters; with these it would have 500,007."
    assert field.evaluate("field => field.validationMessage") == said
    page.keyboard.insert_text(" on")
    assert field.input_value() == "cat sat on"
    assert field.evaluate("field => field.validationMessage") == ""


def test_going_back_is_told(page):
    page.evaluate("() => { history.pushState(null, '', '?a=1'); history.pushState(null, '', '?a=2'); }")
    page.evaluate("() => history.back()")
    page.wait_for_function("() => heard.length")
    assert heard(page, KEYS) == [("went", {"search": "?a=1", "seq": 0})]


def test_the_link_is_copied_by_a_button_and_a_key(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("status")).to_have_text("Link copied.")
    assert page.evaluate("() => navigator.clipboard.readText()") == page.url
    page.evaluate("() => navigator.clipboard.writeText('')")
    page.get_by_role("button", name="Copy link").blur()
    page.keyboard.press("c")
    page.wait_for_function("async () => (await navigator.clipboard.readText()) === location.href")


def test_a_browser_that_does_not_let_the_page_copy_is_said(page):
    page.evaluate("() => (navigator.clipboard.writeText = () => Promise.reject(new Error('no')))")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("status")).to_contain_text("the link is in the address bar")


def test_a_screen_that_no_link_carries_becomes_a_file(show):
    page = show([page_keys(longest={"": 10}, seq=0, key=KEYS, screen='{"headlight_screen": 1}')])
    with page.expect_download() as download:
        page.get_by_role("button", name="Copy link").click()
    assert download.value.suggested_filename == "screen.json"
    assert Path(download.value.path()).read_text(encoding="utf-8") == '{"headlight_screen": 1}'
    expect(page.get_by_role("status")).to_contain_text("saved as a file")


@pytest.mark.parametrize(("drawn", "n_told"), [([{"view": "heads"}], 1), ([{"view": "heads"}, {}], 0)])
def test_an_address_to_which_a_person_went_before_anything_was_drawn_is_told_once(show, drawn, n_told):
    picture = page_keys(longest={}, seq=0, key=KEYS, addresses=drawn)
    page = show([picture])
    update(page, picture)
    assert heard(page, KEYS) == [("went", {"search": "", "seq": 0, "drawn": drawn})] * n_told


def test_keys_and_back_mean_nothing_to_a_picture_whose_numbers_are_not_there_yet(show):
    links = ({"view": "step", "n_layers": 12}, {"view": "way", "text": "a b c d " * 16})
    fetched = [one for link in links for one in pictures_of(**link) if header_of(one.data).get("address")]
    assert [one.key.partition("_")[0] for one in fetched] == ["stage", "token"]
    (above,) = (one for one in pictures_of(view="step", text="a b c") if one.key == "picture")
    page = show([*(replace(above, key=str(i)) for i in range(20)), *fetched], height=300)
    page.keyboard.press("ArrowRight")
    page.evaluate("() => window.dispatchEvent(new PopStateEvent('popstate'))")
    for one in fetched:
        picture(page, one.key).scroll_into_view_if_needed()
        expect(picture(page, one.key).locator("svg rect").first).to_be_visible()
    assert [heard(page, one.key) for one in fetched] == [[], []]


@pytest.mark.parametrize(
    ("meanwhile", "slip", "n_clicks"),
    [
        ("button => null", 0, 1),
        ("button => { button.style.marginLeft = '400px'; }", 0, 1),
        ("button => button.replaceWith(button.cloneNode(true))", 0, 1),
        ("button => { button.style.marginLeft = '400px'; }", 60, 0),
        (
            "button => { button.replaceWith(button.cloneNode(true)); document.querySelector('p').append('?'); }",
            0,
            1,
        ),
        ("button => button.parentElement.outerHTML = '<div class=st-key-go-3><button>Go</button></div>'", 0, 1),
        ("button => button.remove()", 0, 0),
    ],
    ids=["nothing", "moved", "drawn anew", "drawn away", "drawn anew elsewhere", "given another value", "gone"],
)
def test_a_press_counts_where_the_page_changes_before_the_pointer_is_up(page, meanwhile, slip, n_clicks):
    keyed = "".join(f'<div class="st-key-{key}"><button>Go</button></div>' for key in ("other", "go-2"))
    page.evaluate(
        """html => {
          document.body.insertAdjacentHTML("beforeend", `<p></p>${html}`);
          window.clicked = [];
          document.addEventListener("click", ({ target }) => {
            if (target.matches("button")) clicked.push(target.parentElement.className.slice(0, 9));
          });
        }""",
        keyed,
    )
    button = page.locator(".st-key-go-2 button")
    box = button.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    button.evaluate(meanwhile)
    page.mouse.move(x + slip, y)
    page.mouse.up()
    assert page.evaluate("() => clicked") == ["st-key-go"] * n_clicks
