"""The whole Transformer against NumPy, PyTorch and what must hold of it."""

from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from model import Decoder, TransformerConfig, record
from model.analysis.references import sdpa_difference
from tests.model.builders import (
    ARCHITECTURES,
    N_SOURCE,
    N_TARGET,
    VOCAB_SIZE,
    as_arrays,
    keyless,
    small_inputs,
    small_masks,
    small_transformer,
)
from tests.model.pytorch_layers import pytorch_decoder_layer, pytorch_encoder_layer
from tests.numpy_reference import NumpyTransformer

every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)
every_norm = pytest.mark.parametrize("norm", ["post", "pre"])
VARIANTS = [
    {"activation": activation, "positions": positions, "scale_scores": scale_scores, "tied_embeddings": tied}
    for activation, positions, scale_scores, tied in (
        ("relu", "sinusoidal", True, True),
        ("gelu", "sinusoidal", False, False),
        ("relu", "learned", False, True),
        ("gelu", "learned", True, False),
        ("relu", "none", True, False),
        ("gelu", "none", False, True),
    )
]
details = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(["post", "pre"]),
        "activation": st.sampled_from(["relu", "gelu"]),
        "final_norm": st.booleans(),
        "qkv_bias": st.booleans(),
        "fused_qkv": st.booleans(),
        "output_bias": st.booleans(),
        "unembedding_bias": st.booleans(),
        "layer_norm_eps": st.sampled_from([1e-12, 1e-5, 0.1]),
    }
)
any_details = settings(derandomize=True, max_examples=40, deadline=None)


head_dims = st.sampled_from([None, 1, 5])


def assert_it_agrees_with_numpy(model, inputs, masks):
    with torch.inference_mode(), record(model) as trace:
        model(*inputs, **masks)
    arrays = [ids.numpy() for ids in inputs]
    reference = NumpyTransformer(as_arrays(model), asdict(model.config))
    expected = reference.run(*arrays, **{name: mask.numpy() for name, mask in masks.items()})
    assert set(expected) <= set(trace)
    for path, value in expected.items():
        np.testing.assert_allclose(trace[path].value.numpy(), value, atol=1e-12, rtol=1e-12, err_msg=path)


@every_architecture
@every_norm
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())))
def test_every_stage_agrees_with_numpy(architecture, norm, variant):
    model = small_transformer(architecture, norm=norm, dtype=torch.float64, **variant)
    assert_it_agrees_with_numpy(model, small_inputs(architecture), small_masks(architecture))


@any_details
@given(architecture=st.sampled_from(ARCHITECTURES), choices=details, head_dim=head_dims, data=st.data())
def test_every_stage_agrees_with_numpy_whatever_the_details(architecture, choices, head_dim, data):
    n_decoder_layers = data.draw(st.sampled_from([None, 1, 3])) if architecture == "encoder-decoder" else None
    target_vocab_size = data.draw(st.sampled_from([None, 17])) if architecture == "encoder-decoder" else None
    sizes = {
        "head_dim": head_dim,
        "n_decoder_layers": n_decoder_layers,
        "target_vocab_size": target_vocab_size,
        "tied_embeddings": data.draw(st.booleans()),
    }
    model = small_transformer(architecture, dtype=torch.float64, **sizes, **choices)
    assert_it_agrees_with_numpy(model, small_inputs(architecture), small_masks(architecture))


@every_architecture
@every_norm
def test_it_agrees_with_numpy_without_a_mask(architecture, norm):
    model = small_transformer(architecture, norm=norm, dtype=torch.float64)
    assert_it_agrees_with_numpy(model, small_inputs(architecture), {})


@every_architecture
@every_norm
def test_it_agrees_with_numpy_where_every_key_is_blocked(architecture, norm):
    model = small_transformer(architecture, norm=norm, dtype=torch.float64)
    masks = small_masks(architecture) | {"source_mask": keyless(small_masks()["source_mask"], query=1)}
    if architecture == "encoder-decoder":
        masks["memory_mask"] = torch.zeros(N_TARGET, N_SOURCE, dtype=torch.bool)
    assert_it_agrees_with_numpy(model, small_inputs(architecture), masks)


