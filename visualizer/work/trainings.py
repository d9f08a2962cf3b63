"""Trainings in a process of their own, so that drawing the page does not slow them.

``reports_of_a_process`` starts this module as a program, which reads recipes and writes frames of safetensors.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from headlight.process import frames_of, work
from model.learning.training import Progress, Recipe, train
from model.safetensors_header import read_header

Reports = tuple[int, tuple[Progress, ...]]
"""The index of a recipe, and its reports; the last has its weights, and so has each with an exact match."""

Trainer = Callable[[Sequence[Recipe]], Generator[Reports | None]]
"""Trains recipes, and says how it goes; None where there is nothing new, so that whoever waits can go."""

EVERY_SECONDS = 0.25
"""The interval at which a process reports of each recipe, beside its milestones."""

_COMMAND = (sys.executable, "-m", __name__)
_KEY = "headlight"


def reports_in_turns(recipes: Sequence[Recipe]) -> Generator[Reports]:
    """Train in this thread: one report after the other, always of the recipe that is furthest behind."""
    runs = {index: train(recipe) for index, recipe in enumerate(recipes)}
    done = dict.fromkeys(runs, 0.0)
    while runs:
        index = min(runs, key=done.__getitem__)
        if (progress := next(runs[index], None)) is None:
            del runs[index]
        else:
            done[index] = progress.step / recipes[index].steps
            yield index, (progress,)


def reports_of_a_process(recipes: Sequence[Recipe], command: Sequence[str] = _COMMAND) -> Generator[Reports | None]:
    """Train in a process of its own, which ends with the last report or when no more is asked for.

    Raises:
        RuntimeError: the process failed.
    """
    for frame in frames_of(command, [asdict(recipe) for recipe in recipes]):
        yield unpacked(frame) if frame else None


def packed(index: int, reports: Sequence[Progress]) -> bytes:
    """A frame: the numbers of all reports, and the weights of the last."""
    numbers = [(report.step, report.loss, report.exact_match) for report in reports]
    return save_tensors(dict(reports[-1].weights), {_KEY: json.dumps([index, numbers])})


def unpacked(frame: bytes) -> Reports:
    """Return what ``packed`` was given; of the reports the last has its weights."""
    header = read_header(io.BytesIO(frame), damaged="a damaged frame")
    index, numbers = json.loads(header["__metadata__"][_KEY])
    weights = load_tensors(frame)
    last = len(numbers) - 1
    return index, tuple(
        Progress(step, loss, exact_match, weights if place == last else {})
        for place, (step, loss, exact_match) in enumerate(numbers)
    )


def main(fields: Sequence[Mapping[str, Any]], write: Callable[[bytes], None]) -> None:
    """Train the recipes that are given, and write what they report."""
    torch.set_num_threads(1)
    recipes = [Recipe(**each) for each in fields]
    waiting: list[list[Progress]] = [[] for _ in recipes]
    reported_at = [0.0] * len(recipes)
    for index, reports in reports_in_turns(recipes):
        waiting[index] += reports
        last = waiting[index][-1]
        is_due = time.monotonic() - reported_at[index] >= EVERY_SECONDS
        if is_due or last.exact_match is not None:
            write(packed(index, waiting[index]))
            waiting[index].clear()
            reported_at[index] = time.monotonic()


if __name__ == "__main__":
    work(main)
