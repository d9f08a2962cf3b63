"""Everything a person can choose, as two frozen values, and the link that carries them.

``Settings`` is what a forward pass depends on, ``Selection`` what is looked at. ``FIELDS`` describes each of their
fields once; reading a link, writing one and drawing the controls all follow that table. The names in a link are the
names of the fields.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from urllib.parse import quote

from visualizer.painting import read_planes, write_planes
from visualizer.published import PUBLISHED
from visualizer.tokens import lines_of, visible_whole
from visualizer.trained_models import TRAINED_MODELS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Architecture = Literal["encoder", "decoder", "encoder-decoder"]
TokenKind = Literal["words", "characters", "bytes"]
Norm = Literal["post", "pre"]
Positions = Literal["sinusoidal", "learned", "none"]
Activation = Literal["relu", "gelu"]
PadSide = Literal["right", "left"]
Fault = Literal["none", "after_softmax", "before_softmax", "left_out", "padding_counted"]
View = Literal["step", "heads", "compare", "lab", "train", "generate"]
Depth = Literal["plain", "exact"]
PaintScope = Literal["all", "layer", "head", "layer_head"]
PassedTo = Literal[
    "ask",
    "sdpa",
    "mha_attn_mask",
    "mha_key_padding",
    "transformer",
    "hugging_face_2d",
    "hugging_face_4d",
    "flex",
    "keras",
    "jax",
    "added",
]
LabPanel = Literal["translate", "load", "apply", "reach", "prove"]
Chart = Literal["none", "positions", "row", "temperature", "residual", "distance", "directions", "measures"]
Claim = Literal["intended", "promised", "causal"]
Embeddings = Literal["target", "source"]
Strategy = Literal["greedy", "sampling", "beam"]
Drawn = Literal["grids", "lines"]
Curve = Literal["auto", "linear", "root"]

MASK_NAMES = ("causal", "padding", "sliding_window", "prefix", "strided", "custom")
"""The masks of the model package, in the order in which they are named and combined."""

WORKED_EXAMPLES = tuple(PUBLISHED)
"""The published examples whose numbers can be loaded in place of a model, in the order of their menu."""

GUESSED = "guess"
"""The intention of a mask that nobody has named: the likeliest is taken and said to be a guess."""

INTENT_NUMBERS = {"window": 1, "window_both": 1, "prefix": 0, "block_causal": 1, "cached": 0}
"""The intentions that need a number, and the least that they can have."""

INTENT_NAMES = ("causal", "bidirectional", *INTENT_NUMBERS, "painted")
"""What a mask can be meant to be, as the model package names it."""

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

MAX_URL_TEXT = 8_000
"""The longest text in a link, counted percent-encoded: three of them stay below the 64 KB servers accept."""

NO_MASK = "none"
"""How a link says that there is no mask."""

NO_CHART = "none"
"""How a link says that no chart is open."""

NARROWEST, WIDEST = 8, 768
_HEAD_DIMS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)
_FEED_FORWARD_WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096)
_EPSILONS = (1e-12, 1e-8, 1e-6, 1e-5, 1e-3, 0.1, 1.0)
_SHOWN = 40
_REPEATS_READ = 8


@dataclass(frozen=True)
class Settings:
    """What a forward pass depends on. Each field is described in ``SETTINGS_FIELDS``."""

    architecture: Architecture = "encoder"
    text: str = "The cat sat on the mat because the cat was tired"
    target: str = "Die Katze saß auf der Matte"
    tokens: TokenKind = "words"
    weights: str = "hand_built"
    task: str = "reverse"
    checkpoint: str = ""
    seed: int = 0
    n_heads: int = 4
    n_layers: int = 2
    n_decoder_layers: int = 0
    shared_vocabulary: bool = True
    d_model: int = 64
    head_dim: int = 0
    d_ff: int = 128
    norm: Norm = "post"
    positions: Positions = "sinusoidal"
    activation: Activation = "relu"
    scale_scores: bool = True
    final_norm: bool = False
    qkv_bias: bool = True
    fused_qkv: bool = False
    output_bias: bool = True
    layer_norm_eps: float = 1e-5
    unembedding_bias: bool = False
    dropout: float = 0.0
    mask: tuple[str, ...] = ("causal",)
    window: int = 3
    prefix: int = 3
    stride: int = 3
    order: int = 0
    pad: int = 0
    pad_side: PadSide = "right"
    fault: Fault = "none"
    custom: str = ""

    @property
    def has_two_vocabularies(self) -> bool:
        """Whether the target's ids come from a vocabulary of its own."""
        return self.architecture == "encoder-decoder" and not self.shared_vocabulary

    @property
    def depth(self) -> int:
        """Layers of the stack that the masks are chosen for: the decoder's, where there is one."""
        is_apart = self.architecture == "encoder-decoder" and self.n_decoder_layers
        return self.n_decoder_layers if is_apart else self.n_layers


