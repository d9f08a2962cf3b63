"""Step through: the map of the model, and one stage of it explained, drawn, checked and derived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from headlight.masks.faults import FAULTS
from model.texts import texts_of
from visualizer.colors import ROLES
from visualizer.components.axis import Axis
from visualizer.components.derivation.element import derivation
from visualizer.components.events import whole_number_in
from visualizer.components.stage_map.element import parse_stage, stage_map
from visualizer.components.tensor_grid.element import tensor_grid
from visualizer.components.words.element import words
from visualizer.guide.walking import light_at
from visualizer.pictures.step import (
    StepPicture,
    equation,
    every_head,
    every_part,
    first_drawn,
    map_of,
    place_of,
)
from visualizer.routes.address import MOST_IN_MESSAGE, picture_address
from visualizer.runs.head_notes import blocking, head_note
from visualizer.runs.operations_run import OperationStage
from visualizer.runs.paths import layer_of, with_layer, without_layer
from visualizer.runs.recorded import token_of
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.fields import TRAINED
from visualizer.settings.settings import Depth, Selection
from visualizer.shares import part_of, percent
from visualizer.stages.derivations import Cell
from visualizer.stages.informative import cell_at, largest_score
from visualizer.stages.operands import Operand
from visualizer.stages.operations import is_attention
from visualizer.stages.panels import is_table, operand_panel, part_around, rows_of_table, stage_panel, to_array
from visualizer.stages.registry import (
    checks,
    derive,
    entry_of,
    explanation_in_pieces,
    facts_of,
    formula_of,
    operands_of,
)
from visualizer.state import state, widgets
from visualizer.state.expectations import is_covered
from visualizer.state.places import go_to, look_at, show_heads
from visualizer.state.theme import theme
from visualizer.views.charts.section import charts, charts_at
from visualizer.views.citation import verdicts
from visualizer.views.computation import computation
from visualizer.views.predict.ask import ask_cells, ask_token, asked_bar, is_revealed
from visualizer.views.predict.questions import OF_TOKENS, TokenQuestion, asked_at, gives_away, result_at
from visualizer.views.save_run import save_run
from visualizer.views.separate_heads import separate_heads

say = texts_of(__name__)

_SECOND_TEXT = 112
"""The pixels that the tokens and the track of a second text take above the picture."""

MOST_STAGES = 256
"""The most stages of a map that comes with the message that mounts it."""

MOST_HEADS = 64
"""The most heads that are drawn below each other."""

N_LIKELY = 10
"""The number of most likely tokens that are drawn."""


def render(run: Run, selection: Selection) -> None:
    """Draw the view."""
    path = with_layer(run.trace, selection.stage, selection.layer)
    cell = cell_at(run, path, selection)
    light = light_at(run, selection)
    _map(run, path, selection, with_stages=not light)
    if light:  # the card says it, and checks, shapes and code step aside
        _picture(run, cell, selection)
        _derivation(run, cell)
        _every_head(run, cell, selection)
        return
    with st.container(key="explained"):
        _introduction(run, path, selection.depth)
        if not run.trace[path].value.numel():
            st.caption(say("no_numbers"))
            return
        if selection.hidden and _is_covered(run, cell, selection):
            return
        if not (selection.hidden and path in OF_TOKENS):  # other rows are questions of their own
            _picture(run, cell, selection)
            _window(run, cell)
        if any(each.path == path for each in run.interventions):
            st.caption(say("edited"))
        elif run.settings.fault in FAULTS and _is_no_formula(run, path):  # a recording knows no such facts
            st.caption(say("broken"))
        if not selection.hidden and (said := largest_score(run, cell)):
            st.caption(markdown_safe(said))
    _head_note(run, cell)
    _derivation(run, cell)
    computation(run, cell, selection.depth, with_facts=not selection.hidden)
    charts(run, cell, () if selection.hidden else charts_at(run, path), selection.chart)
    if not selection.hidden:  # other heads are questions of their own
        _every_part(run, cell, selection)
        _every_head(run, cell, selection)
        separate_heads(run, path, batch=cell.batch)
    if path == "probabilities" if run.seen is None else run.trace[path].dims[-1][0] == "V":
        _likely_tokens(run, cell)
    if not selection.hidden:
        _numbers(run, cell, selection)
        save_run(run, path)


def _map(run: Run, path: str, selection: Selection, *, with_stages: bool) -> None:
    model, address = map_of(run).model, None
    if len(run.trace) > MOST_STAGES:
        address = picture_address("map", run.settings, selection, recorded=token_of(run))

    def move(event: object) -> None:
        if chosen := parse_stage(event, model):
            go_to(run, chosen)

    key, shown = "stage_map", address or model
    mount(
        stage_map(shown, path, verdicts=verdicts(run), with_stages=with_stages, seq=state.last_seq(key), key=key),
        stage=move,
    )


def _is_covered(run: Run, cell: Cell, selection: Selection) -> bool:
    """Ask for what is expected of the stage; whether its result is still covered."""
    path = cell.path
    if path in OF_TOKENS:
        shares = to_array(run.trace["probabilities"].value[cell.batch, cell.row])
        question = TokenQuestion(
            result=(path, cell.batch, cell.row),
            labels=tuple(run.vocabulary),
            shares=shares,
            offered=tuple(range(len(shares))),
        )
        asked_bar(question, run.subject)
        return ask_token(question, run.subject, likely_of_what(run, cell.row))
    asked = asked_at(run, path, selection, head=cell.head, batch=cell.batch)
    inputs = [operand for operand in operands_of(run, path) if not operand.is_parameter]
    shown_with = [result_at(run, operand.source, head=cell.head, batch=cell.batch) for operand in inputs]
    asked_bar(asked.question, run.subject, kinds=asked.kinds, places=asked.places, shown_with=shown_with)
    if not gives_away(path) and not is_revealed(asked.question, run.subject):
        _inputs(run, cell)
    return ask_cells(asked.question, run.subject)


def _inputs(run: Run, cell: Cell) -> None:
    """Draw the inputs of the stage, without its result and without what is itself asked about elsewhere."""
    inputs = operands_of(run, cell.path)
    hidden = [operand for operand in inputs if _is_asked_elsewhere(run, operand, cell)]
    shown = [operand for operand in inputs if operand not in hidden]
    panels = [operand_panel(run, operand, head=cell.head, batch=cell.batch) for operand in shown]
    for operand in hidden:
        st.caption(say("covered", title=entry_of(run, operand.source).title))
    if panels:
        mount(tensor_grid([replace(panel, hint="") for panel in panels], key="inputs"))


def _is_asked_elsewhere(run: Run, operand: Operand, cell: Cell) -> bool:
    if operand.is_parameter:
        return False
    return is_covered(run.subject, result_at(run, operand.source, head=cell.head, batch=cell.batch))


def _picture(run: Run, cell: Cell, selection: Selection) -> None:
    """The inputs and the output of the stage, side by side; a path lights a part of the output."""
    picture = equation(run, place_of(cell))
    first_row, first_column = first_drawn(picture.panels[-1])

    def select(event: object) -> None:
        index = min(state.index_in(event, "index"), len(picture.sources) - 1)
        source = picture.sources[index]
        if not source.path:
            return
        go_to(run, source.path)
        row, column = state.index_in(event, "row"), state.index_in(event, "column")
        if source.is_whole:
            before = first_drawn(picture.panels[index])
            row, column = row + before[0], column + before[1]
            look_at(run, *((column, row) if source.transposed else (row, column)))

    key = "picture"
    mount(
        tensor_grid(
            _address("step", run, selection, cell, picture) or picture.panels,
            selected=(picture.panels[-1].name, cell.row - first_row, cell.column - first_column),
            light=light_at(run, selection),
            looked_up=_looked_up(run, cell),
            above=_SECOND_TEXT if "target" in run.tokens else 0,
            key=key,
        ),
        select=select,
    )


def _looked_up(run: Run, cell: Cell) -> int:
    """The row of the embedding table, among those drawn, that the token is looked up in; -1 where there is none."""
    for operand in operands_of(run, cell.path):
        if is_table(run, operand) and run.axes(cell.path)[0].sequence:
            return rows_of_table(run, operand).index(run.token_id(cell.path, cell.row))
    return -1


def _address(name: str, run: Run, selection: Selection, cell: Cell, picture: StepPicture) -> str | None:
    """Return the address of a picture; None where it has none, or its few numbers come with the message."""
    if picture.n_numbers <= MOST_IN_MESSAGE:
        return None
    if run.seen is None:
        stage, layer = without_layer(cell.path), layer_of(cell.path)
        shown = replace(selection, stage=stage, layer=layer, head=cell.head)
        return picture_address(name, run.settings, shown)
    looked_at = replace(selection, stage=cell.path, layer=0, batch=cell.batch)
    at = f"{cell.row},{cell.column}"
    return picture_address(name, run.settings, looked_at, at=at, recorded=token_of(run))


def _introduction(run: Run, path: str, depth: Depth) -> None:
    """The stage in words, at the depth chosen, and in a formula: side by side, to be low."""
    title, text, formula = st.columns([3, 8, 5], gap="medium", vertical_alignment="center")
    with title, st.container(key="introduction"):
        heading = markdown_safe(entry_of(run, path).title).replace("_", "_\u200b")  # where a long name breaks
        st.markdown(f"## {heading}")
    with text:
        mount(words([explanation_in_pieces(run, path, depth)], look="prose", key="stage_text"))
    with formula, st.container(key="formula"):
        if latex := formula_of(run, path):
            st.latex(latex)
        _to_the_heads(run, path)


def _to_the_heads(run: Run, path: str) -> None:
    """The way to the heads of an attention of another model that is one call."""
    stage, seen = run.trace[path], run.seen
    if seen is None or not isinstance(stage, OperationStage) or not is_attention(stage):
        return
    attention = next((one.path for one in seen.trace if one.module == stage.module_path), None)
    if attention is not None:
        st.button(
            say("see_heads"),
            icon=":material/grid_view:",
            key="to_heads",
            on_click=state.callback(show_heads, seen, attention),
            type="tertiary",
        )


def _window(run: Run, cell: Cell) -> None:
    """Choose the part that is drawn of a tensor of another model that is too large."""
    value = run.trace[cell.path].value
    n_rows, n_columns = (1, 1, *value.shape)[-2:]
    part = part_around(run, value.shape, (cell.row, cell.column))
    rows, columns = range(n_rows)[part.rows], range(n_columns)[part.columns]
    if len(rows) == n_rows and len(columns) == n_columns:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if len(rows) < n_rows:
            _move(say("row"), n_rows, cell.row, lambda row: look_at(run, row, cell.column))
        if len(columns) < n_columns:
            _move(say("column"), n_columns, cell.column, lambda column: look_at(run, cell.row, column))
        st.caption(say("drawn", rows=part_of(n_rows, rows), columns=part_of(n_columns, columns)))


def _move(label: str, size: int, place: int, look: Callable[[int], None]) -> None:
    st.number_input(label, 0, size - 1, place, width=140, **widgets.following(f"drawn_{label}", place, look))


def _is_no_formula(run: Run, path: str) -> bool:
    """True if a mask bug gives a stage other numbers than its formula does."""
    is_masked = run.trace[path].name in ("masked_scores", "weights")
    return is_masked and not facts_of(run, path).holding.isdisjoint({"scores_zeroed", "masked_late"})


def _head_note(run: Run, cell: Cell) -> None:
    """Say what keeps the head from doing what its name says, where something does."""
    module = run.trace[cell.path].module_path
    if module not in run.masks or run.is_changed(module):
        return
    name = run.names_of(cell.head + 1)[cell.head]
    note = head_note(
        name,
        blocking(run.mask_of(module)),
        is_cross=run.is_cross_attention(module),
        two_vocabularies=run.settings.has_two_vocabularies,
    )
    if note:
        st.caption(f"{run.head_label(cell.head)}: {note}")


def _every_part(run: Run, cell: Cell, selection: Selection) -> None:
    """Draw the parts that lie side by side in a fused projection."""
    picture = every_part(run, place_of(cell))
    panels = picture.panels
    if not panels:
        return
    module = run.trace[cell.path].module_path

    def select(event: object) -> None:
        panel = panels[min(state.index_in(event, "index"), len(panels) - 1)]
        go_to(run, f"{module}.{panel.name}")
        if (row := whole_number_in(event, "row")) is not None:
            state.select_cell(row, state.index_in(event, "column"))

    key = "every_part"
    st.markdown(say("parts"))
    shown = _address("step_parts", run, selection, cell, picture) or panels
    mount(tensor_grid(shown, layout="wrap", key=key), select=select)


def _every_head(run: Run, cell: Cell, selection: Selection) -> None:
    if not 1 < (run.n_heads(cell.path) or 1) <= MOST_HEADS:
        return
    picture = every_head(run, place_of(cell))
    first_row, first_column = first_drawn(picture.panels[0])

    def select(event: object) -> None:
        state.select(head=state.index_in(event, "index"))
        if (row := whole_number_in(event, "row")) is not None:  # a title was chosen otherwise, and the cell stays
            look_at(run, row + first_row, state.index_in(event, "column") + first_column)

    key = "every_head"
    st.markdown(say("heads"))
    mount(
        tensor_grid(
            _address("step_heads", run, selection, cell, picture) or picture.panels,
            selected=(picture.panels[0].name, cell.row - first_row, cell.column - first_column),
            layout="wrap",
            key=key,
        ),
        select=select,
    )


def _likely_tokens(run: Run, cell: Cell) -> None:
    from visualizer.figures.likely_tokens import likely_tokens  # brings Plotly, which only this stage needs
    from visualizer.figures.styling import config

    stage = run.trace[cell.path]
    row = stage.value[cell.index(stage.value.dim())[:-1]].float()
    if isinstance(stage, OperationStage) and stage.operation.operation != "softmax":
        row = row.softmax(-1)
    best = row.topk(min(N_LIKELY, len(row)))
    tokens = [run.vocabulary[token_id] for token_id in best.indices.tolist()]
    st.markdown(f"### {likely_of_what(run, cell.row)}")
    figure = likely_tokens(tokens, best.values.tolist(), color=ROLES[theme()]["neutral"])
    pairs = zip(tokens, best.values.tolist(), strict=True)
    alt = say("likely", tokens=", ".join(f"{token} {percent(share, 1)}" for token, share in pairs))
    st.plotly_chart(figure, key="likely_tokens", config=config("likely-tokens"), alt=alt)


def likely_of_what(run: Run, row: int) -> str:
    """The subject of a row's probabilities: the token after it or, in an encoder, an answer in its place."""
    sequence = run.tokens["source" if run.settings.architecture != "encoder-decoder" else "target"]
    label = markdown_safe(sequence.labels[row])
    if run.settings.architecture != "encoder":
        return say("next", label=label, row=row)
    is_trained = run.settings.weights == TRAINED
    return say("answer_at", label=label, row=row) if is_trained else say("likely_at", label=label, row=row)


def _derivation(run: Run, cell: Cell) -> None:
    st.markdown(say("derivation"))
    found = derive(run, cell)
    for i, content in enumerate(found):
        mount(derivation(content, key=f"derivation_{i}"))
    if not found:
        of_edit = any(check.holds is None for check in checks(run, cell.path)) and bool(run.interventions)
        is_edited = of_edit or any(each.path == cell.path for each in run.interventions)
        st.caption(say("not_derived") if is_edited else say("not_derived_here"))


def _numbers(run: Run, cell: Cell, selection: Selection) -> None:
    widgets.switch("numbers")
    if not selection.numbers:
        return
    panel = stage_panel(run, cell.path, head=cell.head, batch=cell.batch, at=(cell.row, cell.column))
    rows, columns = panel.rows, panel.columns
    table = {rows.name: _unique(rows)} | dict(zip(_unique(columns), panel.array.T, strict=True))
    st.dataframe(table, hide_index=True)


def _unique(axis: Axis) -> list[str]:
    """Labels with their position, since a table's rows and columns need names of their own."""
    numbers = axis.numbers or range(len(axis.labels))
    return [label if label == str(i) else f"{i} {label}" for i, label in zip(numbers, axis.labels, strict=True)]
