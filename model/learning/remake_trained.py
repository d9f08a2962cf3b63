"""Make the models and the recorded trainings that come with the program again.

    python -m model.learning.remake_trained              all, which takes one core some minutes
    python -m model.learning.remake_trained copy sort    those named

One training gives both the model of a task and its recording. Each model stays below 1 MB, and all recordings
together below 4 MB.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from model.learning import training_recordings
from model.learning.checkpoints import SHIPPED, Checkpoint, dump, load
from model.learning.tasks import TASKS
from model.learning.training import (
    RECIPES,
    Progress,
    Recipe,
    Weights,
    exact_match,
    held_out_batch,
    model_with,
    train,
)
from model.learning.training_recordings import RECORDED, RECORDINGS, Recording, recorded

RIGHT = {task: 0.98 if task == "small_english" else 0.99 for task in RECIPES}
"""The least share of held-out texts that the model of each task has to answer, or to read without a mistake."""

KEPT_AT = (0.6, 0.25, 0.05)
"""A recording keeps the milestones at which the loss first falls below these shares of what it was at first."""

LARGE = 60_000
"""A model with more parameters keeps fewer of them, to be small."""

_KEPT_OF_LARGE = {"reverse": KEPT_AT, "repeat_block": KEPT_AT[1:2]}
_KEPT_OF_LARGE |= dict.fromkeys(("small_english", "small_translator"), (0.5,))
_TESTED = 2000


@dataclass(frozen=True, eq=False)
class Trained:
    """All of one training that can be of use.

    Attributes:
        recipe: what was trained.
        seconds: how long one core computed.
        reports: every one; only milestones and the last hold their weights.
    """

    recipe: Recipe
    seconds: float
    reports: Sequence[Progress]


def run(recipe: Recipe) -> Trained:
    """Train, and keep what there is at each report."""
    began = time.thread_time()
    reports = [
        report if report.exact_match is not None else Progress(report.step, report.loss, None, {})
        for report in train(recipe)
    ]
    return Trained(recipe, time.thread_time() - began, reports)


def model_file(trained: Trained) -> bytes:
    """The file of the model, in half precision.

    Raises:
        RuntimeError: as it is read back, it answers less than ``RIGHT`` of the held-out texts.
    """
    recipe, last = trained.recipe, trained.reports[-1]
    content = dump(Checkpoint(recipe, last.step, last.weights), torch.float16)
    right = _share_right(recipe, load(content).weights, _TESTED)
    if right < (least := RIGHT[recipe.task]):
        raise RuntimeError(f"{recipe.task}: {right:.1%} of the held-out texts are answered, less than {least:.0%}")
    return content


def recording_of(trained: Trained, chosen: Collection[int]) -> Recording:
    """The recording, with snapshots of the milestones ``chosen``, in half precision, beside the first and last."""
    recipe, reports = trained.recipe, trained.reports
    milestones = {report.step: report for report in reports if report.exact_match is not None}
    steps = sorted({0, *chosen, recipe.steps})
    snapshots = {
        step: {name: value.half().float() for name, value in milestones[step].weights.items()} for step in steps
    }
    snapshots[0] = dict(milestones[0].weights)  # not stored: it follows from the seed
    measured = {step: report.exact_match or 0.0 for step, report in milestones.items()}
    stored = {step: _share_right(recipe, weights) for step, weights in snapshots.items()}
    losses = {report.step: round(report.loss, 6) for report in reports}
    return Recording(recipe, round(trained.seconds, 1), losses, measured | stored, snapshots)


def kept_steps(name: str, trained: Trained) -> set[int]:
    """The milestones of a training to keep: none of a large model beside the few of ``_KEPT_OF_LARGE``.

    A small one that stands beside the training of a task, in an experiment, keeps the same as that.
    """
    recipe, first = trained.recipe, trained.reports[0]
    usual = RECIPES[recipe.task]
    is_large = sum(value.numel() for value in first.weights.values()) > LARGE
    if not is_large and recipe != usual:
        beside = recorded(usual)
        return set() if beside is None else {*beside.snapshots}
    shares = _KEPT_OF_LARGE.get(name, ()) if is_large else KEPT_AT
    milestones = [report for report in trained.reports if report.exact_match is not None]
    return {next(m.step for m in milestones if m.loss < share * first.loss) for share in shares}


def _share_right(recipe: Recipe, weights: Weights, *n_texts: int) -> float:
    return exact_match(model_with(recipe, weights), held_out_batch(TASKS[recipe.task], *n_texts))


def main() -> None:
    """Write the files of the recordings named, or of all."""
    torch.set_num_threads(1)
    for folder in (SHIPPED, RECORDED):
        folder.mkdir(exist_ok=True)
    for name in sys.argv[1:] or RECORDINGS:
        trained = run(RECORDINGS[name])
        if name in RECIPES:
            (SHIPPED / f"{name}.safetensors").write_bytes(model_file(trained))
        recording = recording_of(trained, kept_steps(name, trained))
        content = training_recordings.dump(recording)
        (RECORDED / f"{name}.safetensors").write_bytes(content)
        print(
            f"{name:24} {recording.matches[trained.recipe.steps]:7.2%} of the held-out texts  "
            f"{recording.seconds:5.1f} s  {len(content):9,} bytes, steps {list(recording.snapshots)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