def pytorch_transformer(model):
    """``nn.Transformer`` with the same layers, and a norm after the last one only where ours has it."""
    config = model.config
    reference = nn.Transformer(config.d_model, config.n_heads, 0, 0, config.d_ff, 0.0, batch_first=True).eval()
    reference.encoder.layers = nn.ModuleList(pytorch_encoder_layer(layer, config) for layer in model.encoder.layers)
    reference.decoder.layers = nn.ModuleList(pytorch_decoder_layer(layer, config) for layer in model.decoder.layers)
    reference.encoder.norm, reference.decoder.norm = model.encoder.norm, model.decoder.norm
    return reference


@any_details
@given(choices=details, depth=st.sampled_from([None, 1, 3]), words=st.sampled_from([None, 17]))
def test_it_agrees_with_pytorch(choices, depth, words):
    model = small_transformer("encoder-decoder", n_decoder_layers=depth, target_vocab_size=words, **choices)
    (source, target), masks = small_inputs("encoder-decoder"), small_masks("encoder-decoder")
    with record(model) as trace:
        model(source, target, **masks)
    source_blocked, target_blocked = ~masks["source_mask"], ~masks["target_mask"]
    hidden = pytorch_transformer(model)(
        trace["encoder.inputs.embedded"].value,
        trace["decoder.inputs.embedded"].value,
        src_mask=source_blocked.expand(-1, 2, -1, -1).flatten(0, 1),
        tgt_mask=target_blocked,
        memory_key_padding_mask=~masks["memory_mask"][:, 0, 0],
    )
    last = (
        f"decoder.layers.{model.config.decoder_depth - 1}.norm3" if model.decoder.norm is None else "decoder.norm"
    )
    torch.testing.assert_close(trace[last].value, hidden, atol=1e-6, rtol=0)
    torch.testing.assert_close(trace["logits"].value, model.unembedding(hidden), atol=1e-6, rtol=0)


@every_architecture
@pytest.mark.parametrize("scale_scores", [True, False])
@pytest.mark.parametrize("head_dim", [None, 3])
def test_every_attention_matches_pytorchs_function(architecture, scale_scores, head_dim):
    model = small_transformer(architecture, scale_scores=scale_scores, head_dim=head_dim)
    with torch.inference_mode(), record(model) as trace:
        model(*small_inputs(architecture), **small_masks(architecture))
    attentions = [path.removesuffix(".weights") for path in trace if path.endswith(".weights")]
    assert len(attentions) == (6 if architecture == "encoder-decoder" else 2)
    for attention in attentions:
        assert sdpa_difference(trace, attention) < 1e-6


@every_architecture
def test_probabilities_sum_to_one(architecture):
    inputs = small_inputs(architecture)
    probabilities = small_transformer(architecture)(*inputs)
    assert probabilities.shape == (*inputs[-1].shape, VOCAB_SIZE)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(inputs[-1].shape))


def test_a_causal_decoder_never_looks_ahead():
    model = small_transformer("decoder", dtype=torch.float64)
    (ids,) = small_inputs("decoder")
    causal = torch.ones(N_SOURCE, N_SOURCE, dtype=torch.bool).tril()
    whole = model(ids, source_mask=causal)
    for length in range(1, N_SOURCE):
        part = model(ids[:, :length], source_mask=causal[:length, :length])
        torch.testing.assert_close(whole[:, :length], part, atol=1e-12, rtol=0)


def test_padding_is_never_looked_at():
    model = small_transformer(dtype=torch.float64)
    (ids,) = small_inputs()
    longer = torch.cat([ids, torch.full((2, 3), 4)], dim=1)
    mask = (torch.arange(N_SOURCE + 3) < N_SOURCE)[None, None, None]
    padded = model(longer, source_mask=mask)[:, :N_SOURCE]
    torch.testing.assert_close(padded, model(ids), atol=1e-12, rtol=0)


