"""Every source of weights fills a whole model, the same way each time."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from model import Transformer, TransformerConfig
from model.attention_alone import AttentionAlone
from model.sources.weights import WEIGHT_SOURCES, build_attention_alone, build_model, head_names

ARCHITECTURES = ("encoder", "decoder", "encoder-decoder")
DETAILS = {"final_norm": True, "unembedding_bias": True}


def config_of(**choices):
    sizes = {"vocab_size": 20, "d_model": 32, "n_heads": 4, "d_ff": 48, "n_layers": 2}
    return TransformerConfig(**(sizes | choices))


def parameters_of(source="random", seed=0, **choices):
    model = build_model(config_of(**choices), source, seed)
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("source", WEIGHT_SOURCES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_no_parameter_is_left_to_chance(source, architecture, norm, positions):
    model = build_model(config_of(architecture=architecture, norm=norm, positions=positions, **DETAILS), source, 0)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        nn.init.constant_(parameter, math.nan)
    WEIGHT_SOURCES[source].fill(model, 0)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]), name


@pytest.mark.parametrize("source", WEIGHT_SOURCES)
@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "attention"])
def test_models_of_one_kind_have_nothing_in_common_that_one_of_them_changes(source, architecture):
    config = config_of(architecture=architecture, tied_embeddings=source == "random", d_ff=40)  # of no other test
    kind, build = (
        (AttentionAlone, build_attention_alone) if architecture == "attention" else (Transformer, build_model)
    )
    alone = kind(config).eval()
    WEIGHT_SOURCES[source].fill(alone, 0)
    with torch.inference_mode():
        other = build(config, source, 1)
    model = build(config, source, 0)
    assert not any(tensor.is_inference() for tensor in (*model.parameters(), *model.buffers()))
    with torch.inference_mode():
        for parameter in other.parameters():
            nn.init.constant_(parameter, math.nan)
    other.train().double().register_forward_hook(lambda *_: None)
    modules = zip(alone.named_modules(), model.named_modules(), strict=True)
    assert all(here[0] == there[0] and type(here[1]) is type(there[1]) for here, there in modules)
    assert not any(module.training or module._forward_hooks for module in model.modules())
    for name, parameter in alone.named_parameters(remove_duplicate=False):
        assert torch.equal(model.get_parameter(name), parameter), name
    for name, table in alone.named_buffers():
        assert torch.equal(model.get_buffer(name), table), name
    assert len(list(model.parameters())) == len(list(alone.parameters()))  # what was tied still is


@pytest.mark.parametrize("source", WEIGHT_SOURCES)
def test_models_come_in_evaluation_mode_and_in_single_precision(source):
    model = build_model(config_of(dropout=0.1), source, 0)
    assert not model.training
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("source", WEIGHT_SOURCES)
def test_another_seed_gives_other_weights(source):
    first, second = parameters_of(source, seed=0), parameters_of(source, seed=1)
    assert any(not torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("source", WEIGHT_SOURCES)
def test_more_words_leave_the_earlier_words_as_they_are(source):
    few = build_model(config_of(vocab_size=20, unembedding_bias=True), source, 0)
    for vocab_size in (21, 500, 1030):
        many = build_model(config_of(vocab_size=vocab_size, unembedding_bias=True), source, 0)
        assert torch.equal(many.encoder.inputs.tokens.weight[:20], few.encoder.inputs.tokens.weight)
        assert torch.equal(many.unembedding.weight[:20], few.unembedding.weight)
        assert torch.equal(many.unembedding.bias[:20], few.unembedding.bias)
        for name, parameter in few.encoder.layers.named_parameters():
            assert torch.equal(parameter, many.encoder.layers.get_parameter(name)), name


@pytest.mark.parametrize(
    ("choices", "part"),
    [
        ({"n_layers": 3}, "encoder.layers"),
        ({"n_decoder_layers": 5, "architecture": "encoder-decoder"}, "encoder.layers"),
        ({"target_vocab_size": 5, "architecture": "encoder-decoder"}, "encoder"),
        ({"n_heads": 8}, "encoder"),
        ({"d_ff": 100}, "encoder.layers.0.self_attention"),
        ({"norm": "pre"}, "encoder.layers"),
        ({"activation": "gelu"}, "encoder"),
        ({"positions": "learned"}, "encoder.layers"),
        ({"architecture": "encoder-decoder"}, "encoder"),
        ({"tied_embeddings": False}, "encoder"),
        ({"unembedding_bias": True}, ""),
        ({"output_bias": False}, "encoder.layers.0.self_attention.w_q"),
    ],
    ids=str,
)
def test_another_size_leaves_all_other_random_parameters_as_they_are(choices, part):
    before, after = parameters_of(), parameters_of(**choices)
    kept = [name for name in before if name.startswith(part)]
    assert kept
    for name in kept:
        assert torch.equal(before[name], after[name]), name


@pytest.mark.parametrize("d_model", [12, 64])
def test_more_positions_leave_the_earlier_ones_as_they_are(d_model):
    few, many = (parameters_of(positions="learned", d_model=d_model, max_len=length) for length in (512, 1024))
    assert few.keys() == many.keys()
    for name, parameter in few.items():
        assert torch.equal(many[name][: len(parameter)], parameter), name


@pytest.mark.parametrize("source", WEIGHT_SOURCES)
def test_two_vocabularies_have_tables_of_their_own(source):
    model = build_model(config_of(architecture="encoder-decoder", target_vocab_size=20), source, 0)
    assert not torch.equal(model.encoder.inputs.tokens.weight, model.decoder.inputs.tokens.weight)
    again = build_model(config_of(architecture="encoder-decoder", target_vocab_size=31), source, 0)
    assert torch.equal(again.decoder.inputs.tokens.weight[:20], model.decoder.inputs.tokens.weight)
    assert again.unembedding.weight.shape == (31, 32)


def test_the_architectures_share_their_embedding():
    models = [build_model(config_of(architecture=architecture), "random", 0) for architecture in ARCHITECTURES]
    tables = [model.unembedding.weight for model in models]
    assert torch.equal(tables[0], tables[1])
    assert torch.equal(tables[0], tables[2])


def test_random_linear_layers_are_xavier_uniform():
    weight = parameters_of(d_model=128, d_ff=256)["encoder.layers.0.feed_forward.w_1.weight"]
    bound = math.sqrt(6 / (128 + 256))
    assert weight.abs().max() <= bound
    assert weight.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert weight.mean() == pytest.approx(0.0, abs=0.002)


def test_random_embeddings_times_the_root_of_d_model_have_unit_variance():
    table = parameters_of(d_model=128, vocab_size=500)["encoder.inputs.tokens.weight"]
    assert (table * math.sqrt(128)).std() == pytest.approx(1.0, rel=0.02)


def test_random_learned_positions_are_as_strong_as_sinusoids():
    table = parameters_of(d_model=128, positions="learned")["encoder.inputs.positions.table"]
    assert table.std() == pytest.approx(math.sqrt(0.5), rel=0.02)


def test_random_biases_are_small_and_layer_norms_neutral():
    for name, parameter in parameters_of(norm="pre").items():
        if "norm" in name:
            assert parameter.unique().tolist() == ([1.0] if name.endswith("weight") else [0.0]), name
        elif name.endswith("bias"):
            assert 0 < parameter.abs().max() < 0.1, name


def test_embeddings_are_tied_where_the_source_allows():
    tied = build_model(config_of(), "random", 0)
    assert tied.config.tied_embeddings
    assert tied.unembedding.weight is tied.encoder.inputs.tokens.weight
    untied = build_model(config_of(tied_embeddings=False), "random", 0)
    assert not torch.equal(untied.unembedding.weight, untied.encoder.inputs.tokens.weight)
    assert not build_model(config_of(), "hand_built", 0).config.tied_embeddings


def test_only_hand_built_heads_have_names():
    assert head_names(config_of(), "random") == ()
    assert head_names(config_of(), "hand_built") == ("previous token", "next token", "same token", "first token")


def test_an_unknown_source_is_refused():
    with pytest.raises(ValueError, match="must be one of: random, hand_built"):
        build_model(config_of(), "trained", 0)
    with pytest.raises(ValueError, match="must be one of"):
        head_names(config_of(), "trained")
