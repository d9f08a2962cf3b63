"""The one registry of what is known of stages, and what it says of a stage of a run.

An entry is found by the source file that taps the stage, and by its name there. Of a stage without an entry
everything here is said all the same: it follows from the operations that computed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torch import Tensor

from model import Trace
from model.texts import listed, texts_of
from visualizer.components.derivation.element import Derivation
from visualizer.components.stage_map.stage_places import StageRef
from visualizer.glossary import Piece, pieces
from visualizer.runs.operations_run import OperationStage
from visualizer.runs.run import Run
from visualizer.safe_text import visible_whole
from visualizer.settings.settings import Depth
from visualizer.stages import (
    attention,
    by_operation,
    dot_product,
    example_inputs,
    feed_forward,
    inputs,
    layer,
    model_output,
)
from visualizer.stages.check_line import all_hold
from visualizer.stages.checks import Check, equals_published
from visualizer.stages.derivations import Cell
from visualizer.stages.entry import StageEntry, StageInRun, find_entry
from visualizer.stages.explanations import TEXTS, Facts
from visualizer.stages.expressions import is_its_expression, reckon, words_on
from visualizer.stages.facts import common_facts
from visualizer.stages.numpy_lines import NumpyLine
from visualizer.stages.operands import Operand
from visualizer.stages.operations import entry_of_operation, operation_in_words, operations_on_map

say = texts_of(__name__)


def _with_texts(part: str, entries: Iterable[StageEntry]) -> tuple[StageEntry, ...]:
    """The entries of a part of the paper with their texts."""
    found = ((entry, TEXTS[part][entry.texts or entry.name]) for entry in entries)
    return tuple(replace(entry, plain=text["plain"], exact=text["exact"]) for entry, text in found)


_PROJECTIONS = _with_texts("attention", attention.ENTRIES)

ENTRIES: dict[str, tuple[StageEntry, ...]] = {
    "model/transformer.py": (
        *_with_texts("inputs", inputs.ENTRIES),
        *_with_texts("model_output", model_output.ENTRIES),
    ),
    "model/attention.py": (*_PROJECTIONS, *_with_texts("attention", dot_product.ENTRIES)),
    "model/fused_projection.py": _PROJECTIONS,
    "model/feed_forward.py": _with_texts("feed_forward", feed_forward.ENTRIES),
    "model/layers.py": _with_texts("layer", layer.ENTRIES),
    "model/sources/worked_examples.py": _with_texts("example_inputs", example_inputs.ENTRIES),
}
"""The entries of the stages that each source file taps."""


def entry_of(run: Run, path: str) -> StageEntry:
    """Return the entry for the stage at ``path``; its name alone where nobody has written an entry."""
    stage = run.trace[path]
    if isinstance(stage, OperationStage):
        return entry_of_operation(run, stage)
    return find_entry(ENTRIES, run.trace, path)


def stage_of(run: Run, path: str) -> StageInRun:
    """The stage at ``path``, and what is known of it."""
    return StageInRun(run, path, entry_of)


def explanation(run: Run, path: str, depth: Depth) -> str:
    """The text on the stage at ``path``, with the marks of the words that open the glossary."""
    entry = entry_of(run, path)
    return entry.explanation(depth, facts_of(run, path)) or words_on(run, path)


def explanation_in_pieces(run: Run, path: str, depth: Depth) -> tuple[Piece, ...]:
    """The same in its parts; of another model, whose names can be anything, as one part without marks."""
    stage = run.trace[path]
    if isinstance(stage, OperationStage):
        return (Piece(visible_whole(operation_in_words(stage))),)
    return pieces(explanation(run, path, depth))


def facts_of(run: Run, path: str) -> Facts:
    """Return the facts about the stage at ``path``."""
    stage = stage_of(run, path)
    return common_facts(stage) | stage.entry.facts(stage)


def formula_of(run: Run, path: str) -> str:
    """The formula of the stage at ``path``; empty where nobody has written one."""
    formula = entry_of(run, path).formula
    return formula if isinstance(formula, str) else formula(stage_of(run, path))


def numpy_line(run: Run, path: str) -> NumpyLine | None:
    """The line for the stage at ``path``; None where nobody has written one."""
    entry = entry_of(run, path)
    write = entry.numpy or (by_operation.numpy_line if entry.is_described else None)
    return write(stage_of(run, path)) if write else None


def operands_of(run: Run, path: str) -> tuple[Operand, ...]:
    """The inputs of a stage as drawn before it, in the order of its formula."""
    return stage_of(run, path).operands


def checks(run: Run, path: str) -> tuple[Check, ...]:
    """Everything that must hold of the stage at ``path``, and that it is what was published for it."""
    stage, published = stage_of(run, path), run.published.get(path)
    if any(each.path == path for each in run.interventions):
        return Check(say("edited"), None), no_nan(stage.value)
    entry = stage.entry
    found = [] if published is None else [equals_published(stage.value, published)]
    if not entry.is_described and entry.checks is None:
        found.append(Check(*is_its_expression(run, path)))
    found += (entry.checks or by_operation.checks)(stage)
    if run.has_edit_in(stage.module) and not all_hold(found):
        found = [Check(say("beside_edit"), None), *(check for check in found if check.holds is not False)]
    if stage.stage.edited:
        found.append(Check(say("mask_bug"), None))
    return (*found, no_nan(stage.value))


def no_nan(value: Tensor) -> Check:
    """Check that every cell holds a number."""
    return Check(say("no_nan"), not bool(value.isnan().any()))


def derive(run: Run, cell: Cell) -> tuple[Derivation, ...]:
    """The derivations of one number, in the order in which they were computed; none of one that was put there."""
    if any(each.path == cell.path and each.covers(cell.head, cell.row) for each in run.interventions):
        return ()
    stage = stage_of(run, cell.path)
    find = stage.entry.derive or (by_operation.derivation if stage.entry.is_described else None)
    found = find(stage, cell) if find else None
    if found is None:
        try:
            reckoned = reckon(run, cell.path, cell.index(stage.value.dim()))
        except ValueError:  # more than single numbers take part
            return ()
        found = by_operation.framed(stage, cell, "", "", reckoned)
    derivations = found if isinstance(found, tuple) else (found,)
    return tuple(each for each in derivations if each.agrees or not run.has_edit_in(stage.module))


def on_map(run: Run) -> tuple[StageRef, ...]:
    """Every stage as the map of the model shows it; inputs of an attention that are one tensor are one."""
    if run.seen is not None:
        return tuple(operations_on_map(run, run.seen.trace.patterns.values()))
    found: list[StageRef] = []
    for path, stage in run.trace.items():
        entry = entry_of(run, path)
        if found and _is_same_input(run.trace, found[-1].path, path):
            found[-1] = _joined(found[-1], path)
            continue
        described = (entry.block, entry.is_telling, entry.title, entry.is_detail)
        found.append(StageRef(path, stage.name, entry.role, stage.shape_text, *described))
    return tuple(found)


_INPUTS = {"query_input": say("queries"), "key_input": say("keys"), "value_input": say("values")}


def _is_same_input(trace: Trace, before: str, path: str) -> bool:
    """True if two stages are inputs of one attention, and one tensor."""
    first, second = trace[before], trace[path]
    are_inputs = first.name in _INPUTS and second.name in _INPUTS and first.module_path == second.module_path
    return are_inputs and first.value is second.value


def _joined(first: StageRef, path: str) -> StageRef:
    """The stage that stands for another one too."""
    also = (*first.also, path)
    names = [one.rpartition(".")[2] for one in (first.path, *also)]
    what = listed(_INPUTS[name] for name in names)
    title = say("input") if len(names) == len(_INPUTS) else say("input_of", what=what)
    return replace(first, also=also, label=" = ".join(names), title=title)
