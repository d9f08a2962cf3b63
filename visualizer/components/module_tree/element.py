"""Every operation of a model as chips, in the modules that called them, which fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from visualizer.colors import Role
from visualizer.components.packing import pack
from visualizer.components.picture import Picture


@dataclass(frozen=True)
class CalledOperation:
    """One operation.

    module: the path of the module that called it, "" for the model itself. label: what it does. role: its colour.
    shape: of what it came to, in words.
    """

    module: str
    label: str
    role: Role = "neutral"
    shape: str = ""


@dataclass(frozen=True)
class KnownStep:
    """Operations that are one chip until it is opened.

    called: what the chip says. operations: their indices, in the order computed.
    """

    called: CalledOperation
    operations: tuple[int, ...]


def module_tree(
    operations: Sequence[CalledOperation], current: int, *, steps: Sequence[KnownStep] = (), seq: int, key: str
) -> Picture:
    """The chips. Its event `stage` is {"index": of the operation or step gone to, "seq": count}.

    operations: in the order computed; names may hold anything. current: the index of the lit one. steps: those that
    are several operations, each of which is in one step at most; their indices follow those of the operations. seq:
    the number of the last event that `current` takes account of, 0 before the first: an older `current` is ignored.
    """
    called = [*operations, *(step.called for step in steps)]
    modules = list(dict.fromkeys(one.module for one in called))
    places = {module: place for place, module in enumerate(modules)}
    entries = [[places[one.module], one.label, one.role, one.shape] for one in called]
    header = {
        "key": key,
        "seq": seq,
        "current": current,
        "modules": modules,
        "operations": entries[: len(operations)],
        "steps": [[*entry, step.operations] for entry, step in zip(entries[len(operations) :], steps, strict=True)],
    }
    return Picture("module_tree/element.js", pack(header, {}), key, ("stage",))
