"""The row in which a chart is chosen, and the chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from visualizer import state
from visualizer.charts import positions, row
from visualizer.derivations import Cell
from visualizer.run import Run
from visualizer.settings import FIELDS, NO_CHART

CHARTS: Mapping[str, Callable[[Run, Cell], None]] = {
    "positions": positions.draw,
    "row": row.draw_bars,
    "temperature": row.draw_temperature,
}
"""What draws each chart, by its name in the link."""

_AT_STAGES: Mapping[str, tuple[str, ...]] = {
    "positional_encoding": ("positions",),
    **dict.fromkeys(("scores", "scaled_scores", "mask", "masked_scores", "weights"), ("row", "temperature")),
}


def charts_at(run: Run, path: str) -> tuple[str, ...]:
    """The names of the charts that say something about a stage."""
    return _AT_STAGES.get(run.trace[path].name, ())


def charts(run: Run, cell: Cell, offered: Sequence[str], chosen: str) -> None:
    """Offer some charts and draw the chosen one, if it is among them.

    Args:
        run: what is looked at.
        cell: the selected number.
        offered: names of charts.
        chosen: the name of one, or ``NO_CHART``.
    """
    if not offered:
        return
    field = FIELDS["chart"]
    drawn = chosen if chosen in offered else None
    key = f"charts_{'_'.join(offered)}"
    state.fill(key, drawn)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="charts"):
        st.caption(field.label, width="content")
        st.pills(
            field.label,
            offered,
            format_func=field.choices.__getitem__,
            label_visibility="collapsed",
            key=key,
            on_change=state.on_change(key, lambda name: state.select(chart=name or NO_CHART)),
        )
    if drawn:
        CHARTS[drawn](run, cell)