@dataclass(frozen=True)
class Selection:
    """What is looked at. Each field is described in ``SELECTION_FIELDS``.

    The indices may lie beyond what a run has; whoever looks them up takes the nearest. The defaults point at the
    second "cat" of the default text, which the same-token head joins to the first.
    """

    view: View = "step"
    layer: int = 0
    head: int = 2
    stage: str = "encoder.self_attention.weights"
    query: int = 8
    key: int = 1
    batch: int = 0
    mask_a: tuple[str, ...] = ()
    mask_b: tuple[str, ...] = ("causal",)
    scope: PaintScope = "all"
    panel: LabPanel = "translate"
    depth: Depth = "plain"
    claim: Claim = "intended"
    embeddings: Embeddings = "target"
    numbers: bool = False
    relative: bool = False
    drawn: Drawn = "grids"
    shown: tuple[int, ...] = ()
    curve: Curve = "auto"
    least_weight: float = 0.01
    pinned: str = ""
    chart: Chart = "none"
    strategy: Strategy = "greedy"
    limit: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    draws: int = 0
    beams: int = 3
    length_penalty: float = 0.6
    cached: bool = False
    step: int = 0
    row_layer: int = -1
    node: int = -1
    intent: str = GUESSED
    passed_to: PassedTo = "ask"


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
        "An encoder reads a text, a decoder continues one, an encoder-decoder turns one into another.",
        choices={"encoder": "Encoder", "decoder": "Decoder", "encoder-decoder": "Encoder-decoder"},
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


def widths(n_heads: int, d_model: int) -> tuple[int, ...]:
    """The values of d_model to offer, ascending: usual ones that ``n_heads`` heads can share, and the one in use.

    All are even, since sine and cosine come in pairs. The one in use is left out where the heads cannot share it.
    Heads with a width of their own share nothing: for them ``n_heads`` is 1.
    """
    offered = {d_model, *(n_heads * head_dim for head_dim in _HEAD_DIMS)}
    return tuple(
        width
        for width in sorted(offered)
        if width % n_heads == 0 and width % 2 == 0 and NARROWEST <= width <= WIDEST
    )


def head_widths(head_dim: int) -> tuple[int, ...]:
    """The values of head_dim to offer, ascending, among them the one in use; 0 shares the model width."""
    return tuple(sorted({0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256, head_dim}))


def feed_forward_widths(d_ff: int) -> tuple[int, ...]:
    """The values of d_ff to offer, ascending, among them the one in use."""
    return tuple(sorted({*_FEED_FORWARD_WIDTHS, d_ff}))


def layer_norm_epsilons(epsilon: float) -> tuple[float, ...]:
    """The values of the layer norm's ε to offer, ascending, among them the one in use."""
    return tuple(sorted({*_EPSILONS, epsilon}))


def default_stage(architecture: Architecture) -> str:
    """The stage to open on: the attention weights that the masks are for."""
    return f"{'encoder' if architecture == 'encoder' else 'decoder'}.self_attention.weights"


def in_mask_order(names: Iterable[str]) -> tuple[str, ...]:
    """The known masks among ``names``, each once, in one order, so that equal choices are equal settings."""
    chosen = set(names)
    return tuple(name for name in MASK_NAMES if name in chosen)


_SAME_FOR_TRAINED = (
    *("order", "dropout", "activation", "n_decoder_layers", "shared_vocabulary"),
    *("head_dim", "final_norm", "layer_norm_eps"),
    *("qkv_bias", "fused_qkv", "output_bias", "unembedding_bias"),
)

PLAIN: Mapping[str, Any] = {name: getattr(Settings(), name) for name in _SAME_FOR_TRAINED}
"""The settings that are the same for every model that was trained: the defaults."""


