"""The feed-forward network against NumPy, and position by position."""

import numpy as np
import pytest
import torch
from torch import nn

from model import FeedForward, record, seed_dropout
from tests import numpy_reference
from tests.model.builders import as_arrays, random_tensor, randomized


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_it_agrees_with_numpy(activation):
    feed_forward = randomized(FeedForward(6, 11, activation=activation)).double()
    x = 3 * random_tensor(2, 5, 6, dtype=torch.float64)
    with torch.no_grad():
        output = feed_forward(x)
    expected = numpy_reference.feed_forward(as_arrays(feed_forward), x.numpy(), activation)
    np.testing.assert_allclose(output.numpy(), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("activation", "layer"), [("relu", nn.ReLU()), ("gelu", nn.GELU())])
def test_it_agrees_with_pytorchs_layers(activation, layer):
    feed_forward = randomized(FeedForward(6, 11, activation=activation))
    x = random_tensor(2, 5, 6)
    reference = nn.Sequential(feed_forward.w_1, layer, feed_forward.w_2)
    torch.testing.assert_close(feed_forward(x), reference(x), atol=1e-6, rtol=0)


def test_it_treats_every_position_alike():
    feed_forward = randomized(FeedForward(6, 11)).double()
    x = random_tensor(2, 5, 6, dtype=torch.float64)
    alone = torch.cat([feed_forward(x[:, t : t + 1]) for t in range(5)], dim=1)
    torch.testing.assert_close(feed_forward(x), alone, atol=1e-12, rtol=0)


def test_its_stages():
    feed_forward = randomized(FeedForward(6, 11))
    with record(feed_forward) as trace:
        output = feed_forward(random_tensor(2, 5, 6))
    assert list(trace) == ["hidden", "activation", "output"]
    assert trace["hidden"].shape_text == "(B T F) = (2, 5, 11)"
    assert torch.equal(trace["activation"].value, trace["hidden"].value.relu())
    assert trace["output"].value is output


def test_dropout_acts_on_the_hidden_units():
    feed_forward = randomized(FeedForward(6, 11, dropout=0.5)).train()
    seed_dropout(feed_forward, 0)
    with record(feed_forward) as trace:
        feed_forward(random_tensor(2, 5, 6))
    assert list(trace) == ["hidden", "activation", "dropped_activation", "output"]
    active, dropped = trace["activation"].value, trace["dropped_activation"].value
    torch.testing.assert_close(dropped[dropped != 0], 2 * active[dropped != 0])
    assert ((dropped == 0) & (active != 0)).any()
    assert torch.equal(trace["output"].value, feed_forward.w_2(dropped))
