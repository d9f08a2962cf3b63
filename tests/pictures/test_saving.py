"""Pictures that are saved: the figure says what the picture says, and opens elsewhere."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.pictures.conftest import ShowLink
from tests.pictures.static_page import picture

SVG = "{http://www.w3.org/2000/svg}"
HEADS = {"view": "heads", "text": "the cat sat on the mat", "mask": "causal", "n_heads": 4}
PIXELS_ON_SCREEN = """picture => {
  const root = [...picture.querySelectorAll("*")].map(({ shadowRoot }) => shadowRoot).find(Boolean) ?? picture;
  return [...root.querySelectorAll(".matrix:not([hidden]) canvas.matrix-pixels")].map((canvas) => {
    const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const two = (part) => part.toString(16).padStart(2, "0");
    const hex = (i) => "#" + [...data.subarray(i, i + 3)].map(two).join("");
    const cells = {};
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3]) cells[`${(i / 4) % width} ${Math.floor(i / 4 / width)}`] = hex(i);
    }
    return cells;
  });
}"""

COLOR_IN = """(canvas, [size, row, column]) => {
  const at = (index, length) => Math.round(((index + 0.15) * length) / size);
  const { data } = canvas.getContext("2d").getImageData(at(column, canvas.width), at(row, canvas.height), 1, 1);
  return "#" + [...data.subarray(0, 3)].map((part) => part.toString(16).padStart(2, "0")).join("");
}"""
PLACES = """text => {
  const place = document.body.appendChild(document.createElement("div"));
  place.innerHTML = text;
  const svg = place.querySelector("svg");
  svg.setAttribute("width", svg.viewBox.baseVal.width);
  svg.setAttribute("height", svg.viewBox.baseVal.height);
  const whole = svg.getBoundingClientRect();
  const found = [...svg.querySelectorAll("text")].map((one) => {
    const { left, right, top, bottom } = one.getBoundingClientRect();
    const isTurned = Math.abs(one.getScreenCTM().b) > 0.1;
    return { text: one.textContent, left: left - whole.left, right: right - whole.left, top, bottom, isTurned };
  });
  place.remove();
  return { width: whole.width, texts: found };
}"""


def open_dialog(page: Page, key: str) -> Locator:
    """The dialog in which a picture is saved, once it shows the figure."""
    picture(page, key).locator(".saving-open").evaluate("button => button.click()")
    dialog = page.locator(".saving-dialog[open]")
    expect(dialog.locator(".saving-preview[src]")).to_be_visible()
    return dialog


def saved(page: Page, dialog: Locator, way: str) -> Path:
    """The file that a button of the dialog saves."""
    with page.expect_download() as download:
        dialog.get_by_role("button", name=way, exact=True).click()
    return Path(download.value.path())


def figure(page: Page, dialog: Locator) -> ET.Element:
    return ET.fromstring(saved(page, dialog, "SVG").read_text(encoding="utf-8"))


def texts_in(svg: ET.Element) -> list[str]:
    return [element.text or "" for element in svg.iter(f"{SVG}text")]


def cells_in(svg: ET.Element) -> list[dict[str, str]]:
    """The colour of each cell by its column and row, in every matrix of a figure."""
    drawings = [each for each in svg.iter(f"{SVG}svg") if re.fullmatch(r"0 0 6 6", each.get("viewBox", ""))]
    return [dict(_cells_of(drawing)) for drawing in drawings]


def _cells_of(drawing: ET.Element) -> Iterator[tuple[str, str]]:
    for rect in drawing.iter(f"{SVG}rect"):
        x, y, width = (int(rect.get(name, "0")) for name in ("x", "y", "width"))
        yield from ((f"{x + i} {y}", rect.get("fill", "")) for i in range(width))


def placed(page: Page, file: Path) -> tuple[float, list[dict[str, Any]]]:
    """The width of a figure in pixels, and every text with its place in it."""
    found = page.evaluate(PLACES, file.read_text(encoding="utf-8"))
    return found["width"], found["texts"]


def key_of_heads(page: Page) -> str:
    key: Any = page.locator("[data-key^=attention_heads]").get_attribute("data-key")
    return str(key)


def test_the_cells_of_a_figure_have_the_colours_of_the_picture(show_link: ShowLink):
    page = show_link(**HEADS)
    key = key_of_heads(page)
    on_screen = picture(page, key).evaluate(PIXELS_ON_SCREEN)
    svg = figure(page, open_dialog(page, key))
    assert len(on_screen) == 4
    assert cells_in(svg) == on_screen
    assert len(on_screen[0]) == 21  # what the causal mask allows; the others are hatched
    hatched = [fill for element in svg.iter() if (fill := element.get("fill", "")).startswith("url(#hatch")]
    assert len(hatched) == 4 + 1  # of the legend
    assert {*hatched} == {f"url(#{pattern.get('id')})" for pattern in svg.iter(f"{SVG}pattern")}
    assert texts_in(svg).count("cat") == 8
    assert {"head 0 · previous token", "weight", "blocked", "Layer 0"} <= set(texts_in(svg))


def test_counts_have_no_decimals_in_cells_and_legend(show_link: ShowLink):
    page = show_link(view="lab", panel="reach", architecture="decoder", text="a b c", mask="causal")
    svg = figure(page, open_dialog(page, "reach"))
    assert "a b c 0 1 0 1 1 0 0 1 blocked" in " ".join(filter(None, texts_in(svg)))


def test_a_figure_is_as_wide_and_as_dark_as_is_chosen(show_link: ShowLink):
    page = show_link(**HEADS)
    dialog = open_dialog(page, key_of_heads(page))
    dialog.get_by_label("Width").select_option("column")
    dialog.get_by_label("Theme").select_option("dark")
    dialog.get_by_label("Legend").uncheck()
    dialog.get_by_label("Title").fill("Heads </text><b>")
    dialog.get_by_label("Caption").fill("What each head does.")
    svg = figure(page, dialog)
    width = svg.get("width", "")
    assert float(width.removesuffix("mm")) == pytest.approx(85, abs=0.3)
    assert svg.get("viewBox", "").split()[2] == str(round(float(width.removesuffix("mm")) * 96 / 25.4))
    ground = svg.find(f"{SVG}rect")
    assert ground is not None
    assert ground.get("fill") == "#0e1117"
    said = " ".join(texts_in(svg))
    assert "Heads </text><b>" in said
    assert "What each head does." in said
    assert "blocked" not in said
    assert not list(svg.iter(f"{SVG}b"))


def test_the_controls_stay_in_their_place_while_another_figure_is_drawn(show_link: ShowLink):
    page = show_link(**HEADS)
    dialog = open_dialog(page, key_of_heads(page))
    preview, controls = dialog.get_by_role("img"), (dialog.get_by_label("Legend"), dialog.get_by_role("button"))
    drawn, height = preview.get_attribute("src"), height_of(preview)
    places = [each.bounding_box() for control in controls for each in control.all()]
    dialog.get_by_label("Width").select_option("column")
    expect(preview).not_to_have_attribute("src", str(drawn))
    assert height_of(preview) != height
    assert [each.bounding_box() for control in controls for each in control.all()] == places


def height_of(preview: Locator) -> int:
    """The height of an image itself, once it is decoded."""
    height: int = preview.evaluate("async (image) => (await image.decode(), image.naturalHeight)")
    return height


def test_a_figure_of_lines_has_every_line_and_says_whose_it_is(show_link: ShowLink):
    page = show_link(**HEADS | {"text": " ".join("abcdefghij" * 4), "drawn": "lines"})
    key = key_of_heads(page)
    picture(page, key).locator(".chip").nth(1).click(modifiers=["ControlOrMeta"])
    svg = figure(page, open_dialog(page, key))
    n_lines = re.search(r"(\d+) lines", " ".join(texts_in(svg)))
    assert n_lines
    curves = [path.get("d", "").count("C") for path in svg.iter(f"{SVG}path")]
    assert sum(curves) == int(n_lines[1]) > 120
    said = " ".join(texts_in(svg))
    assert "0 · previous token" in said
    assert "next token" not in said  # that head is hidden
    assert "39" in said  # the last token, which is not in sight on the page


def test_a_figure_of_the_mask_lab_has_the_weights_in_their_colours(show_link: ShowLink):
    page = show_link(view="lab", text="a b c d", mask="causal", architecture="decoder", weights="random")
    canvas = picture(page, "mask_painter").locator("canvas.matrix-pixels")
    beside_numbers = [canvas.evaluate(COLOR_IN, [4, row, column]) for row in range(4) for column in range(row + 1)]
    dialog = open_dialog(page, "mask_painter")
    dialog.get_by_label("Legend").uncheck()  # it has all colours
    figure_of_it = figure(page, dialog)
    fills = [rect.get("fill") for rect in figure_of_it.iter(f"{SVG}rect")]
    assert len(set(beside_numbers)) > 5
    assert Counter(fills) >= Counter(beside_numbers)
    assert "All heads" not in texts_in(figure_of_it)


def test_what_is_scrolled_out_of_sight_is_in_the_figure(show_link: ShowLink):
    page = show_link(view="step", text="a b c", n_layers=3, stage="encoder.feed_forward.hidden", layer=2)
    dialog = open_dialog(page, "stage_map")
    dialog.get_by_label("Width").select_option("column")
    width, texts = placed(page, saved(page, dialog, "SVG"))
    assert {"inputs", "output"} <= {text["text"] for text in texts}
    assert all(text["left"] >= 0 and text["right"] <= width for text in texts), texts


@pytest.mark.parametrize("stage", ["encoder.feed_forward.hidden", "encoder.self_attention.context"])
def test_nothing_is_written_over_another_text_in_a_narrow_figure(show_link: ShowLink, stage: str):
    page = show_link(view="step", text="a b c d e f g h i j", stage=stage)
    dialog = open_dialog(page, "derivation_0")
    dialog.get_by_label("Width").select_option("column")
    _, texts = placed(page, saved(page, dialog, "SVG"))
    over = [
        (one["text"], other["text"])
        for one, other in combinations(texts, 2)
        if not (one["isTurned"] and other["isTurned"])
        and min(one["right"], other["right"]) - max(one["left"], other["left"]) > 2
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 3  # lines stand close
    ]
    assert not over
    assert "attention weights, query 8" not in {text["text"] for text in texts}  # it takes several lines


def test_in_the_column_of_a_paper_two_heads_stand_side_by_side(show_link: ShowLink):
    page = show_link(**HEADS, weights="random")
    dialog = open_dialog(page, key_of_heads(page))
    dialog.get_by_label("Width").select_option("column")
    _, texts = placed(page, saved(page, dialog, "SVG"))
    tops = [text["top"] for head in range(4) for text in texts if text["text"] == f"head {head}"]
    assert tops[0] == tops[1] < tops[2] == tops[3]


def test_what_can_be_seen_through_can_be_in_a_figure_too(show_link: ShowLink):
    page = show_link(**LINKS["way"])
    (key,) = page.locator("[data-key^=token_way]").evaluate_all("all => all.map(({ dataset }) => dataset.key)")
    opacity = picture(page, key).locator(".ribbon").first.evaluate("ribbon => getComputedStyle(ribbon).opacity")
    ribbons = [each for each in figure(page, open_dialog(page, key)).iter(f"{SVG}path") if each.get("data-of")]
    assert ribbons
    assert {ribbon.get("opacity") for ribbon in ribbons} == {opacity}
    assert float(opacity) < 1


def test_pixels_are_as_many_as_is_chosen(show_link: ShowLink):
    page = show_link(**HEADS)
    dialog = open_dialog(page, key_of_heads(page))
    width, height = (round(float(size)) for size in figure(page, dialog).get("viewBox", "").split()[2:])
    for scale in (1, 2, 4):
        data = saved(page, dialog, f"PNG {scale}×").read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", data[16:24]) == (width * scale, height * scale)


def test_a_figure_shows_the_layer_and_the_heads_that_are_looked_at(show_link: ShowLink):
    page = show_link(**HEADS)
    key = key_of_heads(page)
    expect(open_dialog(page, key).get_by_label("Title")).to_have_value("Layer 0")
    page.keyboard.press("Escape")
    page.get_by_role("slider", name="layer", exact=True).press("End")
    picture(page, key).locator(".chip").nth(1).click()
    on_screen = picture(page, key).evaluate(PIXELS_ON_SCREEN)
    dialog = open_dialog(page, key)
    expect(dialog.get_by_label("Title")).to_have_value("Layer 1")
    assert cells_in(figure(page, dialog)) == on_screen
    assert 0 < len(on_screen) < 4


def test_a_figure_is_copied_as_an_image_where_the_browser_lets_it(show_link: ShowLink):
    page = show_link(**HEADS)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    dialog = open_dialog(page, key_of_heads(page))
    dialog.get_by_role("button", name="Copy image").click()
    expect(dialog.get_by_role("status")).to_have_text("Copied.")
    kinds = page.evaluate("async () => (await navigator.clipboard.read()).flatMap(({ types }) => types)")
    assert kinds == ["image/png"]
    page.evaluate("() => (navigator.clipboard.write = () => Promise.reject(new Error('no')))")
    dialog.get_by_role("button", name="Copy image").click()
    expect(dialog.get_by_role("status")).to_contain_text("save it as PNG")


LINKS = {
    "heads": HEADS,
    "lines": HEADS | {"drawn": "lines"},
    "step": {"view": "step", "text": "a b c", "stage": "encoder.self_attention.scores"},
    "compare": {"view": "compare", "text": "a b c", "mask_b": "causal"},
    "way": {"view": "way", "text": "a b c", "architecture": "decoder"},
    "lab": {"view": "lab", "text": "a b c d", "mask": "causal"},
    "generate": {"view": "generate", "weights": "trained"},
}


@pytest.mark.parametrize(("name", "dark"), [*((name, False) for name in LINKS), ("heads", True), ("way", True)])
def test_every_picture_opens_elsewhere(show_link: ShowLink, name: str, dark: bool, tmp_path: Path):
    page = show_link(dark=dark, **LINKS[name])
    keys = page.locator("[data-key]:has(.saving-open)").evaluate_all("all => all.map(({ dataset }) => dataset.key)")
    assert keys
    for key in keys:
        dialog = open_dialog(page, key)
        file = saved(page, dialog, "SVG")
        svg = ET.parse(file).getroot()
        assert texts_in(svg)
        assert not list(svg.iter(f"{SVG}script"))
        assert not list(svg.iter(f"{SVG}foreignObject"))
        assert not re.search(r"var\(|color-mix|oklab|color\(", file.read_text(encoding="utf-8"))
        if converter := shutil.which("rsvg-convert"):  # what Inkscape and GNOME draw SVG with
            png = tmp_path / f"{key}.png"
            done = subprocess.run([converter, "-o", png, file], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            assert done.stderr == ""
            assert len(png.read_bytes()) > 1000
        dialog.get_by_role("button", name="Close").click()


def test_the_key_opens_the_dialog_and_letters_written_there_stay_there(show_link: ShowLink):
    page = show_link(**HEADS)
    key = key_of_heads(page)
    picture(page, key).locator(".matrix-plot").first.focus()
    page.keyboard.press("s")
    dialog = page.locator(".saving-dialog[open]")
    dialog.get_by_label("Title").fill("")
    page.keyboard.type("ship")
    expect(dialog.get_by_label("Title")).to_have_value("ship")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_token_of_markup_is_text_in_a_figure(show_link: ShowLink):
    page = show_link(view="heads", text="<b>&amp; </svg> ]]> \u0007", tokens="characters")
    svg = figure(page, open_dialog(page, key_of_heads(page)))
    assert {"<", "&", "]"} <= set(texts_in(svg))
