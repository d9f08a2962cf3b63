"""The computation of a stage: what must hold of it, its shapes and its code, on a line that opens."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from torch import Tensor

from model.texts import texts_of
from visualizer.components.words.element import words
from visualizer.glossary import Piece, entries_of_formula, shape_pieces
from visualizer.pictures.step import Place, holds, place_of, signs_of
from visualizer.runs.operations_run import OperationStage
from visualizer.runs.run import Run
from visualizer.runs.watched import in_bytes
from visualizer.server.mount import mount
from visualizer.settings.settings import FIELDS, Depth
from visualizer.stages.check_line import all_hold, check_line, summary_line
from visualizer.stages.checks import summarize
from visualizer.stages.derivations import Cell
from visualizer.stages.numpy_lines import notes
from visualizer.stages.operands import Operand, used
from visualizer.stages.operations import code_of
from visualizer.stages.registry import checks, formula_of, numpy_line, operands_of
from visualizer.stages.source_lines import code_line
from visualizer.state import state

say = texts_of(__name__)

COMPUTATION = "computation"
"""The line with the checks, the shapes and the code, which opens."""

_FAILED = "failed_computation"


def computation(run: Run, cell: Cell, depth: Depth, *, with_facts: bool) -> None:
    """Draw the computation, in shapes and in code, and what must hold of it: one line that opens.

    The facts are those of every head and row. The way to the other words for the stage stands there too. All of it
    is drawn while it is open: what colours the code alone is a file of 1.5 MB.
    """
    path = cell.path
    found = checks(run, path) if with_facts else ()
    summary = say("checked", checks=summary_line(found)) if found else say("unchecked")
    fails = not all_hold(found)
    drawer = st.expander(summary, expanded=fails, key=_FAILED if fails else COMPUTATION, on_change="rerun")
    if not drawer.open:
        return
    with drawer:
        if run.seen is None:
            _depth(depth)
        _symbols(run, path)
        if with_facts:
            _range(run.trace[path].value)
            st.markdown("\n\n".join(check_line(check) for check in found))
        mount(words(_shapes(run, place_of(cell)), look="code", key="shapes"))
        _code(run, path)


def _range(value: Tensor) -> None:
    """The least, the greatest and the mean number, the type, and the memory."""
    if not value.is_complex() and bool(value.isfinite().any()):
        numbers = summarize(value)
        st.markdown(say("numbers", least=numbers.least, greatest=numbers.greatest, mean=numbers.mean))
    st.caption(f"{str(value.dtype).removeprefix('torch.')} · {in_bytes(value.nbytes)}")


def _code(run: Run, path: str) -> None:
    """The line of PyTorch that computed it, and beside it the same in NumPy."""
    stage = run.trace[path]
    if isinstance(stage, OperationStage):
        if (recorded := code_of(stage)) is not None:
            st.caption(say("pytorch_recorded"))
            st.code(recorded, language="python", wrap_lines=True)
        return
    pytorch, numpy = st.columns(2, gap="medium")
    code, same = code_line(run.trace[path]), numpy_line(run, path)
    with pytorch:
        st.caption(say("pytorch", place=code.place))
        st.code(code.code, language="python", wrap_lines=True)
    if same is None:
        return
    with numpy:
        st.caption(say("numpy_with_notes", notes=said) if (said := notes(same)) else say("numpy"))
        st.code(same.code, language="python", wrap_lines=True)


def _shapes(run: Run, place: Place) -> list[tuple[Piece, ...]]:
    """The formula in shapes, one line for each input and one for the output, symbolic and concrete."""
    stage, operands = run.trace[place.path], operands_of(run, place.path)
    inputs = [(sign, *_shape(run, one)) for sign, one in zip(signs_of(run, place), operands, strict=True)]
    result = ("=" if holds(run, place) else "→") if inputs else ""
    lines = [*inputs, (result, stage.name, stage.shape_text)]
    width = max(len(name) for _, name, _ in lines)
    return [
        (Piece(f"{operator or ' ':<5} {name:<{width}}  "), *shape_pieces(shape)) for operator, name, shape in lines
    ]


def _shape(run: Run, operand: Operand) -> tuple[str, str]:
    """The name and the shape of an input as the computation uses it."""
    if operand.is_parameter:
        sizes = used(run, operand).shape
        name = ".".join(operand.source.split(".")[-2:]) + (
            f"[{operand.rows[0]}:{operand.rows[1]}]" if operand.rows else ""
        )
        return name, str(tuple(reversed(sizes) if operand.transposed else sizes))
    stage = run.trace[operand.source]
    if operand.transposed:
        return say("transposed", name=stage.name), replace(
            stage, dims=(*stage.dims[:-2], stage.dims[-1], stage.dims[-2])
        ).shape_text
    return stage.name, stage.shape_text


def _symbols(run: Run, path: str) -> None:
    """The symbols of the formula, each with its name."""
    formula = formula_of(run, path)
    if run.seen is not None or not formula:  # a step has symbols of its own
        return
    named = [Piece(f"{entry.symbol} {entry.name}".lstrip(), entry.name) for entry in entries_of_formula(formula)]
    if named:
        mount(words([[piece] for piece in named], look="symbols", key="symbols"))


def _depth(depth: Depth) -> None:
    field = FIELDS["depth"]
    (other,) = (name for name in field.choices if name != depth)
    step = state.callback(state.select, depth=other)
    label = say("other_text", depth=field.choices[other])
    st.button(label, key="other_depth", help=field.help, on_click=step, type="tertiary")
