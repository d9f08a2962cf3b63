"""Name every tensor where it is computed, and record or edit it on request.

A module computes as always and wraps a value it wants to be seen in ``self.tap(...)``. Without a recorder a tap
returns its value at once; inside ``record(model)`` the same line also keeps the value under its path:

    with record(model) as trace:
        model(tokens)
    trace["encoder.layers.0.self_attention.weights"].value

Axis symbols, used in code, tests and on the screen alike:

    B   batch             Tq  query tokens     Dh  head_dim
    T   tokens            Tk  key tokens       F   d_ff
    S   source tokens     H   heads            V   vocab_size
    D   d_model           Dk  query/key width where it differs from the values'
    Tn  tokens new in a pass that takes the others from a key/value cache
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from math import prod
from types import CodeType
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

Edit = Callable[[Tensor], Tensor]
Tap = Callable[[str, Tensor, str], Tensor]
Dims = tuple[tuple[str, int], ...]
_Taken = tuple[nn.Module, str, Tensor, str, CodeType, int, bool]
"""A recording's entry for a tap: module, name, value, shape, the code and the place in it that ran, edited."""


class TraceError(RuntimeError):
    """A stage was recorded, edited or looked up under a name or a shape it does not have."""


class MissingStageError(TraceError, KeyError):
    """No stage has the path; as a ``KeyError``, it lets ``Trace.get`` and ``in`` work as in any mapping."""

    __str__ = TraceError.__str__  # KeyError would show the message in quotes


@dataclass(frozen=True, eq=False)
class Stage:
    """One named tensor of a forward pass.

    Attributes:
        path: where it was computed, such as ``encoder.layers.0.self_attention.scores``.
        value: the tensor itself, as the computation used it (after an edit, the edited one).
        dims: one ``(symbol, size)`` pair per axis, such as ``(("B", 1), ("H", 4), ("Tq", 9), ("Tk", 9))``.
        location: file and line of the code that computed it.
        edited: whether an edit replaced what was computed.
    """

    path: str
    value: Tensor
    dims: Dims
    location: tuple[str, int]
    edited: bool = False

    @property
    def name(self) -> str:
        """The last part of the path: ``scores``."""
        return self.path.rpartition(".")[2]

    @property
    def module_path(self) -> str:
        """The path of the module that computed it: ``encoder.layers.0.self_attention``."""
        return self.path.rpartition(".")[0]

    @property
    def shape_text(self) -> str:
        """Symbols and sizes, such as ``(B H Tq Tk) = (1, 4, 9, 9)``."""
        symbols = " ".join(symbol for symbol, _ in self.dims)
        sizes = ", ".join(str(size) for _, size in self.dims)
        return f"({symbols}) = ({sizes})"


class Trace(Mapping[str, Stage]):
    """The stages of one forward pass by path, in the order in which they were computed."""

    def __init__(self, stages: Mapping[str, Stage] | None = None) -> None:
        self._stages = {} if stages is None else stages

    def __getitem__(self, path: str) -> Stage:
        """Return the stage at a path.

        Raises:
            MissingStageError: nothing was computed under that path; the message names the nearest one.
        """
        try:
            return self._stages[path]
        except KeyError:
            raise MissingStageError(f"no stage {path!r} in this trace{nearest(path, self._stages)}") from None

    def __contains__(self, path: object) -> bool:
        return path in self._stages

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    def _repr_html_(self) -> str | None:
        """The attentions in a notebook; None where Headlight's pictures are not installed, or draw nothing."""
        try:
            shown: str = import_module("headlight").show(self)._repr_html_()
        except (ImportError, ValueError):
            return None
        return shown


