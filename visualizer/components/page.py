"""Pictures as one HTML file, which needs no server, asks nobody for anything, and works where it is opened."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path

from visualizer.components.bundle import bundled
from visualizer.components.javascript_modules import style_sheet
from visualizer.components.picture import Picture

_FOLDER = Path(__file__).parent
TEMPLATE = (_FOLDER / "page.html").read_text(encoding="utf-8")
"""The page: the browser fills it in as well, to save a picture."""

_PICTURE = """<section class="picture" data-module="{module}" data-key="{key}"><h2>{title}</h2>
<script type="text/plain">{data}</script></section>"""


def page(pictures: Sequence[tuple[str, Picture]], *, title: str) -> str:
    """The text of an HTML file with pictures, one below the other, each under a heading.

    pictures: pairs of a heading and a picture; each picture's key is another one.

    They light each other's tokens as in the app. What a person does in a picture is an event of its section:
    ``headlight:send`` or ``headlight:keep``, with ``detail`` {"key", "name", "value"}.

    Raises:
        ValueError: two pictures have one key.
    """
    keys = [picture.key for _, picture in pictures]
    if len(set(keys)) < len(keys):
        raise ValueError(f"pictures need keys of their own, not {', '.join(sorted(keys))}")
    parts = {
        "title": html.escape(title),
        "link": "",
        "style": page_style(),
        "pictures": "\n".join(_section(heading, picture) for heading, picture in pictures),
        "script": _script([picture.module for _, picture in pictures]),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], TEMPLATE)


def page_style() -> str:
    """The style sheet of the page around the pictures."""
    return style_sheet(_PAGE_ENTRY, _FOLDER)


_PAGE_ENTRY = 'import { show } from "./page.js";\n'


def _section(heading: str, picture: Picture) -> str:
    return _PICTURE.format(
        module=html.escape(picture.module),
        key=html.escape(picture.key),
        title=html.escape(heading),
        data=base64.b64encode(picture.data).decode(),
    )


def _script(modules: Sequence[str]) -> str:
    """One module that draws the pictures of a page, with the style sheets that these need."""
    return bundled(f"{_PAGE_ENTRY}show(PICTURES, COLORS);", modules, _FOLDER)
