"""Training is repeatable, learns, and measures what it says it does."""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from torch.nn import functional as F

from model.learning.tasks import EOS, PAD, TASKS, Batch, is_held_out, make_batch, prompt, sequences, training_texts
from model.learning.training import (
    EXPERIMENTS,
    LIMITS,
    MAX_LEN,
    RECIPES,
    REPORT_EVERY,
    Recipe,
    copied_weights,
    cross_entropy,
    exact_match,
    held_out_batch,
    learning_rate,
    milestones,
    model_with,
    train,
)
from model.sources.weights import build_model

every_task = pytest.mark.parametrize("task", TASKS)


def tiny(task="copy", **choices):
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 16, "batch_size": 8, "steps": 25, "warmup": 5}
    return Recipe(task, **(sizes | choices))


def last_of(recipe):
    return deque(train(recipe), maxlen=1)[0]


def assert_same(weights, others):
    assert weights.keys() == others.keys()
    for name, value in weights.items():
        assert torch.equal(value, others[name]), name


def differ(weights, others):
    return any(not torch.equal(value, others[name]) for name, value in weights.items())


# Repeatable.


def test_threads_that_train_side_by_side_get_the_weights_that_each_gets_alone():
    recipes = [tiny("reverse", seed=7), tiny("sort", seed=7, n_layers=2), tiny("repeat_block", seed=7)]
    alone = [last_of(recipe).weights for recipe in recipes]
    together = [{} for _ in recipes]
    begin = threading.Barrier(len(recipes))

    def run(index):
        begin.wait()
        for progress in train(recipes[index]):
            together[index] = progress.weights

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(recipes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for weights, others in zip(alone, together, strict=True):
        assert_same(weights, others)


def test_runs_that_take_turns_in_one_thread_get_the_weights_that_each_gets_alone():
    recipes = [tiny("copy", seed=1), tiny("mark_repeats", seed=1)]
    turns = list(itertools.zip_longest(*(train(recipe) for recipe in recipes)))
    for recipe, last in zip(recipes, turns[-1], strict=True):
        assert_same(last.weights, last_of(recipe).weights)


@every_task
def test_training_depends_on_the_recipe_alone_and_sets_nothing_for_others(task):
    recipe = tiny(task, steps=3)
    torch.manual_seed(1)
    first = last_of(recipe)
    torch.manual_seed(2)
    before = (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled(), torch.initial_seed())
    second = last_of(recipe)
    assert before == (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.initial_seed(),
    )
    assert_same(first.weights, second.weights)
    assert first.loss == second.loss


def test_it_trains_where_gradients_are_switched_off_and_leaves_them_off():
    recipe = tiny(steps=3)
    with torch.no_grad():
        inside = last_of(recipe)
        assert not torch.is_grad_enabled()
    assert_same(inside.weights, last_of(recipe).weights)


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"learning_rate": 0.02}, {"is_causal": False}, {"positions": "none"}, {"warmup": 0}],
    ids=str,
)
def test_another_recipe_gives_other_weights(change):
    assert differ(last_of(tiny(steps=3)).weights, last_of(replace(tiny(steps=3), **change)).weights)


# Reports.


def test_reports_come_at_every_tenth_step_and_every_milestone():
    recipe = tiny(steps=33)
    reports = list(train(recipe))
    expected = {*range(0, 34, REPORT_EVERY), *milestones(33)}
    assert [report.step for report in reports] == sorted(expected)
    for report in reports:
        assert (report.exact_match is not None) == (report.step in milestones(33))
        assert math.isfinite(report.loss)


def test_the_first_report_is_of_the_random_weights_that_the_seed_gives():
    recipe = tiny(seed=3)
    first = next(train(recipe))
    assert first.step == 0
    assert_same(first.weights, copied_weights(build_model(recipe.config, "random", 3)))


def test_a_report_is_never_changed_by_what_follows():
    reports = train(tiny())
    first = next(reports)
    kept = {name: value.clone() for name, value in first.weights.items()}
    deque(reports, maxlen=0)
    assert_same(first.weights, kept)
    with pytest.raises(FrozenInstanceError):
        first.step = 1


