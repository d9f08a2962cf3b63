"""Everything that is known of a kind of stage as one entry, and one stage of one run beside its entry.

What an entry leaves out follows from the operation that was recorded, so that a stage needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from torch import Tensor

from model import Dropout, Stage, Trace
from model.dataflow import Node, Operation
from visualizer.colors import Role
from visualizer.components.derivation.element import Derivation
from visualizer.runs.run import Run
from visualizer.settings.settings import Depth
from visualizer.stages.checks import Check
from visualizer.stages.derivations import Cell
from visualizer.stages.explanations import Facts, explanation
from visualizer.stages.numpy_lines import NumpyLine
from visualizer.stages.operands import Operand, wired

Numbers = Literal["signed", "shares", "distribution"]
"""Numbers with a sign; shares of one whole, or yes and no; the shares of a row, on a scale of their own."""


@dataclass(frozen=True)
class StageEntry:
    """Everything that is known of a kind of stage.

    Its texts are written as ``explanation`` reads them, in ``explanations.toml``.

    Attributes:
        name: what the stage is called where it is tapped, without a number.
        title: its name in words.
        role: its colour.
        plain: what it is in few words; the sentence on its operation where there are none.
        exact: what is computed; the sentence on its operation where there are none.
        texts: the name of its texts, where another entry has those of its own name.
        facts: what may be told of it is true in a run.
        formula: LaTeX in the symbols of the paper, as a function where it varies.
        numpy: the line of NumPy; that of the operation unless given.
        checks: what must hold of it; what must of its operation unless given.
        derive: how a number of it came to be; by its operation unless given.
        when: where it is this entry that describes a stage of that name; everywhere unless given.
        left_out: the inputs, by name, that its picture leaves out.
        is_any_function: whether it can be any function of its inputs, so that no signs stand between them.
        parts: the stages, by name, that lie side by side in it.
        numbers: what kind of numbers it holds, and so their colour scale.
        marks_blocked: whether its cells are those of a mask, and blocked ones are marked.
        on_the_stream: whether it stands on the way of the tokens' vectors to the output.
        charts: the names of the charts that say something about it.
        block: the block of the map that it is of where no module of its own says so.
        is_telling: whether it is the one to open when its block is chosen.
        is_detail: whether the map leaves it out of the block's row until all stages are asked for.
    """

    name: str
    title: str
    role: Role = "neutral"
    plain: str = ""
    exact: str = ""
    texts: str = ""
    facts: Callable[[StageInRun], Facts] = lambda stage: Facts()
    formula: str | Callable[[StageInRun], str] = ""
    numpy: Callable[[StageInRun], NumpyLine] | None = None
    checks: Callable[[StageInRun], Iterable[Check]] | None = None
    derive: Callable[[StageInRun, Cell], Derivation | tuple[Derivation, ...]] | None = None
    when: Callable[[Trace, str], bool] = lambda trace, path: True
    left_out: tuple[str, ...] = ()
    is_any_function: bool = False
    parts: tuple[str, ...] = ()
    numbers: Numbers = "signed"
    marks_blocked: bool = False
    on_the_stream: bool = False
    charts: tuple[str, ...] = ()
    block: str = ""
    is_telling: bool = False
    is_detail: bool = False

    @property
    def is_described(self) -> bool:
        """True if somebody wrote down what such a stage computes."""
        return bool(self.exact)

    def explanation(self, depth: Depth, facts: Facts) -> str:
        """The text at a depth where ``facts`` hold, with the marks of the words that open the glossary."""
        return explanation(self.plain if depth == "plain" else self.exact, facts)


Entries = Mapping[str, Sequence[StageEntry]]
"""The entries of the stages that a source file taps, by the file."""


@dataclass(frozen=True, eq=False)
class StageInRun:
    """One stage of one run, and what is known of it.

    Attributes:
        run: the run.
        path: the stage's place in its trace.
        find: finds what is known of a kind of stage.
    """

    run: Run
    path: str
    find: Callable[[Run, str], StageEntry]

    @property
    def stage(self) -> Stage:
        """The record of the stage in the trace."""
        return self.run.trace[self.path]

    @property
    def value(self) -> Tensor:
        """Its tensor."""
        return self.stage.value

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.stage.name

    @property
    def module(self) -> str:
        """The path of the module that computed it."""
        return self.stage.module_path

    @cached_property
    def entry(self) -> StageEntry:
        """The entry for stages of its kind."""
        return self.find(self.run, self.path)

    @property
    def node(self) -> Node:
        """The expression that computed it, without tensors from outside."""
        return wired(self.run, self.path).node

    @property
    def operation(self) -> str:
        """The last operation of its expression; empty for the very tensor of another stage, or one from outside."""
        return self.node.name if isinstance(self.node, Operation) else ""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Its inputs as drawn before it, in the order of its formula."""
        found, left_out = wired(self.run, self.path).operands, self.entry.left_out
        if self.entry.is_any_function:
            found = tuple(dict.fromkeys(replace(operand, operator="") for operand in found))
        return tuple(operand for operand in found if operand.source.rpartition(".")[2] not in left_out)

    @property
    def inputs(self) -> tuple[StageInRun, ...]:
        """The stages among its inputs."""
        return tuple(self.at(operand.source) for operand in self.operands if not operand.is_parameter)

    @property
    def dropout(self) -> float:
        """The probability with which its module drops numbers; 0 where its dropout is off."""
        dropout = getattr(self.run.model.get_submodule(self.module), "dropout", None)
        return dropout.p if isinstance(dropout, Dropout) and dropout.active else 0.0

    def at(self, path: str) -> StageInRun:
        """Another stage of the run."""
        return replace(self, path=path)

    def beside(self, name: str) -> StageInRun:
        """Another stage of the same module."""
        return self.at(beside(self.path, name))

    def has_beside(self, name: str) -> bool:
        """True if its module has a stage of that name."""
        return beside(self.path, name) in self.run.trace


def beside(path: str, name: str) -> str:
    """The path of another stage of the same module."""
    module, dot, _ = path.rpartition(".")
    return f"{module}{dot}{name}"


def find_entry(entries: Entries, trace: Trace, path: str) -> StageEntry:
    """The entry of the stage at ``path``, or one with its name alone where nobody has written any."""
    stage = trace[path]
    kind = stage.name.rstrip("0123456789")
    for entry in entries.get(source_of(stage.location[0]), ()):
        if entry.name == kind and entry.when(trace, path):
            return entry
    return StageEntry(kind, stage.name.replace("_", " ").capitalize())


@lru_cache(maxsize=256)
def source_of(file: str) -> str:
    """A source file as a reader finds it: from the top of the project on, or by its name where it is of another."""
    path, top = Path(file), Path(__file__).parents[2]
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else path.name
