"""Recorded trainings are what the training that they name really does."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load as load_tensors

from model.learning import training_recordings
from model.learning.checkpoints import shipped
from model.learning.remake_trained import recording_of, run
from model.learning.tasks import TASKS, make_batch
from model.learning.training import (
    EXPERIMENTS,
    RECIPES,
    Recipe,
    cross_entropy,
    exact_match,
    held_out_batch,
    milestones,
    model_with,
    texts_of_step,
    train,
)
from model.learning.training_recordings import RECORDED, RECORDINGS, recorded

every_recording = pytest.mark.parametrize("name", RECORDINGS)
ONE_TEXT = 1 / 256 + 1e-9


@every_recording
def test_its_first_steps_are_those_of_the_training(name):
    recipe = RECORDINGS[name]
    found = recorded(recipe)
    assert found.recipe == recipe
    for report in itertools.islice(train(recipe), 2):
        assert found.losses[report.step] == pytest.approx(report.loss, rel=1e-5, abs=1e-6)


@every_recording
def test_its_snapshots_are_those_of_its_curves(name):
    """Loss and exact match, computed again from the weights in the file."""
    recipe, found = RECORDINGS[name], recorded(RECORDINGS[name])
    task = TASKS[recipe.task]
    assert found.snapshots.keys() >= {0, recipe.steps}
    assert set(found.matches) == set(milestones(recipe.steps))
    assert set(found.losses) >= set(found.matches)
    for step, weights in found.snapshots.items():
        model = model_with(recipe, weights)
        assert exact_match(model, held_out_batch(task)) == pytest.approx(found.matches[step], abs=ONE_TEXT)
        if step <= 500:  # to draw the texts of all earlier steps takes as many batches
            batch = make_batch(task, texts_of_step(recipe, step), is_causal=recipe.is_causal)
            with torch.inference_mode():
                loss = cross_entropy(model(*batch.inputs, **batch.masks), batch.labels)
            assert loss.item() == pytest.approx(found.losses[step], rel=1e-2, abs=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_the_recording_of_a_task_ends_in_the_model_that_comes_with_the_program(task):
    last = recorded(RECIPES[task]).snapshots[RECIPES[task].steps]
    checkpoint = shipped(task)
    assert checkpoint.recipe == RECIPES[task]
    assert all(torch.equal(value, checkpoint.weights[name]) for name, value in last.items())
    if TASKS[task].answer is not None:  # else several words may come next, and the loss has a floor
        assert recorded(RECIPES[task]).losses[RECIPES[task].steps] < 0.01


def test_every_experiment_is_recorded_whole():
    for experiment in EXPERIMENTS.values():
        assert recorded(experiment.intact) is not None
        assert recorded(experiment.changed) is not None


def test_another_recipe_is_not_recorded():
    assert recorded(replace(RECIPES["reverse"], seed=1)) is None


def test_recordings_are_small_together():
    files = sorted(RECORDED.iterdir())
    assert [file.stem for file in files] == sorted(RECORDINGS)
    assert sum(file.stat().st_size for file in files) < 4_000_000


def test_what_is_written_is_read_and_the_first_weights_are_not_stored():
    recipe = Recipe("copy", d_model=16, n_heads=2, d_ff=16, batch_size=8, steps=30, seed=4)
    trained = run(recipe)
    written = recording_of(trained, [milestones(30)[5]])
    content = training_recordings.dump(written)
    read = training_recordings.load(content)
    assert (read.recipe, read.seconds, read.losses, read.matches) == (
        recipe,
        written.seconds,
        written.losses,
        written.matches,
    )
    assert list(read.snapshots) == [0, milestones(30)[5], 30]
    first = next(train(recipe))
    assert all(torch.equal(read.snapshots[0][name], value) for name, value in first.weights.items())
    for step, weights in written.snapshots.items():
        assert all(torch.equal(read.snapshots[step][name], value) for name, value in weights.items())
    assert {key.partition("/")[0] for key in load_tensors(content)} == {str(milestones(30)[5]), "30"}