def test_whoever_changes_a_report_does_not_change_the_training():
    reports = train(tiny())
    for value in next(reports).weights.values():
        value.zero_()
    assert_same(deque(reports, maxlen=1)[0].weights, last_of(tiny()).weights)


def test_a_report_fits_its_weights():
    """Loss and exact match are those of a model that is built from the report."""
    recipe = tiny(steps=5)
    for report in train(recipe):
        model = model_with(recipe, report.weights)
        assert report.exact_match == exact_match(model, held_out_batch(TASKS["copy"]))


def test_training_can_be_stopped_at_any_report():
    reports = train(tiny(steps=1000))
    seen = list(itertools.islice(reports, 3))
    reports.close()
    assert seen[-1].step > 0
    assert differ(seen[0].weights, seen[-1].weights)


@pytest.mark.parametrize("steps", [1, 2, 7, 20, 100, 2500])
def test_milestones_begin_at_zero_end_at_the_last_step_and_thin_out(steps):
    found = milestones(steps)
    assert found[0] == 0
    assert found[-1] == steps
    gaps = [after - before for before, after in itertools.pairwise(found)]
    assert min(gaps) > 0
    assert len(found) <= 21
    assert all(later >= earlier - 1 for earlier, later in itertools.pairwise(gaps))


# What is learned and what is measured.


def test_a_hundred_steps_are_enough_to_learn_something():
    recipe = tiny("mark_repeats", d_model=32, d_ff=32, steps=120, batch_size=32, warmup=10)
    first, *_, last = train(recipe)
    assert last.loss < first.loss / 3
    assert last.exact_match > first.exact_match + 0.2


def written_greedily(model, task, text):
    """Token by token, with nothing but what a decoder has at that time."""
    made, written = sequences(task, text), list(prompt(task, text))
    limit = len(written) + len(task.answer(text)) + 2
    while written[-1] != EOS or len(written) == len(prompt(task, text)):
        if len(written) == limit:
            break
        ids = torch.tensor([written])
        seen = torch.ones(len(written), len(written), dtype=torch.bool).tril()
        with torch.no_grad():
            if task.architecture == "decoder":
                probabilities = model(ids, source_mask=seen)
            else:
                probabilities = model(torch.tensor([made.source]), ids, target_mask=seen)
        written.append(int(probabilities[0, -1].argmax()))
    return tuple(written[len(prompt(task, text)) :])


@pytest.mark.parametrize("name", ["copy", "repeat_block"])
def test_exact_match_counts_what_greedy_decoding_gets_right(name):
    task = TASKS[name]
    recipe = tiny(name, d_model=32, d_ff=32, n_layers=2, steps=150, batch_size=16, warmup=10)
    model = model_with(recipe, last_of(recipe).weights)
    texts = [text for text in training_texts(task, 400, torch.Generator().manual_seed(0)) if len(text) < 4][:60]
    right = [written_greedily(model, task, text) == (*task.encode(task.answer(text)), EOS) for text in texts]
    measured = [exact_match(model, make_batch(task, [text])) == 1.0 for text in texts]
    assert 5 < sum(right) < 55
    assert measured == right
    assert exact_match(model, make_batch(task, texts)) == pytest.approx(sum(right) / len(texts))


@pytest.mark.parametrize("name", ["reverse", "repeat_block", "match_brackets"])
def test_held_out_texts_are_held_out_and_the_same_each_time(name):
    task = TASKS[name]
    first, second = held_out_batch(task, 50), held_out_batch(task, 50)
    assert all(torch.equal(a, b) for a, b in zip(first.inputs, second.inputs, strict=True))
    for row in first.inputs[0].tolist():
        start = 1 if task.architecture == "decoder" else 0
        assert is_held_out(task.decode(row[start:]))


def test_cross_entropy_is_pytorchs_of_the_logits_without_padding():
    source = torch.Generator().manual_seed(0)
    logits = (5 * torch.randn(3, 4, 7, generator=source)).requires_grad_()
    labels = torch.tensor([[1, 2, PAD, PAD], [3, 4, 5, 6], [2, PAD, PAD, PAD]])
    ours, theirs = (
        cross_entropy(logits.softmax(-1), labels),
        F.cross_entropy(logits[labels != PAD], labels[labels != PAD]),
    )
    torch.testing.assert_close(ours, theirs)
    (of_ours,) = torch.autograd.grad(ours, logits, retain_graph=True)
    (of_theirs,) = torch.autograd.grad(theirs, logits)
    torch.testing.assert_close(of_ours, of_theirs)
    assert of_ours[labels == PAD].count_nonzero() == 0


