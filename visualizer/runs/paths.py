"""Places in a trace: a stage in one layer or in all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # it brings torch, which takes a second
    from model import Trace

Value = TypeVar("Value")


@lru_cache(maxsize=4096)
def without_layer(path: str) -> str:
    """``encoder.layers.0.self_attention.scores`` -> ``encoder.self_attention.scores``."""
    return re.sub(r"layers\.\d+\.", "", path)


def of_every_layer(by_path: Mapping[str, Value], kind: str) -> list[Value]:
    """Return what there is at a path in each layer, such as the masks of ``decoder.self_attention``."""
    return [value for path, value in by_path.items() if without_layer(path) == kind]


def in_layer(kind: str, layer: int) -> str:
    """``encoder.self_attention`` -> ``encoder.layers.0.self_attention``; an attention alone is in no layer."""
    stack, _, attention = kind.partition(".")
    return f"{stack}.layers.{layer}.{attention}" if attention else kind


def with_layer(trace: Trace, stage: str, layer: int) -> str:
    """The path of a stage in the layer nearest to ``layer``.

    Where the trace has no such stage, of the most similar one: the same in the other half of the model, one of the
    same name, the attention weights, or the first.
    """
    if stage in trace:
        return stage
    likenesses = (str, lambda path: path.partition(".")[2], lambda path: path.rpartition(".")[2])
    for likeness in likenesses:
        alike = [path for path in trace if likeness(stage) and likeness(without_layer(path)) == likeness(stage)]
        if alike:
            return alike[min(layer, len(alike) - 1)]
    modules = attention_modules(trace)
    return f"{modules[min(layer, len(modules) - 1)]}.weights" if modules else next(iter(trace))


def layer_of(path: str) -> int:
    """The layer's number in a path; 0 where it has none."""
    found = re.search(r"layers\.(\d+)\.", path)
    return int(found[1]) if found else 0


def number_in(path: str) -> int | None:
    """The first number in the path of any model, as a rule the layer's; None where it has none."""
    found = re.search(r"(?:^|\.)(\d+)\.", path)
    return int(found[1]) if found else None


def attention_modules(trace: Trace) -> tuple[str, ...]:
    """The paths of the modules that attend, in the order in which they ran."""
    places = (path.rpartition(".") for path in trace)
    return tuple(module for module, _, name in places if name == "weights")
