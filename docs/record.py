"""Record the moving picture of the README: the opening, token after token, and then the other views.

python -m docs.record
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Page

from tests.browser.conftest import APP, load, served
from tests.browser.headlight_page import PROBE, choose_view, settle
from tests.pages import chromium, fresh_context
from visualizer.settings.examples import OPENING
from visualizer.settings.link import write_query

FILE = Path(__file__).parents[1] / ".github" / "headlight.webp"
SIZE = (960, 540)
MILLISECONDS = {"token": 700, "view": 2200}


def main() -> None:
    """Write the file."""
    frames: list[tuple[Image.Image, int]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        served(APP, Path(folder) / "log.txt") as address,
        chromium() as browser,
        fresh_context(browser, height=720) as context,
    ):
        context.add_init_script(PROBE)
        page = context.new_page()
        load(page, f"{address}/?{urlencode(write_query(OPENING.settings, OPENING.selection) | {'query': '2'})}")
        for _ in range(8):
            frames.append((seen(page), MILLISECONDS["token"]))
            page.keyboard.press("ArrowRight")
            settle(page)
        frames[-1] = (frames[-1][0], MILLISECONDS["view"])
        for view in ("Step through", "Heads", "Compare", "Generate"):
            choose_view(page, view)
            frames.append((seen(page), MILLISECONDS["view"]))
    (first, _), others = frames[0], [frame for frame, _ in frames[1:]]
    first.save(FILE, save_all=True, append_images=others, duration=[each for _, each in frames], loop=0, quality=80)


def seen(page: Page) -> Image.Image:
    """Return what is on the screen."""
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)


if __name__ == "__main__":
    main()
