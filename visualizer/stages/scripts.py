"""A run as plain code: a script that computes a stage again and compares it with the number that was saved.

The numbers of the run lie beside it: parameters and stages by name. What a script cannot compute again, such as
what dropout drew, it reads from there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any, Literal

from torch import Tensor

from model.dataflow import Constant, StageInput, inputs_of
from model.texts import texts_of
from visualizer.runs.run import Run
from visualizer.stages.loops import Loop, Reads, loops_in
from visualizer.stages.numpy_lines import NumpyLine
from visualizer.stages.registry import entry_of, numpy_line
from visualizer.stages.torch_code import can_be_written, torch_code

say = texts_of(__name__)

Library = Literal["numpy", "torch"]


def script(run: Run, path: str, library: Library, link: str) -> str:
    """The script for a stage.

    Args:
        run: of one sequence.
        path: the stage.
        library: that it is written in.
        link: leads to the run in the app.
    """
    writer = _WRITERS[library]
    origin = _origin(run, path)
    needed = _needed(run, origin, writer)
    loops = loops_in(needed)
    names = _named(needed, loops)
    lines = list(_lines(run, names, loops, writer))
    title = f"{entry_of(run, path).title}, {path}"
    math = ["import math", ""] if any("math." in line for line in lines) else []
    return "\n".join(
        [
            f'"""{say("head", title=title, library=writer.title, file=writer.file, link=link)}"""',
            *(*math, *writer.imports, "", *lines, ""),
            f'expected = run["{path}"]',
            writer.assertion.format(variable=names[origin], absolute=_absolute_error(run.trace[path].value)),
            f'print("{path}", tuple({names[origin]}.shape), "is what was saved")',
            "",
        ]
    )


def as_notebook(code: str) -> dict[str, Any]:
    """The same as a notebook (nbformat 4.5): what it says, and its code."""
    head, _, rest = code.removeprefix('"""').partition('"""\n')
    cells = [
        {"cell_type": "markdown", "id": "about", "metadata": {}, "source": head.strip()},
        {"cell_type": "code", "id": "code", "metadata": {}, "source": rest, "outputs": [], "execution_count": None},
    ]
    return {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def numbers_of(run: Run) -> dict[str, Tensor]:
    """The parameters and the stages of a run, by name: what a script reads."""
    parameters = {name: value.detach() for name, value in run.parameters.items()}
    return {**parameters, **{path: stage.value.detach() for path, stage in run.trace.items()}}


def _absolute_error(value: Tensor) -> str:
    """The error that a script allows each cell, ``1e-4``: it grows with the largest, as what cancels rounds."""
    sizes = value[value.isfinite()].double().abs()
    size = float(sizes.max()) if len(sizes) else 0.0
    return f"1e{max(-4, math.ceil(math.log10(1e-5 * size + 1e-9)))}"


def _origin(run: Run, path: str) -> str:
    """The stage that a stage is the very tensor of, or the stage itself."""
    node = run.dataflow[path]
    while isinstance(node, StageInput) and not run.trace[path].edited:
        path, node = node.path, run.dataflow[node.path]
    return path


def _needed(run: Run, path: str, writer: _Writer) -> dict[str, set[str]]:
    """The stages that a script computes or reads, in the order computed, and those that the line of each reads."""
    found: dict[str, set[str]] = {}
    waiting = [path]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = {_origin(run, source) for source in writer.reads(run, each)}
            waiting += found[each]
    return {each: found[each] for each in run.trace if each in found}


def _named(reads: Reads, loops: Sequence[Loop]) -> dict[str, str]:
    """A variable for each stage: ``scores``, as soon as no line reads the one before it any more.

    In a loop all layers have the same, and what goes from one to the next is ``x``.
    """
    names = {
        path: "x" if len(loops) == 1 else f"x_{loop.stack}"
        for loop in loops
        for path in loop.carried
        if path in reads
    }
    others = {path for loop in loops for layer in loop.layers[1:] for path in layer}
    places = {path: place for place, path in enumerate(path for path in reads if path not in others)}
    is_read_until = _last_reads(reads, places, loops)
    taken: dict[str, int] = {}
    for path, place in places.items():
        if path not in names:
            candidates = (name(path) for name in (_short, _with_module, _whole))
            names[path] = next(name for name in candidates if taken.get(name, -1) < place)
            taken[names[path]] = is_read_until[path]
    for loop in loops:
        for layer in loop.layers[1:]:
            names |= {path: names[first] for path, first in zip(layer, loop.layers[0], strict=True)}
    return {path: names[path] for path in reads}


def _last_reads(reads: Reads, places: Mapping[str, int], loops: Sequence[Loop]) -> dict[str, int]:
    """The place of the last line that reads each stage; of one from outside of a loop, the end of that."""
    found = dict(places)
    loop_of = {path: loop for loop in loops for path in loop.layers[0]}
    for path, place in places.items():
        loop = loop_of.get(path)
        for read in reads[path] & places.keys():
            is_outside = loop is not None and loop_of.get(read) is not loop
            found[read] = max(found[read], places[loop.layers[0][-1]] if loop and is_outside else place)
    return found


def _lines(run: Run, names: Mapping[str, str], loops: Sequence[Loop], writer: _Writer) -> Iterator[str]:
    """The lines that compute or read each stage."""
    begins = {loop.layers[0][0]: loop for loop in loops}
    looped = frozenset[str]().union(*(loop.paths for loop in loops))
    for path in names:
        if (loop := begins.get(path)) is not None:
            yield f"for layer in range({len(loop.layers)}):"
            yield f"{indent(_body(run, loop, names, writer), '    ')}\n"
        elif path not in looped:
            yield writer.line(run, path, names)


def _body(run: Run, loop: Loop, names: Mapping[str, str], writer: _Writer) -> str:
    """The lines of a loop, which name what is saved by the number of the layer."""
    first, any_layer = f'run["{loop.stack}.layers.0.', f'run[f"{loop.stack}.layers.{{layer}}.'
    return "\n".join(writer.line(run, path, names).replace(first, any_layer) for path in loop.layers[0])


def _short(path: str) -> str:
    """``scores``; an output has its module's name too."""
    owner, name = ["", *path.split(".")][-2:]
    return f"{owner}_output" if name == "output" else name


