"""The charts below a picture: they wait until they are asked for, and can be clicked."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import link_of, panels, rerun
from tests.reading import click_cell, tooltip


def test_the_first_picture_loads_no_plotly_and_a_square_chooses_its_head(open_app):
    page = open_app(view="heads", n_layers=2)
    scripts = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert not [name for name in scripts if "plotly" in name.lower()]
    page.locator(".st-key-charts").get_by_role("combobox").click()
    with rerun(page):
        page.get_by_role("option", name="Measures of all heads").click()
    maps = panels(page, "chart_measures")
    expect(maps.first).to_be_visible()
    assert link_of(page)["chart"] == "measures"
    with rerun(page):
        click_cell(maps.first, 1, 1, (2, 4))
    assert (link_of(page)["layer"], link_of(page)["head"]) == ("1", "1")
    expect(tooltip(page)).to_contain_text("layer 1 · head 1")
    expect(page.locator(".layer-text")).to_have_text("Layer 1")
    expect(maps.first).to_be_visible()
