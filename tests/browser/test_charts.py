"""The charts below a picture: they wait until they are asked for, and can be clicked."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import link_of, rerun


def test_the_first_picture_loads_no_plotly_and_a_square_chooses_its_head(open_app):
    page = open_app(view="heads", n_layers=2)
    scripts = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert not [name for name in scripts if "plotly" in name.lower()]
    page.locator(".st-key-charts").get_by_role("combobox").click()
    with rerun(page):
        page.get_by_role("option", name="Measures of all heads").click()
    chart = page.locator(".st-key-chart_measures_0 .js-plotly-plot")
    expect(chart).to_be_visible()
    assert link_of(page)["chart"] == "measures"
    square = chart.locator(".subplot.xy .scatterlayer .trace").nth(1).locator(".points path").nth(5)
    square.scroll_into_view_if_needed()
    box = square.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(chart.locator(".hovertext")).to_contain_text("layer 1, head 1")
    with rerun(page):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert (link_of(page)["layer"], link_of(page)["head"]) == ("1", "1")
    expect(page.locator(".layer-text")).to_have_text("Layer 1")
    expect(chart).to_be_visible()
    ring = chart.evaluate("plot => [plot.data[0].x[0], plot.data[0].y[0]]")
    assert ring == [1, 1]
