"""Pictures that a notebook shows: interactive in a frame of their own, and an image where scripts do not run."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headlight.attentions import Attention
from headlight.inputs import Inputs
from headlight.notebook import images_of
from visualizer.components.page import page
from visualizer.components.picture import Picture

_FRAME = (
    '<iframe srcdoc="{page}" style="display:block;width:100%;height:{height}px;border:0" title="{title}"></iframe>'
    '<div class="headlight-image">{image}</div>'
)
_HEIGHT = 560


@dataclass(frozen=True, eq=False)
class Shown:
    """Some pictures, each under a heading.

    Attributes:
        title: what they are called; "" for nothing.
        pictures: pairs of a heading and a picture.
        attentions: what is drawn as images where scripts do not run.
        tokens: the text of each token of those images.
    """

    title: str
    pictures: Sequence[tuple[str, Picture]]
    attentions: Sequence[Attention]
    tokens: Sequence[str] = ()

    def __repr__(self) -> str:
        return f"<Headlight: {', '.join(heading or picture.key for heading, picture in self.pictures)}>"

    @property
    def page(self) -> str:
        """The pictures as an HTML file that needs nothing else."""
        return page(self.pictures, title=self.title)

    def save(self, path: str | Path) -> None:
        """Write them into an HTML file."""
        Path(path).write_text(self.page, encoding="utf-8")

    def _repr_html_(self) -> str:
        image = images_of(self.attentions, Inputs(), self.tokens)
        title = html.escape(self.title or "Headlight", quote=True)
        return _FRAME.format(page=html.escape(self.page, quote=True), height=_HEIGHT, title=title, image=image)
