"""Every parameter: its kind, bounds, label and help, in one table that the link and the controls follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Literal

from visualizer.settings.published import PUBLISHED
from visualizer.settings.trained_models import TRAINED_MODELS

WORKED_EXAMPLES = tuple(PUBLISHED)
"""The published examples whose numbers can be loaded in place of a model, in the order of their menu."""


GUESSED = "guess"
"""The intention of a mask that nobody has named: the likeliest is taken and said to be a guess."""


TRAINED = "trained"
"""The weights of a model that was trained on a task."""


FAULTS_OF_MASKS = ("after_softmax", "before_softmax", "left_out")
"""The mask bugs that are nothing without a mask; the other one is in how positions count the padding."""


MAX_TOKENS = 512
"""The longest sequence that is drawn."""


MAX_TEXT = 20_000
"""The most characters of a text: any that is longer has more than can be drawn, or next to no spaces."""


MAX_ORDER = 99
"""The orders that the tokens of a text can be put in, besides the one that was typed."""


MAX_SEQUENCES = 64
"""The most lines of a text, each of them a sequence of the batch."""


NO_MASK = "none"
"""How a link says that there is no mask."""


NO_CHART = "none"
"""How a link says that no chart is open."""


NARROWEST, WIDEST = 8, 768


Kind = Literal[
    "integer", "fraction", "choice", "switch", "names", "text", "cells", "stage", "identifier", "places", "intent"
]


@dataclass(frozen=True)
class Field:
    """One parameter.

    Attributes:
        name: the field of ``Settings`` or ``Selection``, and the parameter of the link.
        kind: how it is read and written.
        label: what its control is called.
        help: one or two sentences for its control.
        choices: for ``choice`` and ``names``, each value and what it is called.
        least: for ``integer`` and ``fraction``, the least good value.
        most: the greatest good value.
    """

    name: str
    kind: Kind
    label: str
    help: str
    choices: Mapping[str, str] = dataclass_field(default_factory=dict)
    least: float = 0
    most: float = 0


_MASK_LABELS = {
    "causal": "Causal",
    "padding": "Padding",
    "sliding_window": "Sliding window",
    "prefix": "Prefix",
    "strided": "Strided",
    "custom": "Painted",
}


_WEIGHT_LABELS = {
    "hand_built": "Hand-built heads",
    "random": "Random",
    TRAINED: "Trained on a task",
    **{name: example.title for name, example in PUBLISHED.items()},
}


SETTINGS_FIELDS = (
    Field(
        "architecture",
        "choice",
        "Architecture",
        "An encoder reads a text, a decoder continues one, an encoder-decoder turns one into another. An attention "
        "alone is one self-attention over the embedded tokens, with no residual, norm or logits around it.",
        choices={
            "encoder": "Encoder",
            "decoder": "Decoder",
            "encoder-decoder": "Encoder-decoder",
            "attention": "Attention alone",
        },
    ),
    Field(
        "text",
        "text",
        "Text",
        "What the model reads. Each line is a sequence of its own: several are computed at once, as a batch.",
    ),
    Field(
        "target",
        "text",
        "Target",
        "What the decoder has written so far; it starts with <s>. One line for each line of the text.",
    ),
    Field(
        "tokens",
        "choice",
        "Tokens",
        "What one token is: a word or punctuation mark, a character as you see it, or a byte of UTF-8.",
        choices={"words": "Words", "characters": "Characters", "bytes": "Bytes"},
    ),
    Field(
        "weights",
        "choice",
        "Model weights",
        "Hand-built heads each do one known thing; random ones come from the seed; trained ones have learned a "
        "task. Published numbers come with their own: see the worked examples below.",
        choices=_WEIGHT_LABELS,
    ),
    Field(
        "task",
        "choice",
        "Task",
        "What the model has learned.",
        choices={name: trained.title for name, trained in TRAINED_MODELS.items()},
    ),
    Field("checkpoint", "identifier", "Training", "A model that was trained here, while the server remembers it."),
    Field("seed", "integer", "Seed", "The same seed gives the same random numbers.", least=0, most=2**32 - 1),
    Field("n_heads", "integer", "Heads", "How many attention heads each layer has.", least=1, most=16),
    Field("n_layers", "integer", "Layers", "How many layers are stacked.", least=1, most=12),
    Field(
        "n_decoder_layers",
        "integer",
        "Layers of the decoder",
        "How many layers the decoder has, where they are not as many as the encoder's.",
        least=0,
        most=12,
    ),
    Field(
        "shared_vocabulary",
        "switch",
        "Shared vocabulary",
        "Source and target take their ids from one vocabulary and share one embedding table, as in the paper. Off, "
        "each has its own, and equal words of both are as different as any two.",
    ),
    Field(
        "d_model",
        "integer",
        "Model width",
        "The length of each token's vector (d_model). The heads share it evenly.",
        least=NARROWEST,
        most=WIDEST,
    ),
    Field(
        "head_dim",
        "integer",
        "Head width",
        "The length of one head's queries, keys and values (d_k = d_v): the model width shared among the heads, "
        "as in the paper, or any other, as in T5. What the heads find is then wider or narrower than the model.",
        least=0,
        most=256,
    ),
    Field(
        "d_out",
        "integer",
        "Output width",
        "The length of the vectors that an attention alone puts out (d_out). In a Transformer it is the model "
        "width: the residual connection adds what comes out to what went in.",
        least=0,
        most=WIDEST,
    ),
    Field(
        "d_ff",
        "integer",
        "Feed-forward width",
        "The length of the hidden vector of the feed-forward network (d_ff).",
        least=1,
        most=4096,
    ),
    Field(
        "norm",
        "choice",
        "Layer norm",
        "Post normalises after each residual sum, as in the paper; pre normalises what enters each sub-layer.",
        choices={"post": "Post", "pre": "Pre"},
    ),
    Field(
        "positions",
        "choice",
        "Positions",
        "How the model knows the order of the tokens. With none it cannot.",
        choices={"sinusoidal": "Sinusoidal", "learned": "Learned", "none": "None"},
    ),
    Field(
        "activation",
        "choice",
        "Activation",
        "The function between the two feed-forward matrices.",
        choices={"relu": "ReLU", "gelu": "GELU"},
    ),
    Field(
        "scale_scores",
        "switch",
        "Scale scores",
        "Divide the scores by the square root of the head width, so that softmax does not saturate.",
    ),
    Field(
        "final_norm",
        "switch",
        "Final norm",
        "One more layer norm after the last layer, as nn.Transformer has it. With pre-norm it is always there.",
    ),
    Field(
        "qkv_bias",
        "switch",
        "Bias of q, k, v",
        "The projections to queries, keys and values add a bias, as in nn.MultiheadAttention; those of the paper "
        "have none.",
    ),
    Field(
        "fused_qkv",
        "switch",
        "One matrix for q, k, v",
        "One matrix makes queries, keys and values, as in nn.MultiheadAttention (in_proj_weight) and GPT-2, "
        "instead of three. The numbers stay the same.",
    ),
    Field(
        "output_bias",
        "switch",
        "Bias of the output projection",
        "The projection that mixes the heads adds a bias, as in nn.MultiheadAttention; the paper's has none.",
    ),
    Field(
        "layer_norm_eps",
        "fraction",
        "Layer norm ε",
        "Added to the variance before its root is taken, so that nothing is divided by zero: 1e-5 in PyTorch, 1e-6 "
        "in Tensor2Tensor, 1e-12 in BERT. A large one shows what it does.",
        least=1e-12,
        most=1,
    ),
    Field(
        "unembedding_bias",
        "switch",
        "Bias of the logits",
        "The final linear layer adds a number of its own to each token's logit, as in BERT; the paper's has none.",
    ),
    Field(
        "dropout",
        "fraction",
        "Dropout",
        "The share of values set to zero, as in training. The weights of a query then no longer sum to one.",
        least=0,
        most=0.9,
    ),
    Field(
        "mask",
        "names",
        "Masks",
        "A query sees a key only where every mask chosen allows it.",
        choices=_MASK_LABELS,
    ),
    Field(
        "window",
        "integer",
        "Window",
        "Sliding window: a query sees the keys less than this far away, on either side.",
        least=1,
        most=MAX_TOKENS,
    ),
    Field(
        "prefix",
        "integer",
        "Prefix length",
        "Prefix: every query sees this many first keys, and later ones causally.",
        least=0,
        most=MAX_TOKENS,
    ),
    Field(
        "stride",
        "integer",
        "Stride",
        "Strided: a query sees one key in this many, counted from itself.",
        least=1,
        most=MAX_TOKENS,
    ),
    Field(
        "order",
        "integer",
        "Order",
        "The order of the text's tokens: 0 as typed, 1 backwards, from 2 on shuffled in one way or another.",
        least=0,
        most=MAX_ORDER,
    ),
    Field(
        "pad",
        "integer",
        "Padding tokens",
        "How many <pad> tokens are added. The padding mask hides them.",
        least=0,
        most=64,
    ),
    Field(
        "pad_side",
        "choice",
        "Padding side",
        "Where the <pad> tokens stand: after the text, or before it as when a batch of prompts is continued.",
        choices={"right": "Right", "left": "Left"},
    ),
    Field(
        "fault",
        "choice",
        "Mask bug",
        "Breaks the model on purpose, to see what a wrong mask does: the weights or the scores are multiplied by "
        "the mask instead of filled with -∞ before the softmax, the middle layer goes without its mask, or "
        "positions count the padding on the left, so that the text stands further on.",
        choices={
            "none": "None",
            "after_softmax": "Weights times mask",
            "before_softmax": "Scores times mask",
            "left_out": "Left out in a layer",
            "padding_counted": "Padding counted",
        },
    ),
    Field("custom", "cells", "Painted mask", "The expression that you wrote, or the cells that you painted."),
)


SELECTION_FIELDS = (
    Field(
        "view",
        "choice",
        "View",
        "Follow the computation, see all heads at once, set two masks side by side, paint and test a mask, train a "
        "model, or let one write.",
        choices={
            "step": "Step through",
            "heads": "Heads",
            "compare": "Compare masks",
            "lab": "Mask lab",
            "train": "Train",
            "generate": "Generate",
        },
    ),
    Field("layer", "integer", "Layer", "The layer that is looked at, counted from 0.", least=0, most=11),
    Field("head", "integer", "Head", "The head that is looked at, counted from 0.", least=0, most=15),
    Field("stage", "stage", "Stage", "The step of the computation that is looked at."),
    Field("query", "integer", "Query", "The token that looks, counted from 0.", least=0, most=MAX_TOKENS - 1),
    Field("key", "integer", "Key", "The token that is looked at, counted from 0.", least=0, most=MAX_TOKENS - 1),
    Field(
        "batch",
        "integer",
        "Sequence",
        "Which sequence of the batch is looked at, counted from 0.",
        least=0,
        most=MAX_SEQUENCES - 1,
    ),
    Field("mask_a", "names", "Masks A", "The masks of the first of two runs.", choices=_MASK_LABELS),
    Field("mask_b", "names", "Masks B", "The masks of the second of two runs.", choices=_MASK_LABELS),
    Field(
        "scope",
        "choice",
        "Paint for",
        "The heads that a stroke is for. The narrowest painting holds: one head of one layer before a layer before "
        "a head before all.",
        choices={"all": "All heads", "layer": "This layer", "head": "This head", "layer_head": "Layer and head"},
    ),
    Field(
        "panel",
        "choice",
        "Tools",
        "What to do with the mask.",
        choices={
            "translate": "Translate",
            "load": "Load",
            "apply": "Apply",
            "reach": "Reach",
            "prove": "Prove",
        },
    ),
    Field(
        "library",
        "choice",
        "Library",
        "What the mask is translated for.",
        choices={
            "multihead_attention": "nn.MultiheadAttention",
            "multihead_attention_float": "nn.MultiheadAttention, float",
            "multihead_attention_padding": "nn.MultiheadAttention, key_padding_mask",
            "transformer_encoder": "nn.TransformerEncoder",
            "transformer_decoder": "nn.TransformerDecoder",
            "scaled_dot_product_attention": "F.scaled_dot_product_attention",
            "flex_attention": "FlexAttention",
            "hugging_face_2d": "Hugging Face, 2-D",
            "hugging_face_4d": "Hugging Face, 4-D",
            "numpy": "NumPy",
        },
    ),
    Field(
        "depth",
        "choice",
        "Explanation",
        "How a stage is explained: as a story of readers and books, or by what exactly is computed.",
        choices={"plain": "Plain", "exact": "Exact"},
    ),
    Field(
        "claim",
        "choice",
        "Claim",
        "What is to be proved: that the model does what the mask should be, that nothing passes where the masks "
        "forbid it, whatever they are, or that no output depends on a later token.",
        choices={"intended": "As it should be", "promised": "The masks hold", "causal": "No look ahead"},
    ),
    Field(
        "embeddings",
        "choice",
        "Embeddings of the",
        "Whose embeddings the outputs are differentiated by.",
        choices={"target": "target", "source": "source"},
    ),
    Field("numbers", "switch", "Show the numbers", "Every number of the stage as a table."),
    Field(
        "relative",
        "switch",
        "Relative to the length of A's vector",
        "Divide the length of each difference by the length of the vector that it changed.",
    ),
    Field(
        "drawn",
        "choice",
        "Heads as",
        "Weights as a grid for each head, or as lines from the queries to the keys.",
        choices={"grids": "Grids", "lines": "Lines"},
    ),
    Field("shown", "places", "Heads shown", "The heads that are drawn, counted from 0; without any, all.", most=15),
    Field(
        "curve",
        "choice",
        "Colour scale",
        "Linear, or by the square root, in which small weights can be seen; the second is usual for many tokens.",
        choices={"auto": "As usual", "linear": "Linear", "root": "Square root"},
    ),
    Field("least_weight", "fraction", "Least weight", "Lines of less weight are left out.", most=0.5),
    Field("pinned", "identifier", "Pinned token", "The token whose lines alone are drawn, such as q8 or k3."),
    Field(
        "chart",
        "choice",
        "Charts",
        "A chart of what is looked at; it stays closed where it has nothing to say.",
        choices={
            NO_CHART: "None",
            "positions": "Positions as curves",
            "row": "This query's row",
            "temperature": "Temperature",
            "residual": "Residual stream",
            "distance": "Attention by distance",
            "directions": "Queries and keys",
            "measures": "Measures of all heads",
        },
    ),
    Field(
        "strategy",
        "choice",
        "Strategy",
        "Greedy takes the most likely token; sampling draws one by its probability, after temperature, top-k and "
        "top-p; beam search keeps the most probable sequences of each length side by side.",
        choices={"greedy": "Greedy", "sampling": "Sampling", "beam": "Beam search"},
    ),
    Field("limit", "integer", "Tokens at most", "How many tokens are written; 0: as many as usual.", most=32),
    Field(
        "temperature",
        "fraction",
        "Temperature",
        "What the logits are divided by. Below 1 the likely tokens gain, above 1 the unlikely ones.",
        least=0.1,
        most=3,
    ),
    Field(
        "top_k",
        "integer",
        "Top-k",
        "Only so many of the most likely tokens are left. Empty, or 0 in a link: all.",
        most=10_000,
    ),
    Field(
        "top_p",
        "fraction",
        "Top-p",
        "Of these, the fewest that together reach this probability.",
        least=0.05,
        most=1,
    ),
    Field(
        "draws",
        "integer",
        "Seed of the draws",
        "The same seed draws the same numbers, one for each place.",
        most=2**32 - 1,
    ),
    Field("beams", "integer", "Width", "How many sequences of each length are kept. 1 is greedy.", least=1, most=5),
    Field(
        "length_penalty",
        "fraction",
        "Length penalty",
        "The sum of log-probabilities is divided by ((5 + length) / 6) to this power; more favours long ones.",
        most=2,
    ),
    Field(
        "cached",
        "switch",
        "Key/value cache",
        "Keep the keys and values of earlier tokens instead of computing them again at every step.",
    ),
    Field("step", "integer", "Step", "The token that is being written, counted from 0.", most=31),
    Field(
        "row_layer",
        "integer",
        "Layer of the row",
        "The layer whose attention the written token rests on, counted from 0; -1: the last.",
        least=-1,
        most=11,
    ),
    Field("node", "integer", "Node", "The node of the tree, counted from 0; -1: the best.", least=-1, most=9_999),
    Field(
        "intent",
        "intent",
        "What should it be?",
        "Everything that is said of a mask is a comparison with what it should be. Until you say, it is guessed.",
    ),
    Field(
        "passed_to",
        "choice",
        "Where do you pass it?",
        "The same array means opposite things in different places. Only what this place makes of it is judged.",
        choices={
            "ask": "Choose the function",
            "sdpa": "F.scaled_dot_product_attention: attn_mask",
            "mha_attn_mask": "nn.MultiheadAttention: attn_mask",
            "mha_key_padding": "nn.MultiheadAttention: key_padding_mask",
            "transformer": "nn.TransformerEncoder, nn.TransformerDecoder: mask, tgt_mask",
            "hugging_face_2d": "Hugging Face: attention_mask of two axes",
            "hugging_face_4d": "Hugging Face: attention_mask of four axes",
            "flex": "FlexAttention: what mask_mod looks up",
            "keras": "Keras MultiHeadAttention: attention_mask",
            "jax": "JAX, Flax: mask",
            "added": "Added to the scores by hand",
        },
    ),
)


FIELDS: Mapping[str, Field] = {field.name: field for field in (*SETTINGS_FIELDS, *SELECTION_FIELDS)}
"""Every parameter by name."""
