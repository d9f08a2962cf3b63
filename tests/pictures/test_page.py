"""Pictures in one HTML file, opened without a server: drawn, pointed at, chosen from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.pages import fresh_context, watched
from tests.reading import click_cell, close_to, lit_in, point_at, tooltip_numbers
from visualizer.components.attention_heads.element import attention_heads
from visualizer.components.derivation.element import derivation
from visualizer.components.looks import Looks
from visualizer.components.page import page as page_text
from visualizer.components.picture import Picture
from visualizer.components.stage_map.element import stage_map
from visualizer.components.stage_map.model_map import model_map
from visualizer.components.tensor_grid.element import tensor_grid
from visualizer.runs.compute import compute_run
from visualizer.runs.run import Run
from visualizer.settings.settings import Settings
from visualizer.stages.derivations import Cell
from visualizer.stages.panels import blocked_cells, operand_panel, stage_panel, to_array
from visualizer.stages.registry import derive, on_map, operands_of

WEIGHTS = "encoder.layers.0.self_attention.weights"
HEARD = """() => {
  window.heard = [];
  addEventListener("headlight:send", ({ detail }) => heard.push(detail));
}"""


@pytest.fixture(scope="module")
def run() -> Run:
    return compute_run(Settings())


def pictures(run: Run) -> list[tuple[str, Picture]]:
    """The heads, a matrix, the map and a derivation of a run."""
    rows, columns = run.axes(WEIGHTS)
    blocked, names = blocked_cells(run, WEIGHTS.removesuffix(".weights"), 0)
    heads = attention_heads(
        to_array(run.trace[WEIGHTS].value),
        blocked=blocked[None],
        blocked_by=names,
        rows=rows,
        columns=columns,
        head_names=[run.names_of(run.settings.n_heads)],
        layer=0,
        head=0,
        looks=Looks(),
        key="heads",
    )
    grid = tensor_grid([stage_panel(run, WEIGHTS, head=1, batch=0)], key="grid")
    model = stage_map(model_map(on_map(run)), WEIGHTS, verdicts={}, seq=0, key="map")
    number = derive(run, Cell(WEIGHTS, batch=0, head=1, row=2, column=0))[-1]
    titles = ("Heads </script><b>", "One <matrix>", "The model", "A number")
    return list(zip(titles, (heads, grid, model, derivation(number, key="number")), strict=True))


@pytest.fixture
def page(run: Run, browser: Browser, tmp_path: Path) -> Iterator[Page]:
    file = tmp_path / "headlight.html"
    file.write_text(page_text(pictures(run), title="Headlight & <b>pictures</b>"), encoding="utf-8")
    with opened(browser, file) as page:
        yield page


@contextmanager
def opened(browser: Browser, file: Path) -> Iterator[Page]:
    """The file in a browser. It may log no error, and ask for nothing but itself."""
    with fresh_context(browser) as context:
        page = context.new_page()
        with watched(page, file.as_uri()):
            page.goto(file.as_uri())
            yield page


def test_every_picture_is_drawn_under_its_heading(page, run):
    expect(page.get_by_role("heading", level=1)).to_have_text("Headlight & <b>pictures</b>")
    expect(page.get_by_role("heading", level=2)).to_have_text(
        ["Heads </script><b>", "One <matrix>", "The model", "A number"]
    )
    expect(page.locator("[data-key=heads] .matrix:visible")).to_have_count(run.settings.n_heads)
    expect(page.locator("[data-key=grid] .matrix:visible")).to_have_count(1)
    expect(page.locator("[data-key=map] .block.current")).to_have_count(1)
    expect(page.locator("[data-key=number] .verdict")).to_contain_text("equals the model's number")
    for picture in page.locator(".matrix:visible .matrix-pixels, [data-key=number] canvas").all():
        assert picture.evaluate(_COLORS) > 2


_COLORS = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


def test_pointing_at_a_cell_names_it_and_lights_its_tokens_in_every_picture(page, run):
    weights = to_array(run.trace[WEIGHTS].value)[0]
    shape = weights.shape[1:]
    point_at(page.locator("[data-key=heads] .matrix:visible").nth(1), 2, 0, shape)
    assert tooltip_numbers(page) == close_to([weights[1, 2, 0]])
    assert lit_in(page.locator("[data-key=heads] .matrix:visible")) == [(2, 0)] * len(weights)
    assert lit_in(page.locator("[data-key=grid] .matrix:visible")) == [(2, 0)]
    page.locator("[data-key=number] .scroller").hover()
    expect(page.locator("[data-key=heads] .tooltip")).to_be_hidden()
    expect(page.locator("[data-key=number] .tooltip")).to_contain_text("token")


def test_a_click_chooses_and_tells_the_page(page, run):
    page.evaluate(HEARD)
    shape = run.trace[WEIGHTS].value.shape[-2:]
    click_cell(page.locator("[data-key=heads] .matrix:visible").nth(1), 2, 0, shape)
    click_cell(page.locator("[data-key=grid] .matrix:visible"), 1, 1, shape)
    page.locator("[data-key=map] .next").click()
    expect(page.locator("[data-key=map] .stage[aria-current=step]")).to_have_text("Context")
    expect(page.locator("[data-key=heads] .matrix-current .matrix-title")).to_contain_text("head 1")
    heard = page.evaluate("heard")
    assert [(event["key"], event["name"]) for event in heard] == [
        ("heads", "select"),
        ("grid", "select"),
        ("map", "stage"),
    ]
    assert {name: heard[0]["value"][name] for name in ("head", "query", "key")} == {"head": 1, "query": 2, "key": 0}
    assert heard[2]["value"]["path"] == WEIGHTS.replace("weights", "context")


def test_a_dark_system_makes_dark_pictures(page):
    page.emulate_media(color_scheme="dark")
    expect(page.locator("[data-key=grid] .headlight")).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="light")
    expect(page.locator("[data-key=grid] .headlight")).to_have_attribute("data-theme", "light")


def test_every_stage_is_drawn_derived_and_reached_with_the_arrow_keys(show):
    run = compute_run(Settings(architecture="decoder", text="a b a", n_layers=1, n_heads=2, d_model=8, d_ff=8))
    paths = list(run.trace)
    stages = model_map(on_map(run))
    model = stage_map(stages, paths[0], verdicts={}, seq=0, key="map")
    page = show([model, *(picture for path in paths for picture in pictures_of(run, path))])
    page.locator(".stage-map").focus()
    same = {path: stage for block in stages.blocks for stage in block.stages for path in (stage.path, *stage.also)}
    for path in paths:
        name = path.rpartition(".")[2]
        grid = page.locator(f"[data-key='grid {path}'] .matrix:visible").last
        expect(grid.locator(".matrix-subtitle")).to_contain_text(name)
        expect(page.locator(f"[data-key='number {path}'] .verdict")).to_have_text(re.compile("^equals"))
        if path == same[path].path:
            expect(page.locator(".stage-map [aria-current=step]")).to_have_attribute("data-code", same[path].label)
            page.keyboard.press("ArrowRight")
    page.wait_for_function("last => heard.at(-1)?.value.path === last", arg=paths[-1])


def pictures_of(run: Run, path: str) -> list[Picture]:
    """The inputs and the output of a stage, and how its first number came to be."""
    inputs = [operand_panel(run, operand, head=0, batch=0) for operand in operands_of(run, path)]
    grid = tensor_grid([*inputs, stage_panel(run, path, head=0, batch=0)], key=f"grid {path}")
    number = derive(run, Cell(path, batch=0, head=0, row=0, column=0))[0]
    return [grid, derivation(number, key=f"number {path}")]