def test_cross_entropy_is_finite_where_a_right_token_has_no_probability_at_all():
    probabilities = torch.tensor([[[0.0, 0.0, 1.0]]], requires_grad=True)
    loss = cross_entropy(probabilities, torch.tensor([[1]]))
    loss.backward()
    assert loss.isfinite()
    assert probabilities.grad.isfinite().all()


def test_more_padding_changes_neither_loss_nor_exact_match():
    recipe = tiny("reverse", steps=10)
    model = model_with(recipe, last_of(recipe).weights)
    texts = ["ab", "c"]
    batch, longer = (make_batch(TASKS["reverse"], each) for each in (texts, [*texts, "abcdefghij"]))
    longer = Batch(
        tuple(ids[:2] for ids in longer.inputs),
        {name: mask[:2] for name, mask in longer.masks.items()},
        longer.labels[:2],
    )
    losses = [cross_entropy(model(*each.inputs, **each.masks), each.labels) for each in (batch, longer)]
    torch.testing.assert_close(*losses)
    assert exact_match(model, batch) == exact_match(model, longer)


def test_the_learning_rate_rises_and_falls_along_half_a_cosine():
    recipe = Recipe("copy", learning_rate=0.01, warmup=100, steps=1000)
    rates = [learning_rate(recipe, step) for step in range(1000)]
    assert rates.index(max(rates)) in range(95, 101)
    assert all(0 < rate <= 0.01 for rate in rates)
    assert rates[500] == pytest.approx(0.005)
    assert rates[-1] < 1e-7
    assert learning_rate(replace(recipe, warmup=0), 0) == 0.01


# Recipes.


@every_task
def test_every_task_has_a_recipe_whose_model_takes_its_texts(task):
    recipe = RECIPES[task]
    assert recipe.task == task
    assert recipe.config.architecture == TASKS[task].architecture
    assert held_out_batch(TASKS[task]).labels.shape[1] <= MAX_LEN


def test_an_experiment_changes_one_thing():
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        intact, changed = vars(experiment.intact), vars(experiment.changed)
        assert len([field for field in intact if intact[field] != changed[field]]) == 1


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"task": "multiply"}, r"task \('multiply'\) must be one of: reverse, reverse_digits, copy"),
        ({"steps": 0}, r"steps \(0\) must be from 1 to 20000"),
        ({"d_model": 4096}, r"d_model \(4096\) must be from 2 to 128"),
        ({"n_layers": -1}, r"n_layers \(-1\) must be from 1 to 4"),
        ({"n_heads": 5}, r"d_model \(64\) must be divisible by n_heads \(5\)"),
        ({"norm": "middle"}, r"norm \('middle'\) must be one of"),
        ({"learning_rate": 0.0}, r"learning_rate \(0.0\) must be above 0 and at most 0.1"),
        ({"learning_rate": math.nan}, r"learning_rate \(nan\) must be above 0"),
    ],
)
def test_a_bad_recipe_is_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**({"task": "copy"} | choices))


def test_every_whole_number_of_a_recipe_has_limits():
    numbers = {name for name, value in vars(RECIPES["copy"]).items() if type(value) is int}
    assert numbers == LIMITS.keys()


def test_weights_of_another_model_are_refused():
    weights = dict(last_of(tiny(steps=1)).weights)
    with pytest.raises(ValueError, match=r"tokens.weight has shape \(29, 16\): by the recipe .* \(29, 18\)"):
        model_with(tiny(d_model=18), weights)
    with pytest.raises(ValueError, match=r"decoder.layers.1.* is in only one of the two"):
        model_with(tiny(n_layers=2), weights)
    with pytest.raises(ValueError, match="extra is in only one of the two"):
        model_with(tiny(), weights | {"extra": torch.zeros(1)})
