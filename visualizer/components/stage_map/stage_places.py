"""The place of every stage in a model: the layer, and the part of it, that its module is in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

NO_LAYERS = ("inputs", "end", "output")
"""The sections of a track that are no layers."""


@dataclass(frozen=True)
class StageRef:
    """One stage.

    path: where it stands in the trace. label: its short name. role: its colour. shape: in words, where it is known.
    block: the box that it is drawn in where no module of its own says so: an "add" has the norm straight after, an
        "operation" its neighbours, a "sum" none; a box of its own where it is empty.
    is_telling: whether it is the one to open when its whole box is chosen.
    title: what a person calls it; its label where there is none.
    is_detail: whether it stands among the stages of its block only where all of them do.
    also: the paths of other stages that are the very same tensor, and stand for it here.
    module: the module that computed it; where it is empty, the path without its last name.
    reads: the paths of the stages that it was computed from, where they are known.
    """

    path: str
    label: str
    role: str = "neutral"
    shape: str = ""
    block: str = ""
    is_telling: bool = False
    title: str = ""
    is_detail: bool = False
    also: tuple[str, ...] = ()
    module: str = ""
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """The place of a stage: its track, the section of the track, its module there, and the one it is drawn in.

    A section is ``inputs``, ``end``, ``output``, the path of a layer, or "" in a model without layers.
    """

    stage: StageRef
    track: str
    section: str
    module: str
    owner: str


def places_of(stages: Sequence[StageRef]) -> list[Place]:
    """The place of every stage: in its layer, else before, between or after the layers.

    Raises:
        ValueError: a path is not of names joined by dots.
    """
    for stage in stages:
        if not all(stage.path.split(".")):
            raise ValueError(f"path ({stage.path!r}) must be names joined by dots")
    modules = [stage.module or _parent(stage.path) for stage in stages]
    holders = {holder for module in modules for holder in _around(module)}
    layers = _layers(modules, holders)
    tracks = _tracks(list(dict.fromkeys(filter(None, layers))))
    ends = {tracks[layer]: index for index, layer in enumerate(layers) if layer}
    places: list[Place] = []
    last: dict[str, str] = {}  # of each track that has begun, the layer that came last
    for index, (stage, module, layer) in enumerate(zip(stages, modules, layers, strict=True)):
        around = [track for track in ends if track and _is_in(module, track)]
        still_to_come = [track for track, end in ends.items() if index < end]
        track = tracks[layer] if layer else next(iter((*around, *still_to_come)), None)
        if layer:
            last[tracks[layer]] = layer
        if track is None:
            section = "output" if ends else ""
        else:
            section = last.get(track, "inputs") if index <= ends[track] else "end"
        inside = _inside(module, layer or track or "")
        owner = _owner(inside, layer, holders)
        beyond = inside if section in NO_LAYERS else _inside(inside, owner) if owner else ""
        places.append(Place(_titled(stage, beyond), track or "", section, inside, owner))
    return places


def _layers(modules: Sequence[str], holders: set[str]) -> list[str]:
    """The layer that each module is, or is in; "" for none."""
    numbered = {holder for holder in holders if _is_numbered(holder, holders)}
    chosen = numbered or {holder for holder in holders if all(_is_in(module, holder) for module in modules)}
    return [next((one for one in (*_around(module), module) if one in chosen), "") for module in modules]


def _is_numbered(module: str, others: set[str]) -> bool:
    """True for ``layers.0``, and for ``layer_0`` beside others of that name."""
    stem = without_number(module)
    is_number = stem[-1:] in (".", "")
    return stem != module and (is_number or sum(without_number(other) == stem for other in others) > 1)


def without_number(name: str) -> str:
    """``layer_`` of ``layer_0``."""
    return name.rstrip("0123456789")


def _tracks(layers: Sequence[str]) -> dict[str, str]:
    """The module that is the track of each layer: ``encoder`` or ``decoder``, or the one around all of them."""
    lists = [name.split(".") for name in dict.fromkeys(map(_parent, layers))]
    shared = len(list(takewhile(lambda names: len(set(names)) == 1, zip(*lists, strict=False))))
    is_one = len(lists) < 2 or any(len(names) < shared + 2 for names in lists)
    length = (shared if len(lists) > 1 else shared - 1) if is_one else shared + 1
    return {layer: ".".join(layer.split(".")[: max(0, length)]) for layer in layers}


def _around(module: str) -> Iterator[str]:
    """The modules around a module, from the outermost on."""
    names = module.split(".")
    return (".".join(names[:n]) for n in range(1, len(names)))


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _is_in(module: str, holder: str) -> bool:
    return f"{module}.".startswith(f"{holder}.")


def _inside(module: str, holder: str) -> str:
    """The path of a module from one around it; its whole path where it is not in that."""
    return module.removeprefix(holder).removeprefix(".") if _is_in(module, holder) else module


def _owner(module: str, layer: str, holders: set[str]) -> str:
    """The module of a layer that a stage is drawn in: ``attention`` of ``attention.self``.

    Numbered parts that hold others are passed over, as ``layer.0`` in ``layer.0.attention``; "" of nothing else.
    """
    names = module.split(".")
    start = 0
    while start < len(names):
        end = start + (1 if names[start].isdigit() else 2)
        part = names[:end]
        if not part[-1].isdigit() or ".".join(filter(None, (layer, *part))) not in holders:
            return ".".join(names[: start + 1])
        start = end
    return ""


def _titled(stage: StageRef, module: str) -> StageRef:
    """A stage; the title of an operation says the module that it is of within its block."""
    if not module or stage.block not in ("operation", "sum"):
        return stage
    return replace(stage, title=f"{module} · {stage.title or stage.label}")
