"""The shipped models, known before torch is loaded: read from the headers of their files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.safetensors_header import read_header
from model.texts import texts_of

say = texts_of(__name__)

_LEARNING = Path(__file__).parents[2] / "model" / "learning"
_SHAPE = ("n_heads", "n_layers", "d_model", "d_ff", "norm", "positions", "scale_scores", "seed")
_TASKS = tomllib.loads((_LEARNING / "tasks.toml").read_text(encoding="utf-8"))

CONTINUED = ("small_english",)
"""The tasks whose texts are continued, and have no answer."""


@dataclass(frozen=True)
class TrainedModel:
    """One shipped model.

    Attributes:
        task: the name of what it has learned.
        title: the same for a person.
        example: a text to begin with.
        shape: the settings that its training fixes.
        recipe: all that its training depended on.
    """

    task: str
    title: str
    example: str
    shape: Mapping[str, Any]
    recipe: Mapping[str, Any]

    def masks(self, is_padded: bool) -> tuple[str, ...]:
        """The masks that it was trained with, which hide the padding where there can be any."""
        causal = () if self.shape["architecture"] == "encoder" else ("causal",)
        return (*causal, "padding") if is_padded else causal


def _read(task: str) -> TrainedModel:
    texts = _TASKS[task]
    with (_LEARNING / "trained" / f"{task}.safetensors").open("rb") as file:
        header = read_header(file, damaged=say("damaged", task=task))
    recipe = json.loads(header["__metadata__"]["headlight"])["recipe"]
    shape = {name: recipe[name] for name in _SHAPE} | {"architecture": texts["architecture"]}
    return TrainedModel(task, texts["title"], texts["example"], shape, recipe)


TRAINED_MODELS: Mapping[str, TrainedModel] = {task: _read(task) for task in _TASKS}
"""The shipped models by task, in the order of the menu."""
