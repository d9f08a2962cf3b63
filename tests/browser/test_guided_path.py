"""The guided path: walked from the bare address to its end, left and taken up again, and a path from a file."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.browser.headlight_page import link_of, rerun, settle
from tests.reading import controls_in_sight
from visualizer.guide.known_paths import FIRST_PATH
from visualizer.guide.walking import stops_of
from visualizer.runs.compute import compute_run
from visualizer.settings.examples import OPENING
from visualizer.settings.link import write_query
from visualizer.shares import percent

MOST_CONTROLS = {"opening": 25, "path": 15}
"""The controls that ask for attention at once."""

LIT = ".spot, .light-spot, .matrix-lit .matrix-plot"
"""The lights of the stops: in a token's way, in matrices, and a head."""


def bottom_of_the_light(page: Page) -> float:
    """The end of the lowest light on the page; in an equation each input is lit too, where it is made from that."""
    lit = page.locator(LIT).locator("visible=true")
    expect(lit).to_have_count(page.locator(".tensors-row .matrix").count() or 1)
    boxes = [one.bounding_box() for one in lit.all()]
    return max(box["y"] + box["height"] for box in boxes)


def test_the_path_is_walked_left_taken_up_again_and_opened_from_a_file(open_app):
    page = open_app(height=720, **write_query(OPENING.settings, OPENING.selection))
    assert len(opening := controls_in_sight(page)) <= MOST_CONTROLS["opening"], opening
    run = compute_run(OPENING.settings)
    titles = [FIRST_PATH.stops[number - 1].title for number in stops_of(run, FIRST_PATH, OPENING.selection)]
    assert len(titles) == 11
    card = page.locator(".path-card")
    with rerun(page, "path_card"):
        page.get_by_role("button", name="Start here").click()
    for i, title in enumerate(titles):
        expect(card.locator(".path-title")).to_have_text(title)
        expect(card.locator(".path-stops option").first).to_have_text(f"Stop {i + 1} of 11")
        expect(card.locator(".path-show")).to_be_hidden()
        assert bottom_of_the_light(page) <= 720, title
        assert len(asking := controls_in_sight(page)) <= MOST_CONTROLS["path"], asking
        if title == "Scores become weights":
            share = percent(float(run.trace["decoder.layers.0.self_attention.weights"].value[0, 2, 9].max()))
            expect(card.locator(".path-words")).to_contain_text(f"“was” gives {share} to “sat”")
        if i < 10:
            with rerun(page, "path_card"):
                card.get_by_role("button", name="Next").click()
    assert link_of(page)["stop"] == "14"
    expect(card.locator(".path-way")).to_have_text(["Mask lab", "Heads of your own text", "Generate text"])
    expect(card.locator(".path-next")).to_be_hidden()
    with rerun(page):
        card.get_by_role("button", name="Generate text").click()
    expect(card).to_have_count(0)
    with rerun(page):
        page.get_by_role("button", name="Examples").click()
    with rerun(page, "path_card"):
        page.get_by_role("button", name="Guided path").click()
    with rerun(page, "path_card"):
        card.locator(".path-stops").select_option("11 The answer")
    expect(card.locator(".path-title")).to_have_text("The answer")

    with rerun(page, "path_card"):
        page.keyboard.press("v")
    with rerun(page, "path_card"):
        card.get_by_role("button", name="Show its picture").click()
    expect(card.locator(".path-show")).to_be_hidden()
    assert link_of(page)["stage"] == "probabilities"

    page.get_by_role("button", name="Paths").click()
    words = "<img src=x> **{token}** gives {weight}."
    stop = {"title": "<b>Mine</b>", "view": "step", "stage": "weights", "words": words}
    for stops, said in (([stop | {"view": "film"}], "The view of stop 1 is none of"), ([stop], None)):
        data = json.dumps({"headlight_path": 1, "title": "My path", "stops": stops}).encode()
        with rerun(page):
            file = {"name": "path.json", "mimeType": "application/json", "buffer": data}
            page.locator(".st-key-path_file input").set_input_files(file)
        if said:
            expect(page.get_by_text(re.compile(said))).to_be_visible()
            expect(card.locator(".path-title")).to_have_text("The answer")
    expect(card.locator(".path-title")).to_have_text("<b>Mine</b>")
    expect(card.locator(".path-words")).to_have_text(f"<img src=x> **was** gives {share}.")
    assert link_of(page)["path"]
    page.keyboard.press("Escape")
    settle(page)
