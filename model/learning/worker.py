"""Trainings in a process of their own, so that drawing the page does not slow them.

Threads of one process take turns at the interpreter: a training in the process of the page waits for every picture.
``reports_of_a_process`` starts this module as a program, which reads recipes and writes frames: a length, then as
many bytes of safetensors. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event, Thread
from typing import IO

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from model.learning.training import Progress, Recipe, train
from model.safetensors_header import read_header

Reports = tuple[int, tuple[Progress, ...]]
"""The index of a recipe, and its reports; the last has its weights, and so has each with an exact match."""

Trainer = Callable[[Sequence[Recipe], Event], Generator[Reports]]
"""Trains recipes, and says how it goes; once the event is set, nobody wants to hear it any more."""

EVERY_SECONDS = 0.25
"""The interval at which a process reports of each recipe, beside its milestones."""

_ROOT = Path(__file__).parents[__name__.count(".")]
_COMMAND = (sys.executable, "-m", __name__)
_KEY = "headlight"
_LENGTH_BYTES = 8


def reports_in_turns(recipes: Sequence[Recipe], _ended: Event | None = None) -> Generator[Reports]:
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


def reports_of_a_process(
    recipes: Sequence[Recipe], ended: Event, command: Sequence[str] = _COMMAND
) -> Generator[Reports]:
    """Train in a process of its own, which ends with the last report, when no more is asked for, or with ``ended``.

    Raises:
        RuntimeError: the process failed, or was ended.
    """

    def end() -> None:  # at once: the next report may be seconds away
        ended.wait()
        process.kill()

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT) as process:
        Thread(target=end, name="end of a training", daemon=True).start()
        try:
            given, frames = process.stdin, process.stdout
            if given is None or frames is None:
                raise RuntimeError("the training process has no pipes")
            with suppress(BrokenPipeError), given:  # it is gone already: how it ended says more
                given.write(json.dumps([asdict(recipe) for recipe in recipes]).encode())
            while frame := _read_frame(frames):
                yield unpacked(frame)
            if process.wait() != 0:
                raise RuntimeError(f"the training process ended with exit code {process.returncode}")
        finally:
            process.kill()


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


def _read_frame(frames: IO[bytes]) -> bytes:
    """The next frame; nothing at the end, or where the process ended in the midst of one."""
    length = int.from_bytes(frames.read(_LENGTH_BYTES), "little")
    frame = frames.read(length)
    return frame if len(frame) == length else b""


def main() -> None:
    """Train the recipes that are given, and write what they report."""
    torch.set_num_threads(1)
    recipes = [Recipe(**given) for given in json.load(sys.stdin)]
    waiting: list[list[Progress]] = [[] for _ in recipes]
    written = [0.0] * len(recipes)
    for index, reports in reports_in_turns(recipes):
        waiting[index] += reports
        last = waiting[index][-1]
        is_due = time.monotonic() - written[index] >= EVERY_SECONDS
        if is_due or last.exact_match is not None:
            frame = packed(index, waiting[index])
            sys.stdout.buffer.write(len(frame).to_bytes(_LENGTH_BYTES, "little") + frame)
            sys.stdout.buffer.flush()
            waiting[index].clear()
            written[index] = time.monotonic()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # whoever asked has gone
        os._exit(1)
