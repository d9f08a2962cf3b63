"""The loss of one text against PyTorch's own loss of its logits, its gradient against PyTorch's own backward."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from model.learning.checkpoints import shipped
from model.learning.sample_loss import layer_of, part_of, sample_loss
from model.learning.tasks import EOS, PAD, SOS, TASKS, make_batch
from model.learning.training import RECIPES, copied_weights, model_with
from model.sources.weights import build_model
from model.tracing import record

every_task = pytest.mark.parametrize("task", TASKS)


def random_weights(task):
    return copied_weights(build_model(RECIPES[task].config, "random", 1))


@every_task
@pytest.mark.parametrize("n_padding", [0, 3])
def test_it_is_pytorchs_cross_entropy_of_the_logits(task, n_padding):
    recipe, text, weights = RECIPES[task], TASKS[task].example, random_weights(task)
    found = sample_loss(recipe, weights, text, n_padding=n_padding)
    batch = make_batch(TASKS[task], [text], n_padding=n_padding)
    model = model_with(recipe, weights)
    with record(model) as trace:
        model(*batch.inputs, **batch.masks)
    logits, labels = trace["logits"].value[0], batch.labels[0]
    each = F.cross_entropy(logits, labels, ignore_index=PAD, reduction="none")
    mean = F.cross_entropy(logits, labels, ignore_index=PAD)
    torch.testing.assert_close(torch.tensor(found.losses), each.detach(), rtol=1e-5, atol=1e-6)
    assert found.mean == pytest.approx(mean.item(), rel=1e-5)
    assert found.labels == tuple(labels.tolist())
    assert sum(found.losses) / found.n_counted == pytest.approx(found.mean, rel=1e-5)
    for label, probability, loss in zip(found.labels, found.probabilities, found.losses, strict=True):
        assert loss == (0.0 if label == PAD else pytest.approx(-math.log(probability), rel=1e-5))

    mean.backward()
    squares = dict.fromkeys(found.gradient, 0.0)
    for name, parameter in model.named_parameters():
        squares[part_of(name)] += parameter.grad.square().sum().item()
    for part, norm in found.gradient.items():
        assert norm == pytest.approx(math.sqrt(squares[part]), rel=1e-4, abs=1e-7)
    assert found.whole_gradient == pytest.approx(math.sqrt(sum(squares.values())), rel=1e-4)
    for layer, norm in found.layers.items():
        inside = [square for part, square in squares.items() if layer_of(part) == layer]
        assert norm == pytest.approx(math.sqrt(sum(inside)), rel=1e-4)


def test_the_answer_is_read_shifted_right_and_padding_counts_nothing():
    found = sample_loss(RECIPES["reverse_digits"], random_weights("reverse_digits"), "536", n_padding=2)
    vocabulary = TASKS["reverse_digits"].vocabulary
    assert [vocabulary[token] for token in found.read] == ["<sos>", "6", "3", "5", "<pad>", "<pad>"]
    assert [vocabulary[token] for token in found.labels] == ["6", "3", "5", "<eos>", "<pad>", "<pad>"]
    assert (found.read[0], found.labels[3]) == (SOS, EOS)
    assert found.losses[4:] == (0.0, 0.0)
    assert found.n_counted == 4


@every_task
def test_padding_changes_neither_the_loss_nor_the_gradient(task):
    short, long = (
        sample_loss(RECIPES[task], random_weights(task), TASKS[task].example, n_padding=n) for n in (0, 4)
    )
    assert long.mean == pytest.approx(short.mean, rel=1e-5)
    assert long.whole_gradient == pytest.approx(short.whole_gradient, rel=1e-4)


def test_a_model_that_has_learned_its_task_has_hardly_a_loss_or_a_gradient():
    before = sample_loss(RECIPES["reverse"], random_weights("reverse"), "headlight")
    after = sample_loss(RECIPES["reverse"], shipped("reverse").weights, "headlight")
    assert after.mean < before.mean / 100
    assert after.whole_gradient < before.whole_gradient / 10


def test_the_weights_are_left_as_they_are():
    weights = random_weights("copy")
    kept = {name: value.clone() for name, value in weights.items()}
    sample_loss(RECIPES["copy"], weights, "ab")
    assert all(torch.equal(value, kept[name]) and value.grad is None for name, value in weights.items())


@pytest.mark.parametrize(
    ("parameter", "part", "layer"),
    [
        ("encoder.inputs.tokens.weight", "encoder.inputs", "encoder.inputs"),
        ("decoder.layers.1.cross_attention.w_q.bias", "decoder.layers.1.cross_attention", "decoder.layers.1"),
        ("encoder.norm.weight", "encoder.norm", "encoder.norm"),
        ("unembedding.weight", "unembedding", "unembedding"),
    ],
)
def test_parts_and_layers(parameter, part, layer):
    assert part_of(parameter) == part
    assert layer_of(part) == layer
