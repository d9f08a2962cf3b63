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


def module_tree(operations: Sequence[CalledOperation], current: int, *, seq: int, key: str) -> Picture:
    """The chips. Its event `stage` is {"index": of the operation gone to, "seq": count}.

    operations: in the order computed; names may hold anything. current: the index of the lit one. seq: the number
    of the last event that `current` takes account of, 0 before the first: an older `current` is ignored.
    """
    modules = list(dict.fromkeys(operation.module for operation in operations))
    places = {module: place for place, module in enumerate(modules)}
    header = {
        "key": key,
        "seq": seq,
        "current": current,
        "modules": modules,
        "operations": [[places[one.module], one.label, one.role, one.shape] for one in operations],
    }
    return Picture("module_tree/element.js", pack(header, {}), key, ("stage",))
