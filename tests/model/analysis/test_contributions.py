"""The terms of the residual stream sum to what the model computed, and the lens ends in its own logits."""

from __future__ import annotations

import pytest
import torch

from model import record
from model.analysis.contributions import lens, places, stacks_of
from model.dropout import seed_dropout
from tests.model.builders import ARCHITECTURES, small_inputs, small_transformer

KINDS = {
    "paper": {},
    "pre-norm": {"norm": "pre"},
    "without biases": {"qkv_bias": False, "output_bias": False, "norm": "pre"},
    "final norm": {"final_norm": True, "unembedding_bias": True, "head_dim": 3, "fused_qkv": True},
    "dropout": {"dropout": 0.3},
}


def traced(architecture, **choices):
    model = small_transformer(architecture, **choices)
    model.train(model.config.dropout > 0)
    seed_dropout(model, 3)
    with record(model) as trace:
        model(*small_inputs(architecture))
    return model, trace


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_terms_sum_to_the_stream_at_every_place(architecture, kind):
    model, trace = traced(architecture, **KINDS[kind])
    assert len(stacks_of(trace)) == (2 if architecture == "encoder-decoder" else 1)
    for stack in stacks_of(trace):
        found = list(places(model, trace, stack, batch=1))
        normed = "norm" if model.config.norm == "post" else "never"
        stages = ("embedded", "residual", normed)
        expected = [path for path in trace if path.startswith(stack) and path.split(".")[-1].startswith(stages)]
        expected += [f"{stack}.norm"] * (f"{stack}.norm" in trace and f"{stack}.norm" not in expected)
        assert [place.path for place in found] == expected
        for place in found:
            assert len(place.parts) == len(place.terms) == len(set(place.terms))
            torch.testing.assert_close(
                place.parts.sum(0), trace[place.path].value[1].double(), rtol=1e-5, atol=1e-5
            )
            assert place.difference < 1e-5


def test_a_head_is_what_its_ablation_takes_from_the_output():
    model, trace = traced("decoder")
    (place,) = (place for place in places(model, trace, "decoder") if place.path.endswith("0.residual1"))
    term = next(i for i, term in enumerate(place.terms) if term.kind == "head" and term.head == 1)
    with record(model, edits={"decoder.layers.0.self_attention.context": without_head_1}) as ablated:
        model(*small_inputs("decoder"))
    path = "decoder.layers.0.self_attention.output"
    difference = (trace[path].value - ablated[path].value)[0].double()
    torch.testing.assert_close(place.parts[term], difference, rtol=1e-5, atol=1e-5)


def without_head_1(context):
    return context * torch.tensor([1.0, 0.0])[:, None, None]


def test_some_tokens_alone_are_the_same_rows():
    model, trace = traced("encoder")
    every, some = (list(places(model, trace, "encoder", tokens=part)) for part in (slice(None), slice(2, 4)))
    torch.testing.assert_close(some[-1].parts, every[-1].parts[:, 2:4])


@pytest.mark.parametrize("choices", [{}, {"norm": "pre"}, {"final_norm": True, "unembedding_bias": True}])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_lens_ends_in_the_logits_of_the_model(architecture, choices):
    model, trace = traced(architecture, **choices)
    stack = stacks_of(trace)[-1]
    last = max(path for path in trace if path.startswith(f"{stack}.layers.1.residual"))
    stream = trace[last if model.config.norm == "pre" else last.replace("residual", "norm")].value
    torch.testing.assert_close(lens(model, stack, stream), trace["logits"].value)
    early = lens(model, stack, trace[f"{stack}.inputs.embedded"].value)
    assert not torch.allclose(early, trace["logits"].value)
