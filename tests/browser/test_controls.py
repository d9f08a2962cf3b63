"""The controls that ask for attention at once on a screen of 1280 by 720, and the picture that is in sight."""

from __future__ import annotations

from tests.browser.headlight_page import choose_view, rerun
from tests.reading import controls_in_sight
from visualizer.settings.examples import OPENING
from visualizer.settings.link import write_query
from visualizer.settings.settings import FIELDS

MOST = {"opening": 25, "path": 15, "step": 36, "heads": 35, "compare": 28, "generate": 35, "lab": 40}


def test_no_screen_asks_for_more_than_a_person_can_take_in(open_app):
    opening = write_query(OPENING.settings, OPENING.selection)
    page = open_app(height=720, **opening)
    found = {"opening": controls_in_sight(page)}
    with rerun(page, "path_card"):
        page.get_by_role("button", name="Start here").click()
    found["path"] = controls_in_sight(page)
    while (onward := page.locator(".path-next")).is_visible():
        with rerun(page, "path_card"):
            onward.click()
        found["path"] = max(found["path"], controls_in_sight(page), key=len)
    page = open_app(height=720, **opening | {"view": "compare"})
    assert page.locator(".compare-head .matrix-plot").first.bounding_box()["y"] < 300
    for view in ("compare", "step", "heads", "generate", "lab"):
        if view != "compare":
            choose_view(page, FIELDS["view"].choices[view])
        found[view] = controls_in_sight(page)
    too_many = {screen: (len(names), names) for screen, names in found.items() if len(names) > MOST[screen]}
    assert not too_many, {screen: len(names) for screen, names in found.items()}
