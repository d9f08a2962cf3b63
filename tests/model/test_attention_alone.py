"""A self-attention alone: widths of its own, the numbers of PyTorch, and what each head finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from model import AttentionAlone, Transformer, TransformerConfig, record
from model.analysis.influence import judge, measure_influence
from model.analysis.reach import allowed_dependence
from model.masks import causal
from model.sources.weights import WEIGHT_SOURCES, build_attention_alone, head_names
from tests import numpy_reference
from tests.model.builders import as_arrays, random_mask, randomized

N_TOKENS, VOCAB_SIZE = 6, 13
IDS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])


def config_of(**choices):
    return TransformerConfig("attention", **({"vocab_size": VOCAB_SIZE, "d_model": 12, "n_heads": 2} | choices))


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    d_out=st.sampled_from([None, 1, 5, 12, 30]),
    head_dim=st.sampled_from([None, 1, 7]),
    fused_qkv=st.booleans(),
    qkv_bias=st.booleans(),
    output_bias=st.booleans(),
    scale_scores=st.booleans(),
    positions=st.sampled_from(["sinusoidal", "learned", "none"]),
    is_masked=st.booleans(),
)
def test_it_agrees_with_numpy(is_masked, **choices):
    model = randomized(AttentionAlone(config_of(**choices))).double()
    mask = random_mask(2, 1, N_TOKENS, N_TOKENS) if is_masked else None
    with torch.no_grad(), record(model) as trace:
        output = model(IDS, source_mask=mask)
    x = trace["inputs.embedded"].value.numpy()
    expected = numpy_reference.multi_head_attention(
        numpy_reference.under(as_arrays(model), "attention."),
        *(x, x, x, None if mask is None else mask.numpy()),
        n_heads=2,
        scale_scores=choices["scale_scores"],
    )
    for name, value in expected.items():
        np.testing.assert_allclose(trace[f"attention.{name}"].value.numpy(), value, atol=1e-12, rtol=0)
    assert output.shape == (2, N_TOKENS, choices["d_out"] or 12)
    assert list(trace)[-1] == "attention.output"


def test_it_agrees_with_pytorch():
    model = randomized(AttentionAlone(config_of(fused_qkv=True)))
    attention = model.attention
    reference = nn.MultiheadAttention(12, 2, batch_first=True).eval()
    with torch.no_grad():
        reference.in_proj_weight.copy_(attention.w_qkv.weight)
        reference.in_proj_bias.copy_(attention.w_qkv.bias)
        reference.out_proj.load_state_dict(attention.w_o.state_dict())
    mask = causal(N_TOKENS, N_TOKENS)
    with torch.no_grad(), record(model) as trace:
        output = model(IDS, source_mask=[mask])
    x = trace["inputs.embedded"].value
    expected, _ = reference(x, x, x, attn_mask=~mask)
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("source", WEIGHT_SOURCES)
def test_its_weights_are_filled_the_same_way_each_time(source):
    config = config_of(d_model=32, n_heads=4, d_out=5, fused_qkv=True, positions="learned")
    torch.manual_seed(1)
    first = build_attention_alone(config, source, 0)
    torch.manual_seed(2)
    second = build_attention_alone(config, source, 0)
    for (name, one), other in zip(first.named_parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other), name
    assert not first.training


def test_hand_built_heads_find_what_their_names_say():
    config = config_of(vocab_size=40, d_model=128, n_heads=4, d_out=3)
    model = build_attention_alone(config, "hand_built", 0)
    with torch.no_grad(), record(model) as trace:
        output = model(IDS[:1])
    weights = trace["attention.weights"].value[0]
    heads = dict(zip(head_names(config, "hand_built"), weights, strict=True))
    assert heads["previous token"].diagonal(-1).min() > 0.9
    assert heads["same token"][1, [1, 3]].sum() > 0.9
    assert heads["first token"][:, 0].min() > 0.9
    assert output.abs().max() > 0.01


def test_nothing_leaks_through_its_mask():
    model = randomized(AttentionAlone(config_of(d_out=4))).double()
    mask = causal(N_TOKENS, N_TOKENS)
    influence = measure_influence(model, lambda: model(IDS[:1], source_mask=mask))
    assert influence.paths == ("attention.output",)
    with torch.no_grad(), record(model) as trace:
        model(IDS[:1], source_mask=mask)
    allowed = allowed_dependence(trace, {"attention": mask})
    assert torch.equal(allowed["attention.output"], mask)
    (verdict,) = judge(influence, allowed)
    assert verdict.passes
    assert verdict.n_forbidden == N_TOKENS * (N_TOKENS - 1) // 2
    (leaking,) = judge(measure_influence(model, lambda: model(IDS[:1])), allowed)
    assert not leaking.passes


def test_a_transformer_is_no_attention_alone_and_the_other_way_round():
    with pytest.raises(ValueError, match=r"architecture \(encoder\) must be attention"):
        AttentionAlone(TransformerConfig())
    with pytest.raises(ValueError, match="build AttentionAlone"):
        Transformer(config_of())


def test_the_residual_fixes_the_width_of_what_a_transformers_attention_puts_out():
    with pytest.raises(ValueError, match=r"d_out \(20\) must be d_model \(12\): the residual adds the two"):
        TransformerConfig("encoder", d_model=12, n_heads=2, d_out=20)
    assert TransformerConfig("encoder", d_model=12, n_heads=2, d_out=12).d_out == 12
    with pytest.raises(ValueError, match=r"d_out \(0\) must be at least 1"):
        config_of(d_out=0)
