"""Trained weights in a file, with the recipe that made them.

The format is safetensors: numbers and a header of JSON. Reading it runs no code, whoever wrote it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from model.learning.training import RECIPES, Recipe, Weights, model_with
from model.safetensors_header import read_header
from model.texts import texts_of

say = texts_of(__name__)

MAX_BYTES = 16 * 2**20
"""A longer file is refused unread; no recipe needs as much."""

SHIPPED = Path(__file__).parent / "trained"
"""The folder of the models that come with the program, one per task."""

_KEY = "headlight"
_DAMAGED = say("damaged")
_STORED = (torch.float16, torch.float32)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The result of a training run.

    Attributes:
        recipe: what was trained.
        step: how often the weights were changed.
        weights: every parameter, float32.
    """

    recipe: Recipe
    step: int
    weights: Weights


def dump(checkpoint: Checkpoint, dtype: torch.dtype = torch.float32) -> bytes:
    """The content of a file; the same checkpoint gives the same bytes.

    Args:
        checkpoint: what to write.
        dtype: float32, or float16 for half the size.
    """
    tensors = {name: value.to(dtype).contiguous() for name, value in checkpoint.weights.items()}
    about = json.dumps({"recipe": asdict(checkpoint.recipe), "step": checkpoint.step}, sort_keys=True)
    return save_tensors(tensors, {_KEY: about})


def load(content: bytes) -> Checkpoint:
    """Read the content of a file.

    Raises:
        ValueError: it is too long, no safetensors file, without a recipe, or its recipe or weights will not do.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(say("too_long", n=len(content), most=MAX_BYTES))
    header = read_header(io.BytesIO(content), damaged=_DAMAGED)
    try:
        weights = load_tensors(content)
    except SafetensorError as error:
        raise ValueError(_DAMAGED) from error
    recipe, step = _read_about(header)
    for name, value in weights.items():
        if value.dtype not in _STORED:
            raise ValueError(say("number_type", name=name, dtype=value.dtype))
        if not value.isfinite().all():
            raise ValueError(say("not_finite", name=name))
    model_with(recipe, weights)
    return Checkpoint(recipe, step, {name: value.float() for name, value in weights.items()})


def shipped(task: str) -> Checkpoint:
    """The model that comes with the program for a task.

    Raises:
        ValueError: there is none for it.
    """
    if task not in RECIPES:
        raise ValueError(say("unknown_task", task=task, tasks=", ".join(RECIPES)))
    return load((SHIPPED / f"{task}.safetensors").read_bytes())


def _read_about(header: Mapping[str, Any]) -> tuple[Recipe, int]:
    """The recipe and the step from the header of a file that is known to be safetensors."""
    try:
        about = json.loads(header.get("__metadata__", {})[_KEY])
        recipe, step = about["recipe"], about["step"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(say("no_recipe")) from error
    made = _read_recipe(recipe)
    if type(step) is not int or not 0 <= step <= made.steps:
        raise ValueError(say("step", step=step, steps=made.steps))
    return made, step


def _read_recipe(entry: Any) -> Recipe:  # noqa: ANN401 - whatever the file holds
    usual = asdict(RECIPES["reverse"])
    if not isinstance(entry, Mapping) or entry.keys() != usual.keys():
        raise ValueError(say("incomplete_recipe", fields=", ".join(usual)))
    for name, value in usual.items():
        if type(entry[name]) is not type(value):
            raise ValueError(say("field", name=name, value=entry[name], kind=type(value).__name__))
    return Recipe(**entry)
