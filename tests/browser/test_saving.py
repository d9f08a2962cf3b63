"""A picture of the app as a page of its own: interactive, in one file, the same numbers, no request to anywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.pages import fresh_context, watched
from tests.reading import close_to, point_at, tooltip_numbers
from visualizer.runs.compute import compute_run
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings

MIB = 2**20


def saved_page(page: Page, path: Path, title: str) -> Path:
    """The file that a person saves of the first picture of heads."""
    heads = page.locator("[class*='st-key-attention_heads']")
    heads.locator(".saving-open").evaluate("button => button.click()")
    dialog = page.locator(".saving-dialog[open]")
    expect(dialog.locator(".saving-preview[src]")).to_be_visible()
    if title:
        dialog.get_by_label("Title").fill(title)
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Web page").click()
    download.value.save_as(path)
    return path


@pytest.mark.parametrize(
    ("tokens", "layers", "heads", "title"),
    [(["the", "<b>cat", "sat"], 2, 2, "Heads </script><b>"), ([f"w{i}" for i in range(128)], 4, 8, "")],
)
def test_a_saved_page_shows_the_same_numbers_without_a_server(
    open_app: Callable[..., Page],
    browser: Browser,
    tmp_path: Path,
    tokens: list[str],
    layers: int,
    heads: int,
    title: str,
):
    link = {"weights": "random", "text": " ".join(tokens), "n_layers": layers, "n_heads": heads, "mask": "causal"}
    app = open_app(view="heads", **link)
    file = saved_page(app, tmp_path / "heads.html", title)
    assert file.stat().st_size < 3 * MIB

    address = file.as_uri()
    with fresh_context(browser, dark=True) as context, watched(page := context.new_page(), address):
        page.goto(address)
        expect(page.locator("h1")).to_have_text(title or "A picture from Headlight")  # not of the layer shown first
        link_of_page = page.locator(".link a")
        assert "weights=random" in str(link_of_page.get_attribute("href"))
        expect(page.locator(".matrix:visible")).to_have_count(heads)
        page.get_by_role("slider", name="layer", exact=True).press("End")
        run = compute_run(fitted(Settings(**{**link, "mask": ("causal",)})))
        weights = run.trace[f"encoder.layers.{layers - 1}.self_attention.weights"].value[0, 1]
        size = len(weights)
        point_at(page.locator(".matrix:visible").nth(1), size - 1, 1, (size, size))
        (number,) = tooltip_numbers(page)
        assert number == (
            close_to(weights[-1, 1].item()) if size < 50 else pytest.approx(weights[-1, 1].item(), abs=1e-4)
        )
        expect(page.locator(".dial")).to_have_count(0)  # nothing can be computed again