def test_a_batch_is_its_items():
    model = small_transformer("encoder-decoder", dtype=torch.float64)
    source, target = small_inputs("encoder-decoder", n_batch=3)
    together = model(source, target)
    alone = torch.cat([model(source[i : i + 1], target[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(together, alone, atol=1e-12, rtol=0)


def test_tied_embeddings_are_one_matrix():
    tied = small_transformer("encoder-decoder", tied_embeddings=True)
    assert tied.encoder.inputs.tokens.weight is tied.decoder.inputs.tokens.weight is tied.unembedding.weight
    apart = small_transformer("encoder-decoder", tied_embeddings=True, target_vocab_size=VOCAB_SIZE)
    assert apart.decoder.inputs.tokens.weight is apart.unembedding.weight
    assert apart.encoder.inputs.tokens.weight is not apart.unembedding.weight
    free = small_transformer("encoder-decoder", tied_embeddings=False)
    assert free.encoder.inputs.tokens.weight is not free.unembedding.weight


@every_architecture
def test_every_parameter_of_a_model_takes_part(architecture):
    model = small_transformer(architecture, positions="learned", norm="pre", unembedding_bias=True)
    probabilities = model(*small_inputs(architecture), **small_masks(architecture))
    probabilities.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


def test_a_target_belongs_to_an_encoder_decoder_alone():
    for architecture, inputs in (
        ("encoder", small_inputs("encoder-decoder")),
        ("decoder", small_inputs("encoder-decoder")),
        ("encoder-decoder", small_inputs()),
    ):
        with pytest.raises(ValueError, match="only encoder-decoder takes a target"):
            small_transformer(architecture)(*inputs)


@pytest.mark.parametrize("architecture", ["encoder", "decoder"])
@pytest.mark.parametrize("name", ["target_mask", "memory_mask"])
def test_a_mask_that_nothing_would_use_is_refused(architecture, name):
    mask = torch.ones(N_SOURCE, N_SOURCE, dtype=torch.bool)
    with pytest.raises(ValueError, match="mask it by source_mask"):
        small_transformer(architecture)(*small_inputs(), **{name: mask})


@every_architecture
@every_norm
def test_each_layer_can_have_a_mask_of_its_own(architecture, norm):
    """Layers with masks by hand compute the same, one after another."""
    model = small_transformer(architecture, norm=norm, dtype=torch.float64)
    inputs, masks = small_inputs(architecture), small_masks(architecture)
    n_layers = model.config.n_layers
    in_layers = {name: (None, *(mask,) * (n_layers - 1)) for name, mask in masks.items()}
    with torch.inference_mode(), record(model) as trace:
        model(*inputs, **in_layers)
    stacks = [stack for stack in ("encoder", "decoder") if getattr(model, stack) is not None]
    for stack in stacks:
        assert f"{stack}.layers.0.self_attention.mask" not in trace
        assert f"{stack}.layers.1.self_attention.mask" in trace
    with torch.inference_mode(), record(model) as without:
        model(*inputs)
    first = f"{stacks[0]}.layers.0."
    assert all(torch.equal(trace[path].value, without[path].value) for path in trace if path.startswith(first))
    with torch.inference_mode():
        everywhere = model(*inputs, **masks)
        repeated = model(*inputs, **{name: (mask,) * n_layers for name, mask in masks.items()})
    assert torch.equal(everywhere, repeated)
    assert not torch.equal(everywhere, trace["probabilities"].value)


def test_masks_for_another_number_of_layers_are_refused():
    model = small_transformer("encoder")
    with pytest.raises(ValueError, match=r"given for 5 layers: there must be one for each of the 2"):
        model(*small_inputs("encoder"), source_mask=(None,) * 5)


def test_a_memory_belongs_to_a_decoder_with_cross_attention():
    sizes = {"vocab_size": VOCAB_SIZE, "d_model": 8, "n_heads": 2, "d_ff": 12, "n_layers": 1}
    (ids,) = small_inputs()
    with pytest.raises(ValueError, match="memory: this decoder has a cross-attention"):
        Decoder(TransformerConfig(architecture="encoder-decoder", **sizes))(ids)
    with pytest.raises(ValueError, match="memory: this decoder has no cross-attention"):
        Decoder(TransformerConfig(architecture="decoder", **sizes))(ids, torch.zeros(2, 3, 8))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_a_sequence_beyond_max_len_is_refused(positions):
    model = small_transformer(positions=positions, max_len=4)
    assert model(torch.zeros(1, 4, dtype=torch.int64)).shape == (1, 4, VOCAB_SIZE)
    with pytest.raises(ValueError, match=r"the sequence has 5 tokens: max_len \(4\) is the most"):
        model(torch.zeros(1, 5, dtype=torch.int64))


def test_one_token_alone_attends_to_itself():
    model = small_transformer()
    with record(model) as trace:
        model(torch.tensor([[3]]))
    assert (trace["encoder.layers.1.self_attention.weights"].value == 1).all()
