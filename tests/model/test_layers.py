"""Encoder and decoder layers against PyTorch's, in both norms and both activations."""

import pytest
import torch

from model import DecoderLayer, EncoderLayer, TransformerConfig, record, seed_dropout
from tests.model.builders import keyless, random_mask, random_tensor, randomized
from tests.model.pytorch_layers import pytorch_decoder_layer, pytorch_encoder_layer

T, S, D_MODEL = 5, 7, 8
ATTENTION = [
    *("query_input", "key_input", "value_input", "q_proj", "k_proj", "v_proj", "q", "k", "v"),
    *("scores", "scaled_scores", "masked_scores", "weights", "context", "concat", "output"),
]
FEED_FORWARD = ["hidden", "activation", "output"]

causal = torch.ones(T, T, dtype=torch.bool).tril()
every_layer = pytest.mark.parametrize("norm", ["post", "pre"])
every_activation = pytest.mark.parametrize("activation", ["relu", "gelu"])


def configured(**choices):
    return TransformerConfig(d_model=D_MODEL, n_heads=2, d_ff=12, **choices)


def stages(module, names):
    return [f"{module}.{name}" for name in names]


@every_layer
@every_activation
@pytest.mark.parametrize("mask", [None, causal, random_mask(T, T)], ids=["no mask", "causal", "random"])
def test_an_encoder_layer_agrees_with_pytorch(norm, activation, mask):
    config = configured(norm=norm, activation=activation, layer_norm_eps=1e-3)
    layer = randomized(EncoderLayer(config))
    x = random_tensor(2, T, D_MODEL)
    expected = pytorch_encoder_layer(layer, config)(x, src_mask=None if mask is None else ~mask)
    torch.testing.assert_close(layer(x, mask), expected, atol=1e-6, rtol=0)


@every_layer
def test_an_encoder_layer_agrees_with_pytorch_on_padding(norm):
    config = configured(norm=norm)
    layer = randomized(EncoderLayer(config))
    x, is_padding = random_tensor(2, T, D_MODEL), torch.arange(T) >= torch.tensor([[3], [5]])
    reference = pytorch_encoder_layer(layer, config)
    expected = reference(x, src_mask=~causal, src_key_padding_mask=is_padding)
    torch.testing.assert_close(layer(x, causal & ~is_padding[:, None, None]), expected, atol=1e-6, rtol=0)


@every_layer
@every_activation
@pytest.mark.parametrize("memory_mask", [None, random_mask(T, S)], ids=["no memory mask", "memory mask"])
def test_a_decoder_layer_agrees_with_pytorch(norm, activation, memory_mask):
    config = configured(norm=norm, activation=activation)
    layer = randomized(DecoderLayer(config))
    x, memory = random_tensor(2, T, D_MODEL), random_tensor(2, S, D_MODEL, seed=1)
    expected = pytorch_decoder_layer(layer, config)(
        x, memory, tgt_mask=~causal, memory_mask=None if memory_mask is None else ~memory_mask
    )
    torch.testing.assert_close(layer(x, memory, causal, memory_mask), expected, atol=1e-6, rtol=0)


def test_the_stages_of_a_post_norm_encoder_layer():
    layer = randomized(EncoderLayer(configured(norm="post")))
    with record(layer) as trace:
        layer(random_tensor(2, T, D_MODEL))
    attention, feed_forward = stages("self_attention", ATTENTION), stages("feed_forward", FEED_FORWARD)
    assert list(trace) == [*attention, "residual1", "norm1", *feed_forward, "residual2", "norm2"]


def test_the_stages_of_a_pre_norm_decoder_layer():
    layer = randomized(DecoderLayer(configured(norm="pre")))
    with record(layer) as trace:
        layer(random_tensor(2, T, D_MODEL), random_tensor(2, S, D_MODEL))
    self_attention, cross_attention = stages("self_attention", ATTENTION), stages("cross_attention", ATTENTION)
    assert list(trace) == [
        *("norm1", *self_attention, "residual1"),
        *("norm2", *cross_attention, "residual2"),
        *("norm3", *stages("feed_forward", FEED_FORWARD), "residual3"),
    ]


def sublayers_between_residuals(layer, norm):
    """Each sub-layer's output with the residual stream before and after it."""
    x = random_tensor(2, T, D_MODEL)
    inputs = (x, random_tensor(2, S, D_MODEL, seed=1)) if isinstance(layer, DecoderLayer) else (x,)
    with torch.no_grad(), record(layer) as trace:
        output = layer(*inputs)
    sublayers = [name for name in ("self_attention", "cross_attention", "feed_forward") if hasattr(layer, name)]
    for number, sublayer in enumerate(sublayers, start=1):
        residual = trace[f"residual{number}"].value
        yield x, trace[f"{sublayer}.output"].value, residual
        x = residual if norm == "pre" else trace[f"norm{number}"].value
    assert torch.equal(output, x)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
@every_layer
def test_a_residual_is_the_sum_of_its_two_streams(kind, norm):
    for before, sublayer, after in sublayers_between_residuals(randomized(kind(configured(norm=norm))), norm):
        assert torch.equal(after, before + sublayer)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
@every_layer
def test_dropout_acts_on_every_sublayers_output_before_it_is_added(kind, norm):
    layer = randomized(kind(configured(norm=norm, dropout=0.5)))
    seed_dropout(layer, 0)
    layer.dropout.train()
    for before, sublayer, after in sublayers_between_residuals(layer, norm):
        dropped = after == before
        assert 0.25 < dropped.float().mean() < 0.75
        torch.testing.assert_close(after[~dropped], (before + 2 * sublayer)[~dropped])


def test_a_decoder_layer_without_weight_on_its_memory_does_not_see_it():
    layer = randomized(DecoderLayer(configured()))
    x, blind = random_tensor(2, T, D_MODEL), torch.zeros(T, S, dtype=torch.bool)
    outputs = [layer(x, random_tensor(2, S, D_MODEL, seed=seed), causal, blind) for seed in (1, 2)]
    assert torch.equal(*outputs)
    assert outputs[0].isfinite().all()


@every_layer
def test_gradients_stay_finite_when_every_key_is_blocked(norm):
    layer = randomized(DecoderLayer(configured(norm=norm)))
    x, memory = random_tensor(2, T, D_MODEL).requires_grad_(), random_tensor(2, S, D_MODEL).requires_grad_()
    layer(x, memory, keyless(causal, query=0), torch.zeros(S, dtype=torch.bool)).square().sum().backward()
    gradients = [x.grad, memory.grad, *(parameter.grad for parameter in layer.parameters())]
    assert all(gradient.isfinite().all() for gradient in gradients)
