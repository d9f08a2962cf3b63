"""Pictures of what moves by itself: they ask an address, draw what it answers, and tell once that it has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from tests.pages import fresh_context
from tests.pictures.static_page import heard, lay_out, panels, update
from tests.reading import tooltip
from visualizer.components.axis import Axis
from visualizer.components.picture import Picture
from visualizer.components.progress.element import Bar, progress
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.components.training.element import Side, training

ADDRESS = "jobs/counting"
WHERE = {"key": "sheep", "address": ADDRESS}


def counted(fraction: float, **more: str) -> Picture:
    return progress([Bar("Counting", f"Counting … {fraction:.0%}", fraction)], **{**WHERE, **more})


def answer(page: Page, answers: Sequence[Picture | int]) -> list[str]:
    """Have the address give some answers, a picture or a status each, the last again and again; those asked for."""
    asked: list[str] = []
    left: Iterator[Picture | int] = chain(answers, repeat(answers[-1]))

    def fulfil(route: Route) -> None:
        asked.append(route.request.url)
        given = next(left)
        if isinstance(given, int):
            route.fulfill(status=given)
        else:
            route.fulfill(body=given.data, content_type="application/octet-stream")

    page.route("**/jobs/*", fulfil)
    return asked


@pytest.mark.parametrize("end", [204, 404], ids=["it has ended", "the server knows nothing of it"])
def test_a_bar_follows_its_address_and_tells_once_that_it_has_ended(browser, end):
    with fresh_context(browser) as context:  # of a page that logs what a server refuses
        follows_and_tells_once(lay_out(context, [counted(0.1, address="")]), end)


def follows_and_tells_once(page: Page, end: int) -> None:
    asked = answer(page, [counted(0.5), 503, counted(0.75), end])
    bar = page.get_by_role("progressbar", name="Counting")
    expect(bar).to_have_attribute("aria-valuetext", "Counting … 10%")
    update(page, counted(0.2))
    expect(bar).to_have_attribute("aria-valuetext", "Counting … 75%")
    expect(bar).to_have_attribute("aria-valuenow", "75")
    page.wait_for_function("() => heard.length > 0")
    update(page, counted(0.8))
    expect(bar).to_have_attribute("aria-valuetext", "Counting … 80%")
    assert [name for name, _ in heard(page)] == ["ended"]
    assert len(asked) == 4


def test_what_is_asked_for_no_more_is_not_drawn(show):
    page = show([counted(0.1, address="")])
    held: list[Route] = []
    page.route("**/jobs/*", lambda route: held.append(route))
    with page.expect_request("**/jobs/*"):
        update(page, counted(0.2))
    answer(page, [counted(0.9, address="jobs/other")])
    update(page, counted(0.3, address="jobs/other"))
    bar = page.get_by_role("progressbar")
    expect(bar).to_have_attribute("aria-valuetext", "Counting … 90%")
    assert heard(page) == []


def test_a_picture_that_cannot_be_seen_asks_seldom(show):
    page = show([counted(0.1, address="")])
    page.clock.install()
    asked = answer(page, [counted(0.5)])
    page.evaluate("() => Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })")
    with page.expect_response("**/jobs/*"):
        update(page, counted(0.2))
        page.clock.run_for(2000)
    before = len(asked)
    page.clock.run_for(1200)
    assert len(asked) == before
    with page.expect_response("**/jobs/*"):
        page.clock.run_for(1200)
    assert len(asked) == before + 1


def test_bars_come_and_go_between_two_lines(show):
    bars = [Bar("the", "the: 2", 2 / 3), Bar("<b>cat</b>", "<b>cat</b>: 1", 1 / 3)]
    page = show([progress(bars, key="sheep", address="", role="meter", above="3 people", below="1 more answer")])
    assert page.get_by_role("meter").count() == 2
    expect(page.get_by_role("meter", name="<b>cat</b>")).to_have_attribute("aria-valuenow", "33")
    expect(page.get_by_text("<b>cat</b>: 1")).to_be_visible()
    expect(page.get_by_text("3 people")).to_be_visible()
    update(page, progress([], key="sheep", address=""))
    assert page.get_by_role("meter").count() == 0
    box = page.locator("[data-key=sheep] .headlight").bounding_box()
    assert box["height"] == 0, "nothing to see takes no room"


HEADS = tensor_grid(
    [Panel("weights", "head 0", np.eye(2), Axis("query", ("a", "b")), Axis("key", ("a", "b")), role="weights")],
    key="heads",
    layout="wrap",
)
SIDE = Side(
    "",
    {0: 3.0, 10: 1.5, 20: 0.25},
    {0: 0.0, 20: 1.0},
    (("100%", "of held-out texts right"), ("0.250", "loss")),
    "ba is right",
    "ab",
    (("b", True), ("x", False)),
    heads=HEADS,
)


def trained(*sides: Side, **more: object) -> Picture:
    return training(sides, n_steps=100, guessing=3.4, **more)


def test_a_training_is_drawn_while_it_runs_and_at_rest(show):
    begins = trained(address="", bar=Bar("Reverse", "Step 0 of 100", 0.0))
    page = show([begins])
    expect(page.get_by_role("progressbar", name="Reverse")).to_be_visible()
    expect(page.locator(".training")).to_be_hidden()
    update(page, trained(SIDE, bar=Bar("Reverse", "Step 20 of 100", 0.2)))
    expect(page.get_by_role("img", name="Loss (nats per token): step 0: 3.000, step 10: 1.500")).to_be_visible()
    expect(page.get_by_role("img", name="Held-out texts right: step 0: 0.0%, step 20: 100.0%")).to_be_visible()
    expect(page.get_by_text("ab →")).to_be_visible()
    expect(page.locator(".training-answer .wrong")).to_have_text("x")
    expect(panels(page, "training")).to_have_count(1)
    update(page, trained(SIDE, moment=20))
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.locator(".curve-moment")).to_have_count(2)
    expect(page.get_by_text("guessing: 3.40")).to_be_visible()


def test_the_curves_go_through_every_value_and_say_the_number_of_the_step_that_is_pointed_at(show):
    page = show([trained(replace(SIDE, losses={0: 3.0, 10: float("nan"), 20: 1.7}))])
    chart = page.locator(".curves svg").first
    dots = chart.locator("circle")
    assert dots.count() == 2, "what is no number is left out"
    line = chart.locator(".curve").get_attribute("d")
    assert line.count("M") == 2
    level = float(chart.locator(".curve-level").get_attribute("y1"))
    top, low = (float(dots.nth(i).get_attribute("cy")) for i in range(2))
    assert top - level == pytest.approx((low - level) * 0.4 / 1.7, abs=0.1), "3.0 and 1.7 below 3.4, the guess"
    box = dots.nth(1).bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 40)
    expect(tooltip(page)).to_have_text("step 20: 1.700")


def test_two_trainings_are_named_told_apart_and_one_without_numbers_says_why(show):
    diverged = replace(SIDE, name="without <b>", note="the weights diverged", heads=None)
    page = show([trained(replace(SIDE, name="with"), diverged)])
    assert page.locator(".curve-names > span").all_inner_texts() == ["with", "without <b>"] * 2
    looks = (
        page.locator(".curves")
        .first.locator(".curve")
        .evaluate_all(
            "lines => lines.map((line) => line.getAttribute('stroke') + line.getAttribute('stroke-dasharray'))"
        )
    )
    assert len(set(looks)) == 2
    expect(page.locator(".training-answer").nth(1)).to_have_text("the weights diverged")
    expect(panels(page, "training")).to_have_count(1)
    update(page, trained(SIDE))
    expect(page.get_by_role("heading", level=3)).to_have_count(0)


def test_a_curve_is_read_from_its_first_point_to_its_last(show):
    losses = {step: 3.5 - step / 500 for step in range(0, 1001, 10)}
    page = show([trained(replace(SIDE, name="Intact", losses=losses, matches={7: 0.25}))])
    first, second = (chart.get_attribute("aria-label") or "" for chart in page.locator(".curves svg").all())
    assert first.startswith("Loss (nats per token): Intact: step 0: 3.500, ")
    assert first.endswith(", step 1000: 1.500")
    assert first.count("step") == 12
    assert second == "Held-out texts right: Intact: step 7: 25.0%"
