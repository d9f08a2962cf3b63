"""Models that are still to be given their weights: the modules of each kind of model are made once.

Making the modules of a small model, with the numbers that PyTorch gives them, takes longer than filling it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from model.config import TransformerConfig

Model = TypeVar("Model", bound=nn.Module)


def unfilled(kind: Callable[[TransformerConfig], Model], config: TransformerConfig) -> Model:
    """A model with parameters of its own that hold any numbers, in evaluation mode.

    Its buffers are those of every model of the kind: they are fixed tables.

    Args:
        kind: the class of the model.
        config: what it is made with.
    """
    pattern = cast(Model, _pattern(kind, config))
    return _twin(pattern, {}, lambda like: torch.empty(like.shape))


@lru_cache(maxsize=16)
def _pattern(kind: Callable[[TransformerConfig], nn.Module], config: TransformerConfig) -> nn.Module:
    """A model whose parameters have a shape and no numbers, the same wherever the first one of the kind is made."""
    with torch.inference_mode(False), torch.device("cpu"):
        return _twin(kind(config).eval(), {}, lambda like: torch.empty_like(like, device="meta"))


def _twin(module: Model, made: dict[int, nn.Parameter], new: Callable[[Tensor], Tensor]) -> Model:
    """A module like another one, with parameters of its own; what was one parameter still is.

    Args:
        module: the other one.
        made: the new parameters by the ids of those that they stand for.
        new: what a parameter holds in place of another one.
    """
    twin = object.__new__(type(module))
    own = vars(twin)
    for name, value in vars(module).items():
        own[name] = value.copy() if isinstance(value, dict | set) else value
    for name, parameter in own["_parameters"].items():
        if parameter is not None:
            if id(parameter) not in made:
                made[id(parameter)] = nn.Parameter(new(parameter))
            own["_parameters"][name] = made[id(parameter)]
    for name, child in own["_modules"].items():
        own["_modules"][name] = None if child is None else _twin(child, made, new)
    return twin