class _TakenStages(Mapping[str, Stage]):
    """The entries that a recording took at its taps, each made into a ``Stage`` when it is first asked for."""

    def __init__(self, taken: Sequence[_Taken], model: nn.Module) -> None:
        self._taken, self._model = taken, model
        self._n_found = 0
        self._by_path: dict[str, _Taken] = {}
        self._made: dict[str, Stage] = {}

    def __getitem__(self, path: str) -> Stage:
        if path not in self._made:
            _, _, value, shape, code, instruction, edited = self._found()[path]
            dims = _described(path, shape, value.shape)
            self._made[path] = Stage(path, value, dims, (code.co_filename, _line(code, instruction)), edited)
        return self._made[path]

    def __contains__(self, path: object) -> bool:
        return path in self._found()

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    @cached_property
    def module_paths(self) -> Mapping[int, str]:
        """The path of each module of the model, by its id."""
        return _module_paths(self._model)

    def path_of(self, module: nn.Module, name: str) -> str | None:
        """The path of a stage; None for a module of another model, run while this one was recorded."""
        prefix = self.module_paths.get(id(module))
        return None if prefix is None else _joined(prefix, name)

    def _found(self) -> Mapping[str, _Taken]:
        """Return the entries by their paths: so far, where the pass is still running."""
        for one in self._taken[self._n_found :]:
            if (path := self.path_of(one[0], one[1])) is not None:
                self._by_path[path] = one
            self._n_found += 1
        return self._by_path


class _Recorder:
    """Keeps what passes the taps of one model while its block runs, and applies the edits on the way.

    A tap keeps references alone. Paths, axes and stages are made when they are asked for, and the shapes are
    checked when the pass is over: taps of one structure and one size need that only once.
    """

    def __init__(self, model: nn.Module, edits: Mapping[str, Edit]) -> None:
        self._model = model
        self._taken: list[_Taken] = []
        self._stages = _TakenStages(self._taken, model)
        self.trace = Trace(self._stages)
        self.edits = dict(edits)
        self.applied: set[str] = set()

    def __enter__(self) -> Trace:
        self._token = _recorder.set(self)
        return self.trace

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        _recorder.reset(self._token)
        if error is None or isinstance(error, Exception):
            self.check()  # sizes that do not fit are often what a later operation failed on, less clearly
        if error is None:
            self.check_edits()

    def tap(self, module: nn.Module, name: str, value: Tensor, shape: str) -> Tensor:
        computed = value
        if self.edits and (path := self._stages.path_of(module, name)) in self.edits:
            value = self._edited(path, value)
        caller = sys._getframe(2)
        while (code := caller.f_code).co_name == "tap" and caller.f_back is not None:  # a tap that wraps another
            caller = caller.f_back
        self._taken.append((module, name, value, shape, code, caller.f_lasti, value is not computed))
        return value

    def check(self) -> None:
        """Hold every name to one value, and each symbol to one size per module."""
        taken = self._taken
        modules, names = tuple([id(tap[0]) for tap in taken]), tuple([tap[1] for tap in taken])
        taps = (modules, names, tuple([tap[3] for tap in taken]), tuple([tap[2].shape for tap in taken]))
        good = _GOOD.setdefault(self._model, set())
        if taps not in good:
            self._check_each()
            if len(good) >= _MOST_GOOD:
                good.clear()
            good.add(taps)

    def _check_each(self) -> None:
        known: set[str] = set()
        sizes: dict[int, dict[str, int]] = {}
        for module, name, value, shape, *_ in self._taken:
            path = self._stages.path_of(module, name)
            if path is None:
                continue
            if path in known:
                raise TraceError(f"{path} was computed twice in one recording: record each pass by itself")
            known.add(path)
            _bind(path, _described(path, shape, value.shape), shape, sizes.setdefault(id(module), {}))

    def _edited(self, path: str, value: Tensor) -> Tensor:
        edited = self.edits[path](value)
        if edited.shape != value.shape:
            raise TraceError(
                f"the edit at {path} returned shape {tuple(edited.shape)}: it must stay {tuple(value.shape)}"
            )
        if edited.dtype != value.dtype:
            raise TraceError(f"the edit at {path} returned {edited.dtype}: it must stay {value.dtype}")
        self.applied.add(path)
        return edited

    def check_edits(self) -> None:
        for path in self.edits:
            if path not in self.applied:
                raise TraceError(f"no stage {path!r} to edit{nearest(path, self.trace)}")


_recorder: ContextVar[_Recorder | None] = ContextVar("recorder", default=None)


class TracedModule(nn.Module):
    """A module whose ``forward`` names the tensors it computes."""

    def tap(self, name: str, value: Tensor, shape: str) -> Tensor:
        """Name a tensor where it is computed, and return the value to go on with.

        Args:
            name: the stage's name within this module.
            value: the tensor, of any shape.
            shape: one symbol per axis, separated by spaces; a product is written ``H*Dh``.

        Raises:
            TraceError: while recording, if a symbol already stands for another size in this module.
        """
        if torch.compiler.is_compiling():
            return value
        recorder = _recorder.get()
        if recorder is None:
            return value
        return recorder.tap(self, name, value, shape)


