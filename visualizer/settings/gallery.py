"""Ready cases of masks, right and wrong, each with something to see."""

from __future__ import annotations

from visualizer.settings.examples import read_examples
from visualizer.settings.settings import Selection, Settings

GALLERY = read_examples(
    "gallery.toml",
    Settings(architecture="decoder", text="The cat sat on the mat and slept", weights="random"),
    Selection(view="lab", head=0, query=4, key=1),
)
"""In the order of the menu."""
