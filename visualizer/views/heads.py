"""Heads: all heads of an attention, in every layer, as grids or as lines between tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from model.analysis.metrics import METRICS
from model.texts import texts_of
from visualizer.guide.walking import light_at
from visualizer.pictures.heads import draw_heads, heads_picture, modules_of
from visualizer.routes.address import MOST_EXACT, MOST_WRITTEN, picture_address
from visualizer.runs.paths import attention_modules
from visualizer.runs.recorded import token_of
from visualizer.runs.run import Run
from visualizer.server.mount import mount
from visualizer.settings.dials import before_turning, dials_of, turned
from visualizer.settings.looks import looks_in, looks_of
from visualizer.settings.settings import Selection
from visualizer.stages.attention import agreement
from visualizer.stages.check_line import check_line
from visualizer.stages.derivations import Cell
from visualizer.stages.head_measures import applying, measure_heads
from visualizer.state import state, widgets
from visualizer.views.attention_picker import attention_kind
from visualizer.views.charts.section import charts, charts_of_heads
from visualizer.views.predict.ask import ask_cells, asked_bar
from visualizer.views.predict.questions import asked_of_layers
from visualizer.views.save_run import save_run

say = texts_of(__name__)


def render(run: Run, selection: Selection) -> None:
    """Draw the view."""
    modules = attention_modules(run.trace)
    if not modules:
        st.info(say("no_attention"))
        return
    light = light_at(run, selection)
    kind = attention_kind(modules, selection.stage, is_chosen=not light)
    if selection.hidden:
        _predict(run, kind, selection)
        return
    picture = heads_picture(run, kind, selection)
    same = list(picture.modules)
    rows, columns = picture.rows, picture.columns
    n_heads = picture.n_heads
    numbers = picture.n_weights
    layer = min(selection.layer, len(same) - 1)
    shown = replace(selection, stage=f"{kind}.weights", layer=layer)
    is_large = len(rows.labels) * len(columns.labels) > MOST_WRITTEN
    for_colors = is_large and numbers > MOST_EXACT and selection.heads.drawn != "lines"  # which have a least weight
    recorded = token_of(run)
    address = picture_address("heads", run.settings, shown, numbers, for_colors=for_colors, recorded=recorded)
    sizes = (len(rows.labels), len(columns.labels))
    dials = dials_of(run.settings, kind, *sizes, asked_width=selection.asked_width)
    before = before_turning(run.settings, shown, dials)
    unturned = picture_address("heads", *before, numbers, for_colors=is_large)

    def show(event: object) -> None:
        layer, head = state.index_in(event, "layer"), state.index_in(event, "head")
        state.select(layer=layer, head=head, **looks_in(event))
        if changes := turned(event, dials):
            state.change(**changes)

    def choose_cell(event: object) -> None:
        show(event)
        state.select_cell(state.index_in(event, "query"), state.index_in(event, "key"))

    key = f"attention_heads_{kind.replace('.', '_')}"
    mount(
        draw_heads(
            picture,
            selection,
            address=address,
            query=min(selection.query, len(rows.labels) - 1),
            key_index=min(selection.key, len(columns.labels) - 1),
            looks=looks_of(selection),
            key=key,
            seq=state.last_seq(key),
            dials=dials,
            dial_address=unturned or "",
            light=light,
        ),
        select=choose_cell,
        shown=show,
    )
    if light:  # the card says what is seen
        return
    st.caption(say("agreement", layer=layer, check=check_line(agreement(run, same[layer]))))
    cell = Cell(
        f"{same[layer]}.weights",
        batch=min(selection.batch, run.batch_size(f"{same[0]}.weights") - 1),
        head=min(selection.head, n_heads - 1),
        row=min(selection.query, len(rows.labels) - 1),
        column=min(selection.key, len(columns.labels) - 1),
    )
    offered = charts_of_heads(run)
    charts(run, cell, offered, selection.chart)
    if selection.chart == "measures" and "measures" in offered:
        _measures(run, same)
    save_run(run, f"{same[layer]}.weights")


def _predict(run: Run, kind: str, selection: Selection) -> None:
    """Ask for what is expected of one head; the others stay covered when it is revealed."""
    asked = asked_of_layers(run, modules_of(run, kind), selection)
    asked_bar(asked.question, run.subject, kinds=asked.kinds, places=asked.places)
    ask_cells(asked.question, run.subject)


def _measures(run: Run, modules: list[str]) -> None:
    """A table of what each head does, sortable by each measure; choosing a line shows the head."""
    found = measure_heads(run, modules)
    names = run.names_of(1 + max(one.head for one in found))
    table: dict[str, list[Any]] = {
        say("layer"): [one.layer for one in found],
        say("head"): [one.head for one in found],
    }
    if any(names):
        table[say("built_to")] = [names[one.head] for one in found]
    shown = {name: METRICS[name] for name in applying(found)}
    table |= {metric.title: [one.values[name] for one in found] for name, metric in shown.items()}
    key = f"measures_{modules[0]}_{len(modules)}"

    def choose(event: Any) -> None:  # noqa: ANN401 - Streamlit's description of a selection
        if rows := event.selection.rows:
            state.show_head(found[rows[0]].layer, found[rows[0]].head)

    st.caption(say("measures_of_task") if "expected_token" in shown else say("measures"))
    widgets.table(
        table,
        column_config={
            metric.title: st.column_config.NumberColumn(format="%.3f", help=say("mean", formula=metric.formula))
            for metric in shown.values()
        },
        selection_mode="single-row",
        on_select=state.on_change(key, choose),
        key=key,
    )
