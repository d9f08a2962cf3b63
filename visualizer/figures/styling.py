"""The looks that all figures share: ticks that are tokens, and the tools that stand over a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from visualizer.safe_text import graphemes, plotly_safe

MOST_TICKS = 32
"""The most tokens of which an axis names every one; of more it names every so many."""

LEGEND_BELOW = {"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top"}
"""A legend that leaves a narrow chart its width."""

MARGIN = {"l": 0, "r": 8, "t": 36, "b": 0}
"""Room for the tools above; the axes take theirs by themselves."""

_LONGEST_TICK = 12


def config(name: str) -> dict[str, Any]:
    """The tools of a chart: zoom, pan, back to the whole, and saving as ``headlight-<name>.svg``."""
    return {
        "displayModeBar": True,
        "displaylogo": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"format": "svg", "filename": f"headlight-{name}"},
    }


def token_ticks(labels: Sequence[str]) -> dict[str, Any]:
    """An axis whose places 0, 1, 2, ... are tokens; of many every so many is written, with its place.

    The axis stays one of numbers: one of categories would put equal tokens in one place.
    """
    step = 1 if len(labels) <= MOST_TICKS else -(-2 * len(labels) // MOST_TICKS)  # places take room too
    places = list(range(0, len(labels), step))
    texts = [shortened(labels[place]) if step == 1 else f"{place} {shortened(labels[place])}" for place in places]
    return {"tickvals": places, "ticktext": texts}


def shortened(label: str) -> str:
    """A label short enough for a tick, and safe in Plotly."""
    characters = graphemes(label)
    return plotly_safe(label if len(characters) <= _LONGEST_TICK else f"{''.join(characters[:_LONGEST_TICK])}…")


def hover_names(labels: Sequence[str]) -> list[str]:
    """``3 “cat”`` for each token, as a hover says it."""
    return [f"{place} “{plotly_safe(label)}”" for place, label in enumerate(labels)]
