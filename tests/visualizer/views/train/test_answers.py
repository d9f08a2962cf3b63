"""The answer and the attention of a model at one moment, against the shipped models and the model run by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.learning.checkpoints import shipped
from model.learning.tasks import LONGEST_SENTENCE, TASKS, expected_keys, sequences
from model.learning.training import RECIPES, Recipe, copied_weights, model_with
from model.sources.weights import build_model
from model.tracing import record
from visualizer.settings.training_settings import ATTENTIONS
from visualizer.views.train.answers import answer, compared, continued, heads, trained_model


@pytest.mark.parametrize("task", TASKS)
def test_the_shipped_models_answer_the_example_of_their_task(task):
    checkpoint = shipped(task)
    model = trained_model(checkpoint.recipe, checkpoint.weights)
    given = answer(model, TASKS[task], TASKS[task].example)
    assert given.is_right
    assert all(given.judged)
    if TASKS[task].answer is not None:
        assert given.symbols == TASKS[task].right_tokens(TASKS[task].example)


@pytest.mark.parametrize("task", TASKS)
def test_a_model_that_has_learned_nothing_is_cut_off_soon(task):
    recipe = RECIPES[task]
    given = answer(build_model(recipe.config, "random", 3), TASKS[task], TASKS[task].example)
    assert not given.is_right
    longest = len(TASKS[task].right_tokens(TASKS[task].example)) + 3
    assert len(given.symbols) <= (LONGEST_SENTENCE if TASKS[task].answer is None else longest)


def test_each_token_is_judged_at_its_place():
    given = compared(TASKS["copy"], "abc", ("a", "x", "c", "d"), ended=True)
    assert given.judged == (True, False, True, False)
    assert (given.is_right, given.note) == (False, "abc is right")
    assert not compared(TASKS["copy"], "a", ("a",), ended=False).is_right


def test_each_word_of_a_continuation_is_judged_by_the_grammar():
    given = continued(TASKS["small_english"], "the dogs that slept on the mat", ("were", "tired", "."), ended=True)
    assert (given.judged, given.is_right) == ((True, True, True), True)
    given = continued(TASKS["small_english"], "the dogs that slept on the mat", ("was", "tired"), ended=True)
    assert (given.judged, given.is_right) == ((False, False), False)


@pytest.mark.parametrize("task", TASKS)
def test_the_heads_are_those_of_the_model_over_the_right_answer(task):
    checkpoint, text = shipped(task), TASKS[task].example
    recipe, last = checkpoint.recipe, checkpoint.recipe.n_layers - 1
    model = model_with(recipe, checkpoint.weights)
    given = sequences(TASKS[task], text)
    ids = [torch.tensor([each]) for each in (given.source, given.target) if each is not None]
    later = {"encoder": {}, "decoder": {"source_mask": None}, "encoder-decoder": {"target_mask": None}}
    n_queries = ids[-1].shape[1]
    triangle = torch.ones(n_queries, n_queries, dtype=torch.bool).tril()
    masks = dict.fromkeys(later[TASKS[task].architecture], triangle)
    with torch.no_grad(), record(model) as trace:
        model(*ids, **masks)
    for kind in ATTENTIONS[TASKS[task].architecture]:
        stack, _, attention = kind.partition(".")
        found = heads(model, recipe, text, kind, last)
        expected = trace[f"{stack}.layers.{last}.{attention}.weights"].value[0].numpy()
        np.testing.assert_allclose(found.weights, expected, atol=1e-6)
        assert found.weights.shape[1:] == (len(found.rows.labels), len(found.columns.labels))
        if found.blocked is not None:
            assert kind == "decoder.self_attention"
            assert not found.weights[:, found.blocked == 1].any()
            np.testing.assert_array_equal(found.blocked == 0, triangle.numpy())


def test_the_share_is_the_mean_weight_on_the_letter_to_write():
    checkpoint, text = shipped("reverse"), "headlight"
    model = model_with(checkpoint.recipe, checkpoint.weights)
    found = heads(model, checkpoint.recipe, text, "decoder.cross_attention", 0)
    n_letters = len(text)
    for weights, share in zip(found.weights, found.expected, strict=True):
        assert share == pytest.approx(np.mean([weights[i, n_letters - 1 - i] for i in range(n_letters)]), abs=1e-6)
    assert found.rows.labels[:2] == ("<sos> → t", "t → h")
    assert found.rows.labels[-1] == "h → <eos>"
    assert found.columns.labels == (*"headlight", "<eos>")
    assert expected_keys(TASKS["reverse"], text)[0] == n_letters - 1


def test_where_no_key_is_expected_there_is_no_share():
    checkpoint = shipped("add")
    model = model_with(checkpoint.recipe, checkpoint.weights)
    assert heads(model, checkpoint.recipe, "1+2", "decoder.cross_attention", 0).expected is None
    checkpoint = shipped("reverse")
    model = model_with(checkpoint.recipe, checkpoint.weights)
    assert heads(model, checkpoint.recipe, "ab", "decoder.self_attention", 0).expected is None


def test_a_model_trained_without_the_causal_mask_is_shown_without_it():
    recipe = replace(RECIPES["reverse"], is_causal=False)
    model = build_model(recipe.config, "random", 0)
    found = heads(model, recipe, "abc", "decoder.self_attention", 0)
    assert found.blocked is None
    assert (found.weights > 0).all()


def test_weights_that_are_no_numbers_are_refused():
    recipe = Recipe("copy", d_model=8, n_heads=2)
    weights = dict(copied_weights(build_model(recipe.config, "random", 0)))
    name = next(iter(weights))
    weights[name] = torch.full_like(weights[name], torch.nan)
    with pytest.raises(ValueError, match="choose a smaller learning rate"):
        trained_model(recipe, weights)
