"""The menu in which a chart is chosen, and the chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from visualizer.runs.paths import attention_modules
from visualizer.runs.run import Run
from visualizer.settings.fields import NO_CHART
from visualizer.settings.settings import FIELDS
from visualizer.stages.derivations import Cell
from visualizer.stages.head_measures import has_tokens
from visualizer.stages.registry import entry_of
from visualizer.state import state
from visualizer.state.widget_values import give_emptiable
from visualizer.views.charts import bias, head_charts, measures, positions, residual, row

CHARTS: Mapping[str, Callable[[Run, Cell], None]] = {
    "positions": positions.draw,
    "row": row.draw_bars,
    "temperature": row.draw_temperature,
    "residual": residual.draw,
    "distance": head_charts.draw_distance,
    "directions": head_charts.draw_directions,
    "measures": measures.draw,
    "bias": bias.draw,
}
"""The function that draws each chart, by its name in the link."""


def charts_at(run: Run, path: str) -> tuple[str, ...]:
    """The names of the charts that say something about a stage."""
    entry = entry_of(run, path)
    return ("residual",) if entry.on_the_stream and residual.sums_beside(run, path) else entry.charts


def charts_of_heads(run: Run) -> tuple[str, ...]:
    """The names of the charts that say something about all heads."""
    modules = attention_modules(run.trace)
    has_scores = f"{modules[0]}.masked_scores" in run.trace
    return (
        "distance",
        *(("directions", "row", "temperature") if has_scores else ()),
        *(("measures",) if has_tokens(run, modules[0]) else ()),
        *(("bias",) if any(attention.bias is not None for attention in run.attentions.values()) else ()),
    )


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
    chart = chosen if chosen in offered else None
    key = f"charts_{'_'.join(offered)}"
    with st.container(key="charts"):
        st.selectbox(
            field.label,
            offered,
            index=None,
            placeholder=field.label,
            format_func=field.choices.__getitem__,
            label_visibility="collapsed",
            key=give_emptiable(key, chart),
            on_change=state.on_change(key, lambda name: state.select(chart=name or NO_CHART)),
            width=240,
        )
    if chart:
        CHARTS[chart](run, cell)
