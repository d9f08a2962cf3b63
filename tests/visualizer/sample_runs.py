"""Runs that the tests of the visualizer share: every architecture, norm, activation, and dropout on and off."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from visualizer.glossary import pieces
from visualizer.masks import MASK_NAMES
from visualizer.runs.compute import compute_run
from visualizer.runs.prepare import prepare
from visualizer.runs.run import Run
from visualizer.settings.painted_mask import encode_cells
from visualizer.settings.settings import Settings

FIRST_CELL = np.zeros((7, 7), dtype=bool)
FIRST_CELL[0, 0] = True
"""Blocks the only key that a causal mask leaves the first query."""

BASE = Settings(
    text="the cat saw the dog", d_model=16, d_ff=24, weights="random", mask=("causal", "padding"), pad=2
)

VARIANTS = {
    "encoder": BASE,
    "decoder": replace(BASE, architecture="decoder"),
    "encoder-decoder": replace(BASE, architecture="encoder-decoder"),
    "pre-norm": replace(BASE, norm="pre"),
    "pre-norm encoder-decoder": replace(BASE, architecture="encoder-decoder", norm="pre"),
    "gelu": replace(BASE, activation="gelu"),
    "learned positions": replace(BASE, positions="learned"),
    "no positions": replace(BASE, positions="none"),
    "unscaled": replace(BASE, scale_scores=False),
    "final norm": replace(BASE, architecture="encoder-decoder", final_norm=True),
    "unembedding bias": replace(BASE, architecture="decoder", unembedding_bias=True),
    "no bias of q, k, v": replace(BASE, qkv_bias=False),
    "no bias of the output projection": replace(BASE, architecture="encoder-decoder", output_bias=False),
    "fused q, k, v": replace(BASE, fused_qkv=True),
    "fused q, k, v beside an encoder": replace(
        BASE, architecture="encoder-decoder", fused_qkv=True, qkv_bias=False, norm="pre"
    ),
    "heads of their own width": replace(BASE, architecture="decoder", d_model=18, head_dim=5),
    "hand-built, fused heads of their own width": replace(
        BASE, weights="hand_built", d_model=48, head_dim=10, fused_qkv=True, architecture="encoder-decoder"
    ),
    "deeper decoder": replace(BASE, architecture="encoder-decoder", n_layers=1, n_decoder_layers=3),
    "two vocabularies": replace(
        BASE, architecture="encoder-decoder", shared_vocabulary=False, target="the Katze", unembedding_bias=True
    ),
    "attention alone": replace(
        BASE, architecture="attention", d_out=6, head_dim=5, fused_qkv=True, output_bias=False
    ),
    "hand-built attention alone": replace(
        BASE, architecture="attention", weights="hand_built", d_model=32, d_out=48, dropout=0.2
    ),
    "large epsilon": replace(BASE, layer_norm_eps=0.1),
    "dropout": replace(BASE, dropout=0.3),
    "ALiBi": replace(BASE, score="score - slope(h) * (q - k)"),
    "T5's bias, capped": replace(
        BASE, architecture="decoder", score="2 * tanh((score + bias(h, bucket(k - q))) / 2)"
    ),
    "scores of the key alone": replace(BASE, score="k"),
    "no mask": replace(BASE, mask=()),
    "one head": replace(BASE, n_heads=1),
    "every mask": replace(BASE, mask=MASK_NAMES, window=2, custom=encode_cells(FIRST_CELL)),
    "padding on the left": replace(BASE, architecture="encoder-decoder", pad_side="left"),
    "hand-built": replace(BASE, weights="hand_built", d_model=32),
}

EDITED = {
    "scores": {"edits": "encoder.layers.0.self_attention.scores-mean"},
    "masked scores": {"edits": "encoder.layers.0.self_attention.masked_scores-h1-zero"},
    "weights": {"edits": "encoder.layers.0.self_attention.weights-r1-zero"},
    "activation": {"edits": "encoder.layers.0.feed_forward.activation-r2-zero"},
    "value input, fused": {"edits": "encoder.layers.1.self_attention.value_input-mean", "fused_qkv": True},
    "query input, fused": {"edits": "encoder.layers.1.self_attention.query_input-mean", "fused_qkv": True},
}
"""Fields of the settings with an edit in the midst of a module."""


@cache
def run_of(variant: str) -> Run:
    """The finished run of one of ``VARIANTS``, or of a worked example."""
    return compute_run(VARIANTS[variant] if variant in VARIANTS else Settings(weights=variant))


def problem_with(settings: Settings) -> str | None:
    """Say why settings cannot be run; None where they can."""
    try:
        prepare(settings)
    except ValueError as error:
        return str(error)
    return None


def unmarked(text: str) -> str:
    """A text without the marks of the words that open the glossary."""
    return "".join(piece.text for piece in pieces(text))
