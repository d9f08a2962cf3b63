"""Pictures as one HTML file, which needs no server, asks nobody for anything, and works where it is opened."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from visualizer.components.bundle import bundled
from visualizer.components.modules import style_sheet
from visualizer.components.picture import Picture

_FOLDER = Path(__file__).parent
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<h1>{title}</h1>
{pictures}
<script type="module">
{script}
</script>
</body>
</html>
"""
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
    return _PAGE.format(
        title=html.escape(title),
        style=style_sheet(_PAGE_ENTRY, _FOLDER),
        pictures="\n".join(_section(heading, picture) for heading, picture in pictures),
        script=_script([picture.module for _, picture in pictures]),
    )


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
