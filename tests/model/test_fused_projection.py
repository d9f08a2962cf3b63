"""One matrix for queries, keys and values computes what three do."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from model import MultiHeadAttention, TransformerConfig, record
from model.fused_projection import projections_of
from model.sources.weights import WEIGHT_SOURCES, build_model
from tests.model.builders import random_mask, random_tensor, randomized

N_QUERIES, N_KEYS, D_MODEL = 4, 6, 12
STAGES = ("q_proj", "k_proj", "v_proj", "q", "k", "v", "scores", "weights", "context", "concat", "output")


def fused_and_separate(*sizes, **choices):
    """Two attentions of the same numbers, one with a matrix for all three and one with three."""
    fused = randomized(MultiHeadAttention(*sizes, fused_qkv=True, **choices)).double()
    separate = MultiHeadAttention(*sizes, **choices).double()
    with torch.no_grad():
        for ours, theirs in zip(projections_of(separate), projections_of(fused), strict=True):
            ours.weight.copy_(theirs.weight)
            if ours.bias is not None:
                ours.bias.copy_(theirs.bias)
        separate.w_o.load_state_dict(fused.w_o.state_dict())
    return fused, separate


def inputs_of(kind):
    query = random_tensor(2, N_QUERIES, D_MODEL, dtype=torch.float64)
    key, value = (random_tensor(2, N_KEYS, D_MODEL, seed=seed, dtype=torch.float64) for seed in (1, 2))
    return {"self": (query,) * 3, "cross": (query, key, key), "three": (query, key, value)}[kind]


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(["self", "cross", "three"]),
    n_heads=st.sampled_from([1, 2, 3, 4]),
    head_dim=st.sampled_from([None, 1, 5]),
    bias=st.booleans(),
    output_bias=st.booleans(),
    scale_scores=st.booleans(),
    is_masked=st.booleans(),
)
def test_it_is_three_matrices_in_one(kind, n_heads, is_masked, **choices):
    fused, separate = fused_and_separate(D_MODEL, n_heads, **choices)
    inputs = inputs_of(kind)
    mask = random_mask(N_QUERIES, inputs[1].shape[1]) if is_masked else None
    with torch.no_grad(), record(fused) as found:
        fused(*inputs, mask)
    with torch.no_grad(), record(separate) as expected:
        separate(*inputs, mask)
    for name in STAGES:
        torch.testing.assert_close(found[name].value, expected[name].value, atol=1e-12, rtol=0, msg=name)
    assert [name for name in ("qkv", "kv") if name in found] == {"self": ["qkv"], "cross": ["kv"], "three": []}[
        kind
    ]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["self", "cross", "three"])
def test_its_matrix_is_pytorchs(bias, kind):
    """``in_proj_weight`` and ``in_proj_bias`` of ``nn.MultiheadAttention``, as they are."""
    attention = randomized(MultiHeadAttention(D_MODEL, 3, bias=bias, fused_qkv=True)).double()
    reference = nn.MultiheadAttention(D_MODEL, 3, bias=bias, batch_first=True, dtype=torch.float64).eval()
    with torch.no_grad():
        reference.in_proj_weight.copy_(attention.w_qkv.weight)
        if bias:
            reference.in_proj_bias.copy_(attention.w_qkv.bias)
        reference.out_proj.load_state_dict(attention.w_o.state_dict())
    inputs = inputs_of(kind)
    mask = random_mask(N_QUERIES, inputs[1].shape[1])
    expected, _ = reference(*inputs, attn_mask=~mask)
    torch.testing.assert_close(attention(*inputs, mask), expected, atol=1e-12, rtol=0)


def test_the_three_lie_side_by_side():
    attention = randomized(MultiHeadAttention(D_MODEL, 2, fused_qkv=True))
    with record(attention) as trace:
        attention(*(random_tensor(2, N_QUERIES, D_MODEL),) * 3)
    assert trace["qkv"].dims == (("B", 2), ("Tq", N_QUERIES), ("3*D", 3 * D_MODEL))
    together = torch.cat([trace[name].value for name in ("q_proj", "k_proj", "v_proj")], -1)
    assert torch.equal(together, trace["qkv"].value)


@pytest.mark.parametrize("name", ["query_input", "key_input", "value_input", "q_proj", "k_proj", "v_proj", "q"])
def test_an_edit_changes_what_it_names_and_nothing_else(name):
    fused, separate = fused_and_separate(D_MODEL, 2)
    inputs = inputs_of("self")
    outputs = []
    for attention in (fused, separate):
        with torch.no_grad(), record(attention, {name: lambda value: value * 1.5}):
            outputs.append(attention(*inputs))
    torch.testing.assert_close(*outputs, atol=1e-12, rtol=0)
    assert (outputs[0] - fused(*inputs)).abs().max() > 1e-3


@pytest.mark.parametrize("source", WEIGHT_SOURCES)
@pytest.mark.parametrize("architecture", ["encoder", "decoder", "encoder-decoder"])
@pytest.mark.parametrize("qkv_bias", [True, False])
def test_a_model_has_the_same_numbers_either_way(source, architecture, qkv_bias):
    config = TransformerConfig(
        architecture, vocab_size=12, d_model=32, n_heads=4, d_ff=16, n_layers=2, qkv_bias=qkv_bias
    )
    ids = [torch.tensor([[3, 1, 4, 1, 5]]), torch.tensor([[2, 7, 1]])][: 1 + (architecture == "encoder-decoder")]
    separate, fused = (build_model(each, source, 0).double() for each in (config, replace(config, fused_qkv=True)))
    torch.testing.assert_close(fused(*ids), separate(*ids), atol=1e-12, rtol=0)
    assert sum(p.numel() for p in fused.parameters()) == sum(p.numel() for p in separate.parameters())
