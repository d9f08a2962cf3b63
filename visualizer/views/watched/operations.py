"""Step through any model: every operation in its modules, and one of them with its inputs, checked and derived."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import streamlit as st
from torch import Tensor

from headlight.patterns import Folded
from headlight.stages import Stage
from model.texts import texts_of
from visualizer.components.derivation import derivation as derivation_picture
from visualizer.components.module_tree.element import CalledOperation, KnownStep, module_tree
from visualizer.components.tensor_grid.element import tensor_grid
from visualizer.runs.seen import kind_of
from visualizer.runs.watched import WatchedRun, in_bytes
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.server.mount import mount
from visualizer.stages import watched
from visualizer.stages.check_line import check_line
from visualizer.stages.checks import Check, summarize
from visualizer.state import state, widgets
from visualizer.state.state import Choices

say = texts_of(__name__)


@dataclass(frozen=True)
class _Place:
    """A number of a stage: the sequence and head, and the row and column of what is drawn of them."""

    item: int
    head: int
    row: int
    column: int


def render(run: WatchedRun, choices: Choices) -> None:
    """Draw the operations, and the one that is chosen, or the known step that several of them are."""
    stages, steps = run.trace.stages, run.trace.patterns
    paths = [*stages, *steps]
    path = choices.watched.watched_stage if choices.watched.watched_stage in paths else paths[0]
    _tree(run, paths, paths.index(path))
    folded = steps.get(path)
    stage = stages[path] if folded is None else stages[folded.stages[-1]]
    place = _place(run, stage, choices)
    _introduction(run, stage, folded)
    if folded is None:
        _picture(run, stage, place)
    else:
        _picture_of_step(run, folded, stage, place)
    _window(stage.value, run, place)
    _derivation(run, stage, place, folded)
    _every_head(run, stage, place)


def _tree(run: WatchedRun, paths: list[str], current: int) -> None:
    called, steps = run.once("chips", lambda: _chips(run))

    def go(event: object) -> None:
        state.watch(watched_stage=paths[min(state.index_in(event, "index"), len(paths) - 1)])

    key = "watched_tree"
    mount(module_tree(called, current, steps=steps, seq=state.last_seq(key), key=key), stage=go)


def _chips(run: WatchedRun) -> tuple[list[CalledOperation], list[KnownStep]]:
    """Every operation, and every step that is several of them."""
    stages = run.trace.stages
    places = {path: place for place, path in enumerate(stages)}
    called = [_called(stage.module, watched.label_of(stage), stage) for stage in stages.values()]
    steps = [
        KnownStep(
            _called(folded.module, watched.label_of_step(folded), stages[folded.stages[-1]]),
            tuple(places[path] for path in folded.stages),
        )
        for folded in run.trace.patterns.values()
    ]
    return called, steps


def _called(module: str, label: str, stage: Stage) -> CalledOperation:
    """The chip of an operation, or of a step that ends with it."""
    return CalledOperation(
        visible_whole(module) if module else "",
        visible_whole(label),
        watched.role_of(stage.operation),
        watched.shape_of(stage),
    )


def _place(run: WatchedRun, stage: Stage, choices: Choices) -> _Place:
    """The number that is chosen, or the nearest one that the stage has."""
    chosen, seen = choices.watched, choices.selection
    place = _Place(seen.batch, seen.head, chosen.watched_row, chosen.watched_column)
    if stage.value is None or not stage.value.numel():
        return place
    sheet = watched.sheet_of(run, stage.value, item=place.item, head=place.head)
    n_rows, n_columns = watched.sizes_of_sheet(stage.value, sheet)
    return _Place(place.item, place.head, min(place.row, n_rows - 1), min(place.column, n_columns - 1))


def _introduction(run: WatchedRun, stage: Stage, folded: Folded | None) -> None:
    """Say what it is, what it was computed from, and what holds of its numbers."""
    said, facts = st.columns([5, 3], gap="medium")
    with said:
        if folded is not None:
            _known_step(folded)
        else:
            st.markdown(f"#### {markdown_safe(_title(stage))}")
            st.caption(markdown_safe(watched.told(stage)))
        if stage.operation in (*watched.ATTENTIONS, "softmax"):
            _to_the_heads(run, stage)
    with facts:
        if stage.value is None:
            st.caption(say("overwritten"))
            return
        if not stage.value.is_complex():
            summary = run.once(("summary", stage.path), partial(summarize, stage.value))
            st.markdown(say("range", least=summary.least, greatest=summary.greatest, mean=summary.mean))
        kind = str(stage.value.dtype).removeprefix("torch.")
        st.caption(f"{watched.shape_of(stage)} · {kind} · {in_bytes(stage.value.nbytes)}")
        check = _check(run, stage) if folded is None else watched.check_of_step(folded)
        if check is not None:
            st.caption(check_line(check))


def _check(run: WatchedRun, stage: Stage) -> Check | None:
    return run.once(("check", stage.path), lambda: watched.check(run, stage))


def _known_step(folded: Folded) -> None:
    """The title, the formula and the source of operations that are one step."""
    st.markdown(f"#### {folded.pattern.title}")
    numbers = watched.numbers_of_step(folded)
    st.latex(rf"{folded.formula} \qquad {numbers}" if numbers else folded.formula)
    told = markdown_safe(watched.told_of_step(folded))
    st.caption(say("step", told=told, source=folded.pattern.source))


def _title(stage: Stage) -> str:
    return watched.label_of(stage).replace("_", " ").capitalize()


def _to_the_heads(run: WatchedRun, stage: Stage) -> None:
    """The way to the heads of an attention that is one call."""
    inside = [
        path for path, attention in zip(run.trace.paths, run.trace, strict=True) if attention.module == stage.module
    ]
    if inside:
        st.button(
            say("see_heads"),
            icon=":material/grid_view:",
            key="watched_to_heads",
            on_click=state.callback(show_heads, run, inside[0]),
            type="tertiary",
        )


def show_heads(run: WatchedRun, path: str, **places: int) -> None:
    """Show an attention in Heads, as a callback does: in a recording by its path, in a checkpoint by its layer."""
    attention = run.trace[path]
    architecture = state.chosen().settings.architecture
    layer = run.kind_of(attention).index(attention)
    state.watch(watched_attention=path)
    state.select(view="heads", stage=f"{kind_of(attention, architecture)}.weights", layer=layer, **places)


def _picture(run: WatchedRun, stage: Stage, place: _Place) -> None:
    """The inputs and the output, side by side."""
    inputs = [
        (operand, panel)
        for operand in watched.operands_of(run, stage)
        if (panel := watched.operand_panel(run, operand, item=place.item, head=place.head)) is not None
    ]
    is_listed = all(operand.operator in ("", ",") for operand, _ in inputs)
    if not is_listed and not watched.are_of_one_shape(run, stage, [operand for operand, _ in inputs]):
        is_listed = True  # a part of each, such as a head, is what is computed with
        inputs = [(one, replace(panel, operator="," if i else "")) for i, (one, panel) in enumerate(inputs)]
    operator = "" if not inputs else "→" if is_listed else "="
    output = watched.stage_panel(
        run, stage, item=place.item, head=place.head, row=place.row, column=place.column, operator=operator
    )
    if output is None:
        return
    sheet = watched.sheet_of(run, _numbers(stage), item=0, head=0, row=place.row, column=place.column)

    def select(event: object) -> None:
        index = state.index_in(event, "index")
        row, column = state.index_in(event, "row"), state.index_in(event, "column")
        if index >= len(inputs):
            state.watch(watched_row=sheet.first_row + row, watched_column=sheet.first_column + column)
        elif not inputs[index][0].is_parameter:
            operand = inputs[index][0]
            row, column = (column, row) if operand.transposed else (row, column)
            state.watch(watched_stage=operand.source, watched_row=row, watched_column=column)

    key = "watched_picture"
    selected = (output.name, place.row - sheet.first_row, place.column - sheet.first_column)
    mount(tensor_grid([*(panel for _, panel in inputs), output], selected=selected, key=key), select=select)


def _picture_of_step(run: WatchedRun, folded: Folded, stage: Stage, place: _Place) -> None:
    """Draw what a step reads, as its formula sees it, and its result."""
    given = watched.read_by_step(run, folded, item=place.item, head=place.head)
    output = watched.stage_panel(
        run, stage, item=place.item, head=place.head, row=place.row, column=place.column, operator="→"
    )
    if output is None:
        return
    output = replace(output, title=watched.label_of_step(folded))
    sheet = watched.sheet_of(run, _numbers(stage), item=0, head=0, row=place.row, column=place.column)

    def select(event: object) -> None:
        index = state.index_in(event, "index")
        row, column = state.index_in(event, "row"), state.index_in(event, "column")
        if index >= len(given):
            state.watch(watched_row=sheet.first_row + row, watched_column=sheet.first_column + column)
        elif (path := given[index].path) is not None:
            at = {"watched_row": row, "watched_column": column} if given[index].same_places else {}
            state.watch(watched_stage=path, **at)

    key = "watched_step"
    selected = (output.name, place.row - sheet.first_row, place.column - sheet.first_column)
    mount(tensor_grid([*(read.panel for read in given), output], selected=selected, key=key), select=select)


def _numbers(stage: Stage) -> Tensor:
    """Return the value of a stage."""
    if stage.value is None:
        raise ValueError(f"the numbers of {stage.path} are not known")
    return stage.value


def _window(value: Tensor | None, run: WatchedRun, place: _Place) -> None:
    """Choose the part that is drawn of a tensor that is too large."""
    if value is None or not value.numel():
        return
    sheet = watched.sheet_of(run, value, item=place.item, head=place.head, row=place.row, column=place.column)
    n_rows, n_columns = watched.sizes_of_sheet(value, sheet)
    if n_rows <= watched.MOST_ROWS and n_columns <= watched.MOST_COLUMNS:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if n_rows > watched.MOST_ROWS:
            widgets.number("watched_row", width=140)
        if n_columns > watched.MOST_COLUMNS:
            widgets.number("watched_column", width=140)
        rows = _part(sheet.first_row, watched.MOST_ROWS, n_rows)
        st.caption(say("drawn", rows=rows, columns=_part(sheet.first_column, watched.MOST_COLUMNS, n_columns)))


def _part(first: int, most: int, size: int) -> str:
    return say("part", first=first, last=min(size, first + most) - 1, size=size)


def _derivation(run: WatchedRun, stage: Stage, place: _Place, folded: Folded | None) -> None:
    if stage.value is None or not stage.value.numel():
        return
    sheet = watched.sheet_of(run, stage.value, item=place.item, head=place.head)
    found = watched.derivation(run, stage, sheet.index(place.row, place.column), folded)
    if found is not None:
        st.markdown(f"##### {say('derivation')}")
        mount(derivation_picture(found, key="watched_derivation"))


def _every_head(run: WatchedRun, stage: Stage, place: _Place) -> None:
    panels = watched.head_panels(run, stage, item=place.item)
    if not panels:
        return

    def select(event: object) -> None:
        state.select(head=state.index_in(event, "index"))
        if state.has_index(event, "row"):  # a title was chosen otherwise, and the cell stays
            state.watch(watched_row=state.index_in(event, "row"), watched_column=state.index_in(event, "column"))

    key = "watched_every_head"
    st.markdown(f"##### {say('every_head')}")
    mount(tensor_grid(panels, layout="wrap", key=key), select=select)