def _with_module(path: str) -> str:
    return "_".join([_short(path), *(part for part in path.split(".")[:-1] if part != "layers")])


def _whole(path: str) -> str:
    return path.replace(".", "_")


def _is_given(run: Run, path: str) -> bool:
    """True if a stage was not computed from those before it: an input, a mask, what an edit put there."""
    return run.trace[path].edited or isinstance(run.dataflow[path], Constant) or path.endswith(".mask")


def _source(run: Run, source: str, names: Mapping[str, str]) -> str:
    """A stage or a parameter as it stands in a line."""
    return names[_origin(run, source)] if source in run.trace else f'run["{source}"]'


def _numpy(run: Run, path: str) -> NumpyLine | None:
    """The line that computes a stage; None where it is read."""
    line = None if _is_given(run, path) else numpy_line(run, path)
    return line if line is not None and set(line.from_outside) <= {"ids", "positions"} else None


def _numpy_reads(run: Run, path: str) -> list[str]:
    line = _numpy(run, path)
    return [] if line is None else [source for source in line.reads.values() if source in run.trace]


def _numpy_line(run: Run, path: str, names: Mapping[str, str]) -> str:
    line = _numpy(run, path)
    if line is None:
        return f'{names[path]} = run["{path}"]'
    sequence = run.axes(path)[0].sequence or "source"
    found = {variable: _source(run, source, names) for variable, source in line.reads.items()}
    ids = run.tokens[sequence].ids
    for name in line.from_outside:
        numbers = ids if name == "ids" else [run.position(path, row, 0) for row in range(len(ids))]
        found[name] = f"np.array({[list(numbers)]})"
    found[run.trace[path].name] = names[path]
    variables = "|".join(map(re.escape, found))
    return re.sub(rf"(?<![\w.])({variables})(?![\w(]|=[^=])", lambda each: found[each[1]], line.code)


def _is_read_in_torch(run: Run, path: str) -> bool:
    return _is_given(run, path) or not can_be_written(run.dataflow[path])


def _torch_reads(run: Run, path: str) -> list[str]:
    nodes = () if _is_read_in_torch(run, path) else inputs_of(run.dataflow[path])
    return [node.path for node in nodes if isinstance(node, StageInput)]


def _torch_line(run: Run, path: str, names: Mapping[str, str]) -> str:
    if _is_read_in_torch(run, path):
        return f'{names[path]} = run["{path}"]'
    return f"{names[path]} = {torch_code(run.dataflow[path], lambda source: _source(run, source, names))}"


@dataclass(frozen=True)
class _Writer:
    """A library that scripts are written in.

    Attributes:
        title: its name.
        file: the numbers that a script reads.
        imports: the lines before everything.
        assertion: the line that compares a variable with the number expected, within an absolute error.
        reads: the stages that the line of a stage reads.
        line: writes the line of a stage, with the variables of all.
    """

    title: str
    file: str
    imports: tuple[str, ...]
    assertion: str
    reads: Callable[[Run, str], list[str]]
    line: Callable[[Run, str, Mapping[str, str]], str]


_WRITERS: Mapping[Library, _Writer] = {
    "numpy": _Writer(
        "NumPy",
        "run.npz",
        ("import numpy as np", "", 'run = np.load("run.npz")'),
        "np.testing.assert_allclose({variable}, expected, rtol=1e-3, atol={absolute})",
        _numpy_reads,
        _numpy_line,
    ),
    "torch": _Writer(
        "PyTorch",
        "run.safetensors",
        (
            *("import torch", "import torch.nn.functional as F", "from safetensors.torch import load_file"),
            *("", 'run = load_file("run.safetensors")'),
        ),
        "torch.testing.assert_close({variable}, expected, rtol=1e-3, atol={absolute})",
        _torch_reads,
        _torch_line,
    ),
}