def usual_mask(settings: Settings) -> tuple[str, ...]:
    """The masks where none are named: a batch of several sequences comes with the padding mask.

    A shipped model comes with what it was trained with.
    """
    is_batch = len(lines_of(settings.text)) > 1
    if settings.weights == TRAINED:
        return TRAINED_MODELS[settings.task].masks(settings.pad > 0 or is_batch)
    return in_mask_order((*Settings().mask, "padding")) if is_batch else Settings().mask


def fitted(settings: Settings) -> Settings:
    """The nearest settings that can be combined.

    A width that the heads can share, the masks in their order, and, for a model that was trained, what it is.
    """
    if settings.weights == TRAINED:
        settings = replace(settings, mask=in_mask_order(settings.mask), **PLAIN)
        return settings if settings.checkpoint else replace(settings, **TRAINED_MODELS[settings.task].shape)
    offered = widths(1 if settings.head_dim else settings.n_heads, settings.d_model)
    width = min(offered, key=lambda width: abs(width - settings.d_model))
    return replace(settings, d_model=width, mask=in_mask_order(settings.mask))


def read_query(query: Mapping[str, Sequence[str]]) -> tuple[Settings, Selection, tuple[str, ...]]:
    """Read a link.

    A bad value becomes the nearest good one, or the default where none is near. Unknown parameters are ignored.

    Args:
        query: every parameter with its values, as often as it is given.

    Returns:
        The settings, the selection, and one plain sentence for each parameter that was changed. The sentences
        quote what was given with everything invisible made visible, but still need ``markdown_safe`` to be drawn.
    """
    first, _ = read_fields(SETTINGS_FIELDS, query, Settings())
    settings, notices = read_fields(SETTINGS_FIELDS, query, _unsaid(first))
    chosen = fitted(settings)
    if chosen.d_model != settings.d_model and query.get("d_model"):
        given = _values_of(query, "d_model")[0]
        complaint = f"is not a width that n_heads={settings.n_heads} can share evenly"
        if settings.head_dim:
            complaint = "is not even"
        notices["d_model"] = _notice("d_model", given, complaint, f"{chosen.d_model} is used")
    defaults = Selection(stage=default_stage(chosen.architecture))
    selection, more_notices = read_fields(SELECTION_FIELDS, query, defaults)
    return chosen, selection, (*notices.values(), *more_notices.values())


def width_in(query: Mapping[str, Sequence[str]]) -> int:
    """The model width that a link asks for, whether or not its heads can share it."""
    values, _ = read_fields((FIELDS["d_model"],), query, Settings())
    return values.d_model


def chosen_in(event: object, names: Iterable[str]) -> dict[str, Any]:
    """What an event of a component says of some fields of ``Selection``, each written as in a link.

    A browser can send anything: what is missing or no text is left out, what is bad becomes what a link would make
    of it.
    """
    given = event if isinstance(event, Mapping) else {}
    texts = {name: given[name] for name in names if isinstance(given.get(name), str)}
    return {
        name: _READERS[FIELDS[name].kind](FIELDS[name], text, getattr(Selection(), name)).value
        for name, text in texts.items()
    }


def write_query(settings: Settings, selection: Selection) -> dict[str, str]:
    """The parameters of the link, only those that differ from the defaults.

    What ``left_out_of_link`` names is not in it: its reader gets the default there.
    """
    left_out = left_out_of_link(settings)
    written = write_fields(SETTINGS_FIELDS, settings, _unsaid(settings))
    written |= write_fields(SELECTION_FIELDS, selection, Selection(stage=default_stage(settings.architecture)))
    return {name: text for name, text in written.items() if name not in left_out}


def _unsaid(settings: Settings) -> Settings:
    """What a link with these weights need not say: the defaults, or what a shipped model was trained with."""
    plain = replace(Settings(), mask=usual_mask(settings))
    if settings.weights != TRAINED:
        return plain
    trained = TRAINED_MODELS[settings.task]
    return replace(plain, text=trained.example, **trained.shape)


def left_out_of_link(settings: Settings) -> tuple[str, ...]:
    """The names of the fields that are too long for a link (``MAX_URL_TEXT``)."""
    long = (field.name for field in SETTINGS_FIELDS if field.kind in ("text", "cells"))
    return tuple(name for name in long if _length_in_link(getattr(settings, name)) > MAX_URL_TEXT)


