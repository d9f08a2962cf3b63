"""Layers of a script that are computed alike, one after the other, so that it says once what each of them does."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile

from visualizer.runs.paths import layer_of

Reads = Callable[[str], Set[str]]
"""Gives the stages that the line of a stage reads."""


@dataclass(frozen=True)
class Loop:
    """Layers of a stack.

    Attributes:
        stack: the path of what holds them, such as ``encoder``.
        layers: the stages of each, in the order computed. Of all that is in a layer, the next reads the last alone.
        entering: the stage that the first reads where every other one reads that.
    """

    stack: str
    layers: tuple[tuple[str, ...], ...]
    entering: str

    @property
    def carried(self) -> tuple[str, ...]:
        """The stages that share a variable: what enters, and what each layer gives."""
        return (self.entering, *(layer[-1] for layer in self.layers))

    @property
    def paths(self) -> frozenset[str]:
        """All stages in it."""
        return frozenset(path for layer in self.layers for path in layer)


def loops_in(paths: Sequence[str], reads: Reads) -> list[Loop]:
    """The loops that some stages can be computed in; the stages of a layer that is not whole are in none."""
    stacks = dict.fromkeys(path.partition(".layers.")[0] for path in paths if ".layers." in path)
    found = (_loop(stack, paths, reads) for stack in stacks)
    return [loop for loop in found if loop is not None]


def _loop(stack: str, paths: Sequence[str], reads: Reads) -> Loop | None:
    layers = _alike(stack, paths)
    if len(layers) < 2:
        return None
    first, second = layers[:2]
    entering = {
        one
        for path, same in zip(first, second, strict=True)
        if first[-1] in reads(same)
        for one in reads(path) - reads(same) - {*first}
    }
    loop = Loop(stack, layers, next(iter(entering), ""))
    return loop if len(entering) == 1 and _is_closed(loop, paths, reads) else None


def _alike(stack: str, paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The first layers of a stack that have the same stages."""
    layers: dict[int, list[str]] = {}
    for path in paths:
        if path.startswith(f"{stack}.layers."):
            layers.setdefault(layer_of(path), []).append(path)

    def within(layer: int) -> list[str]:
        return [path.removeprefix(f"{stack}.layers.{layer}.") for path in layers.get(layer, [])]

    return tuple(tuple(layers[n]) for n in takewhile(lambda n: within(n) == within(0), sorted(layers)))


def _is_closed(loop: Loop, paths: Sequence[str], reads: Reads) -> bool:
    """True if each layer reads of the others what the one before gave, and what follows what the last gave."""
    shared, inside = {loop.entering} | loop.paths, loop.paths
    for carried, layer in zip(loop.carried, loop.layers, strict=False):
        if any(reads(path) & shared - {*layer, carried} for path in layer):
            return False
    others = (path for path in paths if path not in inside)
    return not any(reads(path) & shared - {loop.carried[-1]} for path in others)
