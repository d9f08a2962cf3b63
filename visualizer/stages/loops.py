"""Layers of a script that are computed alike, one after the other, so that it says once what each of them does."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import takewhile

from visualizer.runs.paths import layer_of

Reads = Mapping[str, Set[str]]
"""The stages that the line of each stage reads, in the order computed."""


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


def loops_in(reads: Reads) -> list[Loop]:
    """The loops that some stages can be computed in; the stages of a layer that is not whole are in none."""
    stacks = dict.fromkeys(path.partition(".layers.")[0] for path in reads if ".layers." in path)
    found = (_loop(stack, reads) for stack in stacks)
    return [loop for loop in found if loop is not None]


def _loop(stack: str, reads: Reads) -> Loop | None:
    layers = _layers(stack, reads)
    if len(layers) < 2:
        return None
    first, second = (frozenset().union(*(reads[path] for path in layer)) - {*layer} for layer in layers[:2])
    loop = Loop(stack, layers, next(iter(first - second), ""))
    is_alike = all(_read_in(loop, n, reads) == _read_in(loop, 0, reads) for n in range(len(layers)))
    return loop if is_alike and _is_closed(loop, reads) else None


def _layers(stack: str, reads: Reads) -> tuple[tuple[str, ...], ...]:
    """The first layers of a stack that have the same stages."""
    layers: dict[int, list[str]] = {}
    for path in reads:
        if path.startswith(f"{stack}.layers."):
            layers.setdefault(layer_of(path), []).append(path)

    def within(layer: int) -> list[str]:
        return [path.removeprefix(f"{stack}.layers.{layer}.") for path in layers.get(layer, [])]

    return tuple(tuple(layers[n]) for n in takewhile(lambda n: within(n) == within(0), sorted(layers)))


def _read_in(loop: Loop, n: int, reads: Reads) -> list[set[str]]:
    """For each stage of a layer what it reads, by names that are the same in a layer that does the same."""
    names = {loop.carried[n]: "x"} | {path: path.replace(f".{n}.", ".", 1) for path in loop.layers[n]}
    return [{names.get(each, each) for each in reads[path]} for path in loop.layers[n]]


def _is_closed(loop: Loop, reads: Reads) -> bool:
    """True if what follows reads of the loop only what the last layer gave."""
    hidden = {loop.entering} | loop.paths - {loop.carried[-1]}
    return not any(reads[path] & hidden for path in reads.keys() - loop.paths)