_Part = TypeVar("_Part", bound="DataclassInstance")


class _Reading(NamedTuple):
    """A good value and, where it is not what was given, what is wrong with that and what is taken."""

    value: Any
    complaint: str = ""
    taken: str = ""


def read_fields(
    fields: Sequence[Field], query: Mapping[str, Sequence[str]], defaults: _Part
) -> tuple[_Part, dict[str, str]]:
    """The defaults with what a link gives of these fields, and by its field one sentence on each bad value."""
    values: dict[str, Any] = {}
    notices: dict[str, str] = {}
    for field in fields:
        given = _values_of(query, field.name)
        if given:
            values[field.name], notice = _read_field(field, given, getattr(defaults, field.name))
            if notice:
                notices[field.name] = notice
    return replace(defaults, **values), notices


def _values_of(query: Mapping[str, Sequence[str]], name: str) -> Sequence[str]:
    values = query.get(name, ())
    return (values,) if isinstance(values, str) else values[:_REPEATS_READ]


def _read_field(field: Field, given: Sequence[str], default: Any) -> tuple[Any, str]:  # noqa: ANN401
    """The value of a parameter, and the notice it calls for or nothing."""
    readings = [_READERS[field.kind](field, text, default) for text in given]
    reading = next((reading for reading in readings if not reading.complaint), readings[0])
    shown = _shown(_written(field, reading.value))
    taken = reading.taken or f"{shown} is used"
    if len(given) == 1:
        return reading.value, reading.complaint and _notice(field.name, given[0], reading.complaint, taken)
    if reading.complaint:
        return reading.value, f"{field.name} is given more than once and never as a good value: {taken}."
    return reading.value, f"{field.name} is given more than once: the first good value, {shown}, is used."


def _notice(name: str, given: str, complaint: str, taken: str) -> str:
    return f"{name}={_shown(given)} {complaint}: {taken}." if given else f"{name} is empty: {taken}."


def _shown(text: str) -> str:
    if not text:
        return "none"
    return visible_whole(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")


def _read_integer(field: Field, given: str, default: int) -> _Reading:
    number = _number(given)
    if number is None:
        return _Reading(default, "is not a number")
    clamped = _clamped(field, number)
    nearest = round(clamped)
    if nearest != clamped:
        return _Reading(nearest, "is not a whole number")
    return _Reading(nearest, _range_complaint(field, number))


def _read_fraction(field: Field, given: str, default: float) -> _Reading:
    number = _number(given)
    if number is None:
        return _Reading(default, "is not a number")
    return _Reading(_clamped(field, number), _range_complaint(field, number))


def _number(given: str) -> float | None:
    try:
        number = float(given)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _clamped(field: Field, number: float) -> float:
    return float(min(max(field.least, number), field.most))


def _range_complaint(field: Field, number: float) -> str:
    return "" if field.least <= number <= field.most else f"is not between {field.least:,} and {field.most:,}"


def _read_choice(field: Field, given: str, default: str) -> _Reading:
    if given in field.choices:
        return _Reading(given)
    return _Reading(_nearest(given, field.choices) or default, f"is not one of {', '.join(field.choices)}")


def _nearest(given: str, choices: Iterable[str]) -> str | None:
    """The choice spelled most like what was given; None where none is like it."""
    matches = difflib.get_close_matches(given[:_SHOWN].strip().casefold(), list(choices), n=1)
    return matches[0] if matches else None


_SWITCH = {"on": True, "off": False}
_LOOSE_SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False} | _SWITCH


def _read_switch(_field: Field, given: str, default: bool) -> _Reading:
    if given in _SWITCH:
        return _Reading(_SWITCH[given])
    return _Reading(_LOOSE_SWITCH.get(given.strip().casefold(), default), "is not on or off")


def _read_names(field: Field, given: str, _default: tuple[str, ...]) -> _Reading:
    if given == NO_MASK:
        return _Reading(())
    names = given.split(",", len(field.choices))
    nearest = in_mask_order(name for name in (_nearest(name, field.choices) for name in names) if name)
    if sorted(names) == sorted(nearest):
        return _Reading(nearest)
    return _Reading(nearest, f"is not {NO_MASK} or a list of different names from {', '.join(field.choices)}")


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _read_text(_field: Field, given: str, _default: str) -> _Reading:
    if len(given) > MAX_URL_TEXT:
        first = _without_surrogates(given[:MAX_URL_TEXT])
        return _Reading(first, "is too long for a link", f"its first {MAX_URL_TEXT:,} characters are used")
    text = _without_surrogates(given)
    return _Reading(text, "" if text == given else "holds halves of characters")


