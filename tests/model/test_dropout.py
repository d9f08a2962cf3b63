"""Dropout draws from its own generator: repeatable, and alone."""

import pytest
import torch

from model import Dropout, seed_dropout
from tests.model.builders import random_tensor, small_inputs, small_transformer


def dropout(p, seed=0):
    module = Dropout(p)
    seed_dropout(module, seed)
    return module


def test_it_zeroes_the_share_it_is_told_and_keeps_the_mean():
    x = torch.ones(100_000)
    y = dropout(0.3)(x)
    assert (y == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert y.mean().item() == pytest.approx(1.0, abs=0.01)
    torch.testing.assert_close(y[y != 0], torch.full_like(y[y != 0], 1 / 0.7))


def test_a_seed_repeats_it():
    x = random_tensor(4, 50)
    assert torch.equal(dropout(0.5, seed=3)(x), dropout(0.5, seed=3)(x))
    assert not torch.equal(dropout(0.5, seed=3)(x), dropout(0.5, seed=4)(x))


def test_two_draws_differ():
    module, x = dropout(0.5), torch.ones(50)
    assert not torch.equal(module(x), module(x))


def test_it_is_off_in_evaluation_and_at_zero():
    x = random_tensor(4, 5)
    assert dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x
    assert not Dropout(0.5).eval().active
    assert Dropout(0.5).active


def test_gradients_flow_through_what_is_kept():
    x = torch.ones(50, requires_grad=True)
    y = dropout(0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_without_a_seed_it_refuses():
    with pytest.raises(RuntimeError, match="call seed_dropout"):
        Dropout(0.5)(torch.ones(3))
    with pytest.raises(RuntimeError, match="call seed_dropout"):
        small_transformer(dropout=0.1).train()(*small_inputs())


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_no_probability_is_refused(p):
    with pytest.raises(ValueError, match=r"dropout \(.*\) must be at least 0 and below 1"):
        Dropout(p)


def test_a_model_repeats_itself_and_leaves_the_global_generator_alone():
    model = small_transformer(dropout=0.4).train()
    before = torch.get_rng_state()
    runs = []
    for global_seed in (1, 2):
        with torch.random.fork_rng():
            torch.manual_seed(global_seed)
            seed_dropout(model, 7)
            runs.append(model(*small_inputs()))
    assert torch.equal(*runs)
    seed_dropout(model, 7)
    model(*small_inputs())
    assert torch.equal(torch.get_rng_state(), before)


def test_every_dropout_of_a_model_acts():
    """At the paper's places (section 5.4): embeddings, each sub-layer's output; and inside the sub-layers."""
    inputs = small_inputs("encoder-decoder")
    model = small_transformer("encoder-decoder", dropout=0.5)
    expected = model(*inputs)
    seed_dropout(model, 0)
    dropouts = [module for module in model.modules() if isinstance(module, Dropout)]
    per_encoder_layer, per_decoder_layer, embeddings = 3, 4, 2
    assert len(dropouts) == 2 * per_encoder_layer + 2 * per_decoder_layer + embeddings
    for module in dropouts:
        module.train()
        assert not torch.allclose(model(*inputs), expected)
        module.eval()
    assert torch.equal(model(*inputs), expected)
