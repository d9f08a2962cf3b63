"""Trainings that were recorded: their curves, and the weights of a few moments to compute all else from.

A recording is a file in the format safetensors: the weights in half precision, a header with the recipe and the
curves. The weights before the first step follow from the seed, and those after the last step of a task's recipe are
the model that comes with the program, so a recording holds neither.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from model.learning.checkpoints import shipped
from model.learning.training import EXPERIMENTS, RECIPES, Recipe, Weights, copied_weights
from model.safetensors_header import read_header
from model.sources.weights import build_model
from model.texts import texts_of

say = texts_of(__name__)

RECORDED = Path(__file__).parent / "recorded"
"""The folder of the files."""

RECORDINGS: Mapping[str, Recipe] = RECIPES | {
    f"{name}_{which}": recipe
    for name, experiment in EXPERIMENTS.items()
    for which, recipe in (("intact", experiment.intact), ("changed", experiment.changed))
    if recipe not in RECIPES.values()
}
"""The recorded recipes, by the name of their file: that of every task, and those of experiments beside them."""

_KEY = "headlight"


@dataclass(frozen=True, eq=False)
class Recording:
    """One training as it went.

    Attributes:
        recipe: what was trained.
        seconds: how long one core computed.
        losses: by step, as ``train`` reports them.
        matches: the share of the held-out texts answered without a mistake, by step. At a step with a snapshot it
            is that of the weights as they are stored.
        snapshots: every parameter, by step, in ascending order; the first before the first step, the last after
            the last one.
    """

    recipe: Recipe
    seconds: float
    losses: Mapping[int, float]
    matches: Mapping[int, float]
    snapshots: Mapping[int, Weights]


def dump(recording: Recording) -> bytes:
    """The content of a file, without the weights that are known from elsewhere."""
    about = {
        "recipe": asdict(recording.recipe),
        "seconds": recording.seconds,
        "losses": recording.losses,
        "matches": recording.matches,
    }
    known = _known(recording.recipe)
    tensors = {
        f"{step}/{name}": value.half().contiguous()
        for step, weights in recording.snapshots.items()
        if step not in known
        for name, value in weights.items()
    }
    return save_tensors(tensors, {_KEY: json.dumps(about)})


@cache
def recorded(recipe: Recipe) -> Recording | None:
    """The recording of a recipe; None where there is none."""
    name = next((name for name, each in RECORDINGS.items() if each == recipe), None)
    return None if name is None else load((RECORDED / f"{name}.safetensors").read_bytes())


def load(content: bytes) -> Recording:
    """Read the content of a file of our own."""
    header = read_header(io.BytesIO(content), damaged=say("no_recording"))
    about = json.loads(header["__metadata__"][_KEY])
    recipe = Recipe(**about["recipe"])
    snapshots: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in load_tensors(content).items():
        step, _, name = key.partition("/")
        snapshots.setdefault(int(step), {})[name] = value.float()
    every: dict[int, Weights] = {**_known(recipe), **snapshots}
    return Recording(
        recipe,
        about["seconds"],
        _by_step(about["losses"]),
        _by_step(about["matches"]),
        {step: every[step] for step in sorted(every)},
    )


def _known(recipe: Recipe) -> dict[int, Weights]:
    """The weights that no file needs to hold."""
    known = {0: copied_weights(build_model(recipe.config, "random", recipe.seed))}
    return known | {recipe.steps: shipped(recipe.task).weights} if recipe == RECIPES[recipe.task] else known


def _by_step(values: Mapping[str, float]) -> dict[int, float]:
    return {int(step): value for step, value in values.items()}
