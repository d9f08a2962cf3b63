"""A configuration is what can be built, or is refused by name."""

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import TransformerConfig
from model.config import check_divisible


def test_the_defaults_are_the_papers_base_model():
    config = TransformerConfig()
    assert (config.d_model, config.n_heads, config.d_ff, config.n_layers) == (512, 8, 2048, 6)
    assert (config.norm, config.positions, config.activation) == ("post", "sinusoidal", "relu")
    assert config.scale_scores
    assert config.width_of_head == 64


def test_a_width_of_its_own_frees_the_heads_from_the_width_of_the_model():
    assert TransformerConfig(d_model=10, n_heads=4, head_dim=3).width_of_head == 3


def test_it_is_a_value():
    assert TransformerConfig(d_model=64) == replace(TransformerConfig(), d_model=64)
    assert hash(TransformerConfig()) == hash(TransformerConfig())
    with pytest.raises(FrozenInstanceError):
        TransformerConfig().d_model = 8


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"architecture": "rnn"}, r"architecture \('rnn'\) must be one of: encoder, decoder, encoder-decoder"),
        ({"norm": ""}, r"norm \(''\) must be one of: post, pre"),
        ({"positions": "rotary"}, r"positions \('rotary'\) must be one of: sinusoidal, learned, none"),
        ({"activation": "GELU"}, r"activation \('GELU'\) must be one of: relu, gelu"),
        ({"d_model": 10, "n_heads": 4}, r"d_model \(10\) must be divisible by n_heads \(4\): try 8 or 12"),
        ({"d_model": 2, "n_heads": 3}, r"d_model \(2\) must be divisible by n_heads \(3\): try 3"),
        (
            {"architecture": "decoder", "n_decoder_layers": 2},
            r"n_decoder_layers \(2\) is for encoder-decoder alone: decoder has n_layers",
        ),
        (
            {"target_vocab_size": 9},
            r"target_vocab_size \(9\) is for encoder-decoder alone: encoder has vocab_size",
        ),
        ({"architecture": "encoder-decoder", "n_decoder_layers": 0}, r"n_decoder_layers \(0\) must be at least 1"),
        ({"head_dim": 0}, r"head_dim \(0\) must be at least 1"),
        ({"dropout": -0.1}, r"dropout \(-0.1\) must be at least 0 and below 1"),
        ({"dropout": 1.0}, r"dropout \(1.0\) must be at least 0 and below 1"),
        ({"layer_norm_eps": 0.0}, r"layer_norm_eps \(0.0\) must be a number above 0"),
        ({"layer_norm_eps": float("nan")}, r"layer_norm_eps \(nan\) must be a number above 0"),
        ({"dropout": float("nan")}, r"dropout \(nan\) must be at least 0 and below 1"),
    ],
)
def test_what_cannot_be_is_refused_by_name(choices, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**choices)


@pytest.mark.parametrize("name", ["vocab_size", "d_model", "n_heads", "d_ff", "n_layers", "max_len"])
@pytest.mark.parametrize("value", [0, -5])
def test_a_size_is_at_least_one(name, value):
    with pytest.raises(ValueError, match=rf"{name} \({value}\) must be at least 1"):
        TransformerConfig(**{name: value})


@given(d_model=st.integers(1, 600), n_heads=st.integers(1, 64))
def test_the_widths_it_proposes_would_do(d_model, n_heads):
    if d_model % n_heads == 0:
        check_divisible(d_model, n_heads)
        return
    with pytest.raises(ValueError, match="try") as refusal:
        check_divisible(d_model, n_heads)
    proposed = [int(width) for width in str(refusal.value).rpartition("try ")[2].split(" or ")]
    assert proposed
    for width in proposed:
        check_divisible(width, n_heads)
        assert abs(width - d_model) < n_heads