def _without_surrogates(text: str) -> str:
    """The text with the replacement character for lone surrogates, which no link and no browser can hold."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _read_cells(_field: Field, given: str, default: str) -> _Reading:
    if len(given) > MAX_URL_TEXT:
        return _Reading(default, "is too long for a link")
    try:
        canonical = write_planes(read_planes(given))
    except ValueError as error:
        return _Reading(default, str(error))
    return _Reading(canonical, "" if canonical == given else "is not in its shortest form")


_STAGE = re.compile(r"[a-z_0-9.]{1,100}")


def _read_stage(_field: Field, given: str, default: str) -> _Reading:
    if _STAGE.fullmatch(given):
        return _Reading(given)
    lower = given.strip().lower()
    return _Reading(lower if _STAGE.fullmatch(lower) else default, "is not the name of a stage")


_IDENTIFIER = re.compile(r"[a-z0-9]{0,40}")


def _read_identifier(_field: Field, given: str, default: str) -> _Reading:
    if _IDENTIFIER.fullmatch(given):
        return _Reading(given)
    return _Reading(default, "is not the name of one")


_PLACES = re.compile(r"\d{1,3}(,\d{1,3}){0,63}")


def _read_places(field: Field, given: str, default: tuple[int, ...]) -> _Reading:
    if not _PLACES.fullmatch(given):
        return _Reading(default, "is not a list of whole numbers", "all are used")
    places = sorted({int(place) for place in given.split(",") if field.least <= int(place) <= field.most})
    if ",".join(map(str, places)) == given:
        return _Reading(tuple(places))
    complaint = f"is not a list of different numbers from {field.least} to {field.most}, the smallest first"
    return _Reading(tuple(places), complaint, "" if places else "all are used")


_INTENT = re.compile(r"([a-z_]{1,20})(?::(\d{1,3}))?(\+documents)?(\+padding)?")


def _read_intent(_field: Field, given: str, default: str) -> _Reading:
    """``causal``, ``window:4+documents+padding``, or ``guess``."""
    if given == GUESSED:
        return _Reading(given)
    found = _INTENT.fullmatch(given)
    if found is None or found[1] not in INTENT_NAMES:
        return _Reading(default, "is not what a mask can be meant to be")
    least = INTENT_NUMBERS.get(found[1])
    if (found[2] is None) != (least is None) or (least is not None and not least <= int(found[2]) <= MAX_TOKENS):
        return _Reading(default, "has no number that it can have")
    number = "" if found[2] is None else f":{int(found[2])}"
    canonical = f"{found[1]}{number}{found[3] or ''}{found[4] or ''}"
    return _Reading(canonical, "" if canonical == given else "is not in its shortest form")


_READERS: Mapping[Kind, Callable[[Field, str, Any], _Reading]] = {
    "integer": _read_integer,
    "fraction": _read_fraction,
    "choice": _read_choice,
    "switch": _read_switch,
    "names": _read_names,
    "text": _read_text,
    "cells": _read_cells,
    "stage": _read_stage,
    "identifier": _read_identifier,
    "places": _read_places,
    "intent": _read_intent,
}


def write_fields(fields: Sequence[Field], part: _Part, defaults: _Part) -> dict[str, str]:
    """The parameters of a link for the fields that differ from the defaults."""
    changed = (field for field in fields if getattr(part, field.name) != getattr(defaults, field.name))
    return {field.name: _written(field, getattr(part, field.name)) for field in changed}


def _written(field: Field, value: Any) -> str:  # noqa: ANN401
    """A value as a link holds it."""
    match field.kind:
        case "switch":
            return "on" if value else "off"
        case "names":
            return ",".join(value) or NO_MASK
        case "places":
            return ",".join(map(str, value))
        case "fraction":
            return repr(value).removesuffix(".0")
        case _:
            return _without_surrogates(str(value))


def _length_in_link(text: str) -> int:
    return len(quote(_without_surrogates(text), safe=""))
