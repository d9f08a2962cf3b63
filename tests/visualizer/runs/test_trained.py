"""Trained models as runs: what they are given, what they write, and how they are remembered."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from model.learning.checkpoints import Checkpoint, dump, shipped
from model.learning.tasks import EOS, TASKS, prompt, sequences
from model.learning.training import MAX_LEN, RECIPES, Recipe, copied_weights, model_with
from model.sources.weights import build_model
from visualizer import store
from visualizer.runs.compute import compute_run
from visualizer.runs.prepare import prepare
from visualizer.runs.refusals import RefusedError
from visualizer.runs.trained import LONGEST_ANSWER, checkpoint_of, keep, masks_of_training, shape_of
from visualizer.settings.fields import TRAINED
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings
from visualizer.settings.trained_models import CONTINUED, TRAINED_MODELS
from visualizer.stages.registry import explanation

every_task = pytest.mark.parametrize("task", TASKS)


def settings_of(task: str, **changes) -> Settings:
    trained = TRAINED_MODELS[task]
    return fitted(
        replace(Settings(), weights=TRAINED, task=task, text=trained.example, mask=trained.masks(0), **changes)
    )


def untrained(task: str) -> Checkpoint:
    recipe = Recipe(task, d_model=16, n_heads=2, d_ff=16)
    return Checkpoint(recipe, 0, copied_weights(build_model(recipe.config, "random", 0)))


@every_task
def test_what_is_known_without_torch_is_what_the_model_is(task):
    known, recipe = TRAINED_MODELS[task], shipped(task).recipe
    assert (known.title, known.example) == (TASKS[task].title, TASKS[task].example)
    assert known.shape["architecture"] == TASKS[task].architecture
    assert known.shape == {name: value for name, value in shape_of(shipped(task)).items() if name in known.shape}
    assert recipe.task == task
    assert (task in CONTINUED) == (TASKS[task].answer is None)
    assert list(TRAINED_MODELS) == list(TASKS) == list(RECIPES)


@every_task
def test_a_run_is_what_the_model_computes_on_the_sequences_of_the_task(task):
    settings = settings_of(task)
    run = compute_run(settings)
    expected = sequences(TASKS[task], settings.text)
    assert run.settings == settings
    assert run.tokens["source"].ids == expected.source
    assert (run.tokens["target"].ids if "target" in run.tokens else None) == expected.target
    assert run.vocabulary == TASKS[task].vocabulary
    if TASKS[task].answer is None:
        return  # many words may come next
    chosen = run.trace["logits"].value[0].argmax(-1)
    labels = torch.tensor(expected.labels)
    assert torch.equal(chosen[labels != 0], labels[labels != 0])


def test_the_target_is_what_the_model_writes_right_or_wrong():
    settings = replace(settings_of("reverse"), checkpoint=keep(untrained("reverse")))
    written = prepare(settings).encoded.targets[0]
    model = model_with(untrained("reverse").recipe, untrained("reverse").weights)
    source, so_far = sequences(TASKS["reverse"], settings.text).source, prompt(TASKS["reverse"], settings.text)
    while len(so_far) <= LONGEST_ANSWER:
        mask = torch.ones(len(so_far), len(so_far), dtype=torch.bool).tril()
        with torch.inference_mode():
            logits = model(torch.tensor([source]), torch.tensor([so_far]), target_mask=mask)[0, -1]
        following = EOS + logits[EOS:].argmax().item()  # <pad> and <sos>, the ids below, are never written
        if following == EOS:
            break
        so_far = (*so_far, following)
    assert written.ids == so_far


def test_a_model_of_this_server_is_found_by_its_name_and_shapes_the_run():
    checkpoint = untrained("copy")
    name = keep(checkpoint)
    assert keep(checkpoint) == name
    settings = replace(settings_of("copy"), checkpoint=name)
    found = checkpoint_of(settings)
    assert (found.recipe, found.step) == (checkpoint.recipe, checkpoint.step)
    assert_close(dict(found.weights), dict(checkpoint.weights), rtol=0, atol=0)
    run = compute_run(settings)
    assert (run.settings.d_model, run.settings.n_heads) == (16, 2)
    assert run.trace["logits"].value.shape[-1] == len(TASKS["copy"].vocabulary)


def test_what_lies_under_the_name_of_another_model_is_none():
    name = "0" * 16
    store.save(f"{name}.safetensors", dump(untrained("copy")))
    with pytest.raises(ValueError, match="no longer kept"):
        checkpoint_of(replace(settings_of("copy"), checkpoint=name))


@pytest.mark.parametrize("task", ["copy", "sort"])
def test_a_model_that_is_forgotten_or_of_another_task_is_refused(task):
    name = keep(untrained("copy")) if task == "sort" else "0123456789abcdef"
    with pytest.raises(ValueError, match="no longer kept"):
        compute_run(replace(settings_of(task), checkpoint=name))


def test_a_text_that_is_none_of_the_task_is_refused_with_what_is():
    with pytest.raises(ValueError, match=r"type 1 to 10 letters from a to z"):
        compute_run(replace(settings_of("reverse"), text="Headlight 2!"))


def test_a_text_with_words_that_no_training_knew_can_be_run_by_hand_built_heads():
    settings = replace(settings_of("small_english"), text="the zebra sat")
    with pytest.raises(RefusedError, match="does not know “zebra”") as refused:
        compute_run(settings)
    assert refused.value.way_out is not None
    by_hand = compute_run(replace(settings, **refused.value.way_out.changes))
    assert "zebra" in by_hand.batches["source"][0].tokens


def test_padding_is_added_on_the_side_chosen():
    source = prepare(replace(settings_of("reverse"), pad=2, pad_side="left")).encoded.sources[0]
    assert source.is_padding[:3] == (True, True, False)
    assert source.labels[:2] == ("<pad>", "<pad>")


def test_settings_of_a_shipped_model_are_its_own():
    assert fitted(Settings(weights=TRAINED, task="add", n_heads=7, d_model=200)) == fitted(
        Settings(weights=TRAINED, task="add")
    )


@every_task
@pytest.mark.parametrize("depth", ["plain", "exact"])
def test_the_probabilities_of_a_trained_model_say_what_was_learned(task, depth):
    text = explanation(compute_run(settings_of(task)), "probabilities", depth)
    assert "not trained" not in text
    assert f"trained on “{TASKS[task].title}” for {shipped(task).step:,} steps" in text
    assert ("its answer in that place" in text) == (TASKS[task].architecture == "encoder")


def test_the_probabilities_say_where_nothing_was_learned():
    before_training = replace(settings_of("copy"), checkpoint=keep(untrained("copy")))
    for settings in (Settings(), Settings(weights="random", architecture="decoder"), before_training):
        assert "The weights are not trained" in explanation(compute_run(settings), "probabilities", "exact")


def test_the_masks_of_training_are_those_of_the_recipe_and_hide_the_padding():
    assert masks_of_training(settings_of("reverse")) == ("causal",)
    assert masks_of_training(settings_of("reverse", pad=2)) == ("causal", "padding")
    assert masks_of_training(settings_of("match_brackets", pad=1)) == ("padding",)
    seeing = replace(untrained("copy"), recipe=replace(untrained("copy").recipe, is_causal=False))
    assert masks_of_training(replace(settings_of("copy"), checkpoint=keep(seeing))) == ()


@pytest.mark.parametrize("task", ["reverse", "repeat_block", "match_brackets"])
def test_more_padding_than_positions_says_how_much_there_is_room_for(task):
    settings = replace(settings_of(task), pad=64)
    with pytest.raises(RefusedError, match="lower the padding tokens from 64 to") as refused:
        compute_run(settings)
    assert refused.value.way_out is not None
    fewer = replace(settings, **refused.value.way_out.changes)
    longest = max(len(batch[0]) for batch in compute_run(fewer).batches.values())
    assert longest == MAX_LEN
    with pytest.raises(RefusedError):
        compute_run(replace(fewer, pad=fewer.pad + 1))
    compute_run(replace(settings, pad_side="left"))  # takes no positions
    with pytest.raises(RefusedError, match="lower the padding"):
        compute_run(replace(settings, pad_side="left", fault="padding_counted"))