def untapped(name: str, value: Tensor, shape: str) -> Tensor:  # noqa: ARG001 - as ``tap``
    """A tap for plain functions called outside a module: returns the value."""
    return value


def record(model: nn.Module, edits: Mapping[str, Edit] | None = None) -> AbstractContextManager[Trace]:
    """Record every tapped tensor of ``model`` while the block runs.

    Recording belongs to the running thread or task alone, so that many can share one model. Paths are those that
    the modules have when a stage is first asked for.

    Args:
        model: the root that paths start from.
        edits: path -> function of the tensor computed there; its result replaces the tensor.

    Raises:
        TraceError: an edit's path was never computed, an edit changed a shape or a dtype, or a module ran twice.

    >>> class Doubled(TracedModule):
    ...     def forward(self, x):
    ...         return self.tap("doubled", 2 * x, "T")
    >>> model = Doubled()
    >>> with record(model, edits={"doubled": lambda value: value + 1}) as trace:
    ...     model(torch.tensor([1, 2, 3]))
    tensor([3, 5, 7])
    >>> trace["doubled"].shape_text, trace["doubled"].edited
    ('(T) = (3)', True)
    """
    return _Recorder(model, edits or {})


_GOOD: WeakKeyDictionary[nn.Module, set[tuple[tuple[int | str | torch.Size, ...], ...]]] = WeakKeyDictionary()
"""Passes of a model that have been checked: of each tap its module, name, shape and sizes."""

_MOST_GOOD = 64


def _module_paths(model: nn.Module) -> dict[int, str]:
    """The path of each module by its id: as ``model.named_modules()``, in a fourth of the time."""
    paths: dict[int, str] = {}
    waiting = [("", model)]
    while waiting:
        path, module = waiting.pop()
        if id(module) not in paths:
            paths[id(module)] = path
            if children := module._modules:
                prefix = path and f"{path}."
                for name, child in reversed(children.items()):
                    if child is not None:
                        waiting.append((prefix + name, child))
    return paths


@lru_cache(maxsize=4096)
def _line(code: CodeType, instruction: int) -> int:
    """The line of an instruction: asking a running frame for it takes longer than all else that a tap does."""
    return next(line for start, end, line in code.co_lines() if start <= instruction < end and line is not None)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _described(path: str, shape: str, sizes: torch.Size) -> Dims:
    """Each axis with its symbol."""
    dims = _paired(shape, sizes)
    if dims is None:
        raise TraceError(f"{path} has shape {tuple(sizes)}, which ({shape}) does not describe")
    return dims


@lru_cache(maxsize=4096)
def _paired(shape: str, sizes: torch.Size) -> Dims | None:
    """Each axis with its symbol; None where the symbols are not one for each axis."""
    symbols = shape.split()
    return tuple(zip(symbols, sizes, strict=True)) if len(symbols) == len(sizes) else None


def _bind(path: str, dims: Dims, shape: str, sizes: dict[str, int]) -> None:
    """Hold each symbol to one size per module."""
    for symbol, size in dims:
        expected = sizes.get(symbol)
        if expected is None:
            expected = sizes[symbol] = _product(symbol, sizes) or size
        if size != expected:
            raise TraceError(f"{path} ({shape}): {symbol} was {expected} and is now {size}")


def _product(symbol: str, sizes: Mapping[str, int]) -> int | None:
    """The size of ``H*Dh`` where those of ``H`` and ``Dh`` are known, or of ``3*D`` where that of ``D`` is."""
    factors = symbol.split("*")
    known = len(factors) > 1 and all(factor in sizes or factor.isdigit() for factor in factors)
    return prod(sizes[factor] if factor in sizes else int(factor) for factor in factors) if known else None


def nearest(path: str, known: Iterable[str]) -> str:
    """``: did you mean 'weights'?`` where something known is near; else nothing."""
    matches = difflib.get_close_matches(path, list(known), n=1)
    return f": did you mean {matches[0]!r}?" if matches else ""
