"""Everything a person can choose, as two frozen values, and the link that carries them.

``Settings`` is what a forward pass depends on, ``Selection`` what is looked at. ``FIELDS`` describes each of their
fields once; reading a link, writing one and drawing the controls all follow that table. The names in a link are the
names of the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from model.config import Activation, Architecture, Norm, Positions
from model.names import MASK_NAMES
from visualizer.settings.fields import (
    GUESSED,
    NARROWEST,
    TRAINED,
    WIDEST,
)
from visualizer.settings.lines import lines_of
from visualizer.settings.trained_models import TRAINED_MODELS

TokenKind = Literal["words", "characters", "bytes"]
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


_HEAD_DIMS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)
_FEED_FORWARD_WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096)
_EPSILONS = (1e-12, 1e-8, 1e-6, 1e-5, 1e-3, 0.1, 1.0)


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
    d_out: int = 0
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
        """Layers of the stack that the masks are chosen for: the decoder's, where there is one.

        An attention alone counts as one.
        """
        if self.architecture == "attention":
            return 1
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
    library: str = "multihead_attention"
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


def output_widths(d_out: int) -> tuple[int, ...]:
    """The values of d_out to offer, ascending, among them the one in use; 0 is the width of the input."""
    return tuple(sorted({0, 1, 2, 3, 4, 8, 16, 24, 32, 64, 128, 256, 512, WIDEST, d_out}))


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
    return f"{masked_attention(architecture)}.weights"


def masked_attention(architecture: Architecture) -> str:
    """The path, without a layer, of the attention that the masks are chosen for."""
    if architecture == "attention":
        return "attention"
    return f"{'encoder' if architecture == 'encoder' else 'decoder'}.self_attention"


def in_mask_order(names: Iterable[str]) -> tuple[str, ...]:
    """The known masks among ``names``, each once, in one order, so that equal choices are equal settings."""
    chosen = set(names)
    return tuple(name for name in MASK_NAMES if name in chosen)


_SAME_FOR_TRAINED = (
    *("order", "dropout", "activation", "n_decoder_layers", "shared_vocabulary"),
    *("head_dim", "d_out", "final_norm", "layer_norm_eps"),
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
