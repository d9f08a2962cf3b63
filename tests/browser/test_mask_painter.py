"""The mask painter in the app, where Streamlit keeps only the newest event while the script runs."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import link_of, panels
from tests.reading import click_cell
from visualizer.runs.compute import compute_run
from visualizer.settings.link import read_query


def test_strokes_and_choices_faster_than_the_script_are_all_kept(open_app):
    page = open_app(view="lab", text="the cat sat on a mat", mask="none", query=0, key=0)
    for column in range(6):
        click_cell(panels(page, "mask_painter").first, 3, column, (6, 6))
        page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "key=5" in url)
    painted = link_of(page)
    assert (painted["query"], painted["key"]) == ("3", "5")
    run = compute_run(read_query({name: [text] for name, text in painted.items()})[0])
    allowed = run.masks["encoder.layers.0.self_attention"].allowed
    assert (~allowed[0, 0]).nonzero().tolist() == [[3, column] for column in range(6)]
    expect(page.locator(".painted-count")).to_contain_text("6 of 36 cells blocked")
