"""What is known of the shipped models before torch is loaded: read from the headers of their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.safetensors_header import read_header

_SHIPPED = Path(__file__).parents[2] / "model" / "learning" / "trained"
_SHAPE = ("n_heads", "n_layers", "d_model", "d_ff", "norm", "positions", "scale_scores", "seed")
_TASKS = {
    "reverse": ("Reverse", "encoder-decoder", "headlight"),
    "reverse_digits": ("Reverse digits", "encoder-decoder", "536"),
    "copy": ("Copy", "encoder-decoder", "attention"),
    "sort": ("Sort", "encoder-decoder", "3141592653"),
    "add": ("Add two numbers", "encoder-decoder", "68+57"),
    "remove_vowels": ("Remove vowels", "encoder-decoder", "headlight"),
    "repeat_block": ("Repeat the random block", "decoder", "qzfkx"),
    "match_brackets": ("Match brackets", "encoder", "(()())())"),
    "mark_repeats": ("Mark what repeats", "encoder", "headlamp"),
    "small_english": ("Small English", "decoder", "the cat sat on the mat because it was"),
    "small_translator": (
        "Translate into German",
        "encoder-decoder",
        "the cat sat on the mat because it was tired .",
    ),
}

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
    title, architecture, example = _TASKS[task]
    with (_SHIPPED / f"{task}.safetensors").open("rb") as file:
        header = read_header(file, damaged=f"the trained model of {task} is damaged")
    recipe = json.loads(header["__metadata__"]["headlight"])["recipe"]
    shape = {name: recipe[name] for name in _SHAPE} | {"architecture": architecture}
    return TrainedModel(task, title, example, shape, recipe)


TRAINED_MODELS: Mapping[str, TrainedModel] = {task: _read(task) for task in _TASKS}
"""The shipped models by task, in the order of the menu."""
