"""Files of trained weights: nothing is lost, and nothing that does not fit gets in."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections import deque
from dataclasses import asdict, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save

from model import record
from model.analysis.metrics import METRICS, Attention
from model.learning import checkpoints
from model.learning.checkpoints import SHIPPED, Checkpoint, dump, load, shipped
from model.learning.remake_trained import RIGHT, model_file, run
from model.learning.tasks import PAD, TASKS
from model.learning.training import RECIPES, Recipe, exact_match, held_out_batch, model_with, train

RECIPE = Recipe("copy", d_model=16, n_heads=2, d_ff=16, batch_size=8, steps=2, learning_rate=0.003, seed=4)
LAST = deque(train(RECIPE), maxlen=1)[0]
CHECKPOINT = Checkpoint(RECIPE, LAST.step, LAST.weights)
FILE = dump(CHECKPOINT)


def file_with(recipe=None, step=2, weights=None, about=None):
    """The file with something else in the place of a part."""
    content = {"recipe": asdict(RECIPE) if recipe is None else recipe, "step": step}
    given_text = json.dumps(content) if about is None else about
    return save(dict(LAST.weights) if weights is None else weights, {"headlight": given_text})


def with_weight(value):
    """The weights with another one in the place of the last."""
    return dict(LAST.weights) | {"unembedding.weight": value}


def test_nothing_is_lost():
    read = load(FILE)
    assert read.recipe == RECIPE
    assert read.step == 2
    assert read.weights.keys() == LAST.weights.keys()
    for name, value in LAST.weights.items():
        assert torch.equal(read.weights[name], value), name


def test_in_half_precision_a_file_is_half_as_long_and_weights_are_rounded():
    half = dump(CHECKPOINT, torch.float16)
    n_numbers = sum(value.numel() for value in LAST.weights.values())
    assert len(FILE) - len(half) == pytest.approx(2 * n_numbers, rel=0.01)
    for name, value in load(half).weights.items():
        assert value.dtype is torch.float32
        assert torch.equal(value, LAST.weights[name].half().float())


def test_other_programs_can_read_the_file(tmp_path):
    path = tmp_path / "copy.safetensors"
    path.write_bytes(FILE)
    with safe_open(path, "pt") as opened:
        assert set(opened.keys()) == set(LAST.weights)
        assert json.loads(opened.metadata()["headlight"])["recipe"]["learning_rate"] == 0.003


def test_the_same_checkpoint_gives_the_same_bytes():
    assert dump(Checkpoint(RECIPE, 2, dict(reversed(LAST.weights.items())))) == FILE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged or not in the safetensors format"),
        (b"hello, this is a text", "damaged or not in the safetensors format"),
        (FILE[:-1], "damaged or not in the safetensors format"),
        (FILE[:100], "damaged or not in the safetensors format"),
        (FILE + b"\0", "damaged or not in the safetensors format"),
        (
            save({f"t{i}": torch.zeros(0) for i in range(10_001)}, {"of": "a person"}),
            "holds more than 10,000 arrays",
        ),
        (save(dict(LAST.weights)), "says nothing of how"),
        (save(dict(LAST.weights), {"format": "pt"}), "says nothing of how"),
        (file_with(about="{"), "says nothing of how"),
        (file_with(about="[]"), "says nothing of how"),
        (file_with(about="[" * 100_000), "says nothing of how"),
        (file_with(about='{"recipe": {}}'), "says nothing of how"),
        (file_with(recipe=[]), "the recipe in the file must give each of: task, d_model"),
        (file_with(recipe={"task": "copy"}), "the recipe in the file must give each of"),
        (file_with(recipe=asdict(RECIPE) | {"dropout": 0.1}), "the recipe in the file must give each of"),
        (file_with(recipe=asdict(RECIPE) | {"steps": "2"}), r"steps \('2'\) in the file must be of the type int"),
        (file_with(recipe=asdict(RECIPE) | {"is_causal": 1}), r"is_causal \(1\) .* type bool"),
        (file_with(recipe=asdict(RECIPE) | {"task": "cook"}), r"task \('cook'\) must be one of"),
        (file_with(recipe=asdict(RECIPE) | {"d_model": 10**9}), r"d_model \(1000000000\) must be from"),
        (file_with(recipe=asdict(RECIPE) | {"n_layers": 10**9}), r"n_layers \(1000000000\) must be from"),
        (file_with(recipe=asdict(RECIPE) | {"n_layers": 2}), "the weights must be those of the recipe: .*layers.1"),
        (file_with(recipe=asdict(RECIPE) | {"task": "sort"}), r"has shape \(29, 16\): by the recipe it must have"),
        (file_with(step=3), r"step \(3\) must be a whole number from 0 to 2"),
        (file_with(step=None), r"step \(None\) must be a whole number"),
        (file_with(weights={}), "the weights must be those of the recipe"),
        (file_with(weights=with_weight(torch.zeros(29, 17))), r"unembedding.weight has shape \(29, 17\)"),
        (
            file_with(weights=with_weight(torch.full((29, 16), torch.nan))),
            "unembedding.weight holds a weight that is",
        ),
        (file_with(weights=with_weight(torch.full((29, 16), torch.inf))), "not a finite number"),
        (file_with(weights=with_weight(torch.zeros(29, 16, dtype=torch.int64))), "holds torch.int64: it must hold"),
        (file_with(weights=dict(LAST.weights) | {"more": torch.zeros(1)}), "more is in only one of the two"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_one_sentence(content, message):
    with pytest.raises(ValueError, match=message) as refusal:
        load(content)
    assert "\n" not in str(refusal.value)


def test_a_long_file_is_refused_unread(monkeypatch):
    monkeypatch.setattr(checkpoints, "MAX_BYTES", len(FILE) - 1)
    with pytest.raises(ValueError, match=r"the file has [\d,]+ bytes; the limit is [\d,]+"):
        load(FILE)


def test_the_largest_recipe_fits_a_file():
    largest = Recipe("reverse", d_model=128, n_heads=16, n_layers=4, d_ff=512)
    weights = next(train(replace(largest, batch_size=1, steps=1))).weights
    assert load(dump(Checkpoint(largest, 0, weights))).recipe == largest


class RunsWhenUnpickled:
    """Its pickle would call a function."""

    def __reduce__(self):
        return (pytest.fail, ("a file was unpickled",))


@pytest.mark.parametrize("content", [pickle.dumps(RunsWhenUnpickled()), b"\x80\x02" + FILE])
def test_nothing_is_unpickled(content):
    with pytest.raises(ValueError, match="not in the safetensors format"):
        load(content)


@given(st.integers(0, len(FILE) - 1), st.integers(0, 255))
def test_a_file_with_a_changed_byte_is_read_or_refused(place, byte):
    with contextlib.suppress(ValueError):
        load(FILE[:place] + bytes([byte]) + FILE[place + 1 :])


# The models that come with the program.


@pytest.mark.parametrize("task", TASKS)
def test_shipped_models_answer_held_out_texts(task):
    checkpoint = shipped(task)
    assert checkpoint.recipe == RECIPES[task]
    assert checkpoint.step == checkpoint.recipe.steps
    model = model_with(checkpoint.recipe, checkpoint.weights)
    assert exact_match(model, held_out_batch(TASKS[task], 1000)) >= RIGHT[task]


def test_the_shipped_decoder_has_an_induction_head():
    model = model_with(shipped("repeat_block").recipe, shipped("repeat_block").weights)
    batch = held_out_batch(TASKS["repeat_block"], 100)
    with torch.inference_mode(), record(model) as trace:
        model(*batch.inputs, **batch.masks)
    ids, weights = batch.inputs[0], trace["decoder.layers.1.self_attention.weights"].value
    attention = Attention(weights, ids, ids, ids == PAD, ids == PAD, is_self_attention=True)
    assert METRICS["induction"].compute(attention).max() > 0.8


def test_shipped_models_are_small_and_one_per_task():
    files = sorted(SHIPPED.iterdir())
    assert [file.name for file in files] == sorted(f"{task}.safetensors" for task in TASKS)
    assert all(file.stat().st_size < 1_000_000 for file in files)


def test_a_task_without_a_model_is_refused():
    with pytest.raises(ValueError, match=r"task \('../secret'\) must be one of: reverse, reverse_digits, copy"):
        shipped("../secret")


def test_a_model_is_remade_byte_for_byte(monkeypatch):
    monkeypatch.setattr("model.learning.remake_trained.RIGHT", dict.fromkeys(TASKS, 0.0))
    first = model_file(run(RECIPE))
    assert model_file(run(RECIPE)) == first
    assert load(first).step == RECIPE.steps


def test_a_model_that_answers_too_little_is_not_remade():
    with pytest.raises(RuntimeError, match=r"copy: .*% of the held-out texts are answered, less than 99%"):
        model_file(run(RECIPE))
