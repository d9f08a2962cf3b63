"""Everything a person can choose of a run, as two frozen values.

``Settings`` is what a forward pass depends on, ``Selection`` what is looked at. Each field says its type, default,
bounds, label and help; reading a link, writing one and drawing the controls follow that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from model.config import Activation, Architecture, Norm, Positions
from model.texts import listed, texts_of
from visualizer.masks import MASK_NAMES, OWN
from visualizer.settings.fields import (
    MAX_ORDER,
    MAX_SEQUENCES,
    MAX_TOKENS,
    MOST_HEADS,
    MOST_LAYERS,
    NARROWEST,
    PRETRAINED,
    TRAINED,
    WIDEST,
    Field,
    fields_of,
    setting,
)
from visualizer.settings.lines import lines_of
from visualizer.settings.published import PUBLISHED
from visualizer.settings.sources import SourceName
from visualizer.settings.trained_models import TRAINED_MODELS
from visualizer.settings.view_choices import MASK_LABELS, CompareChoice, GenerateChoice, HeadsChoice, LabChoice
from visualizer.settings.views import VIEWS

say = texts_of(__name__)

TokenKind = Literal["words", "characters", "bytes"]
PadSide = Literal["right", "left"]
Fault = Literal["none", "after_softmax", "before_softmax", "left_out", "padding_counted"]
NumberType = Literal["float32", "bfloat16"]
Depth = Literal["plain", "exact"]
Chart = Literal["none", "positions", "row", "temperature", "residual", "distance", "directions", "measures", "bias"]
Question = Literal["usual", "seen", "most"]


MOST_DRAWN = 2_048
"""The most tokens of a recording."""

MOST_PLACES = 9_999_999
"""The largest number of a row, or a column: that of a vocabulary, as a stage of another model may have it."""

_WEIGHT_LABELS = {
    "hand_built": "Hand-built heads",
    "random": "Random",
    TRAINED: "Trained on a task",
    PRETRAINED: "A pretrained model",
    **{name: example.title for name, example in PUBLISHED.items()},
}


@dataclass(frozen=True)
class Settings:
    """The settings that a forward pass depends on."""

    architecture: Architecture = setting("encoder")
    text: str = setting("The cat sat on the mat because the cat was tired")
    target: str = setting("Die Katze saß auf der Matte")
    tokens: TokenKind = setting("words")
    weights: str = setting("hand_built", choices=_WEIGHT_LABELS)
    task: str = setting("reverse", choices={name: trained.title for name, trained in TRAINED_MODELS.items()})
    checkpoint: str = setting("", kind="identifier")
    seed: int = setting(0, most=2**32 - 1)
    n_heads: int = setting(4, least=1, most=16)
    n_layers: int = setting(2, least=1, most=12)
    n_decoder_layers: int = setting(0, most=12)
    shared_vocabulary: bool = setting(True)
    d_model: int = setting(64, least=NARROWEST, most=WIDEST)
    head_dim: int = setting(0, most=256, offered=(0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256))
    d_out: int = setting(0, most=WIDEST, offered=(0, 1, 2, 3, 4, 8, 16, 24, 32, 64, 128, 256, 512, WIDEST))
    d_ff: int = setting(
        128, least=1, most=4096, offered=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096)
    )
    norm: Norm = setting("post")
    positions: Positions = setting("sinusoidal")
    activation: Activation = setting("relu")
    scale_scores: bool = setting(True)
    final_norm: bool = setting(False)
    qkv_bias: bool = setting(True)
    fused_qkv: bool = setting(False)
    output_bias: bool = setting(True)
    layer_norm_eps: float = setting(1e-5, least=1e-12, most=1, offered=(1e-12, 1e-8, 1e-6, 1e-5, 1e-3, 0.1, 1.0))
    unembedding_bias: bool = setting(False)
    dropout: float = setting(0.0, most=0.9)
    mask: tuple[str, ...] = setting(("causal",), choices=MASK_LABELS)
    window: int = setting(3, least=1, most=MAX_TOKENS)
    prefix: int = setting(3, most=MAX_TOKENS)
    stride: int = setting(3, least=1, most=MAX_TOKENS)
    order: int = setting(0, most=MAX_ORDER)
    pad: int = setting(0, most=64)
    pad_side: PadSide = setting("right")
    fault: Fault = setting("none")
    custom: str = setting("", kind="cells")
    custom_encoder: str = setting("", kind="cells")
    custom_cross: str = setting("", kind="cells")
    encoder_padding: bool = setting(True)
    cross_padding: bool = setting(True)
    score: str = setting("")
    edits: str = setting("", kind="interventions")
    other_text: str = setting("")
    pretrained_model: str = setting("")
    pretrained_chat: bool = setting(False)
    pretrained_batch: bool = setting(False)
    pretrained_dtype: NumberType = setting("float32")
    pretrained_device: str = setting("cpu")

    @property
    def lines(self) -> tuple[str, ...]:
        """The sequences of the text: its lines; of a checkpoint the whole text, unless it is to read a batch."""
        is_whole = self.weights == PRETRAINED and not self.pretrained_batch
        return (self.text,) if is_whole else lines_of(self.text)

    @property
    def has_two_vocabularies(self) -> bool:
        """True if the target's ids come from a vocabulary of its own."""
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
    """The selection that is looked at: a place in the run, and what was chosen in the views.

    The indices may lie beyond what a run has; whoever looks them up takes the nearest. The defaults point at the
    second "cat" of the default text, which the same-token head joins to the first.
    """

    source: SourceName = setting("built")
    view: str = setting("step", choices={name: view.label for name, view in VIEWS.items()})
    layer: int = setting(0, most=MOST_LAYERS - 1)
    head: int = setting(2, most=MOST_HEADS - 1)
    stage: str = setting("encoder.self_attention.weights", kind="stage")
    query: int = setting(8, most=MOST_PLACES)
    key: int = setting(1, most=MOST_PLACES)
    batch: int = setting(0, most=MAX_SEQUENCES - 1)
    heads: HeadsChoice = field(default_factory=HeadsChoice)
    compare: CompareChoice = field(default_factory=CompareChoice)
    lab: LabChoice = field(default_factory=LabChoice)
    generate: GenerateChoice = field(default_factory=GenerateChoice)
    depth: Depth = setting("plain")
    hidden: bool = setting(False)
    present: bool = setting(False)
    question: Question = setting("usual")
    class_code: str = setting("", kind="identifier")
    cell: bool = setting(False)
    guided: bool = setting(False)
    stop: int = setting(0, most=40)
    path: str = setting("", kind="identifier")
    numbers: bool = setting(False)
    chart: Chart = setting("none")
    asked_width: int = setting(0, most=WIDEST)

    @property
    def compares_masks(self) -> bool:
        """True if two runs are looked at that have masks of their own, in place of those of the settings."""
        return self.view == "compare" and (self.hidden or not self.compare.baseline)


FIELDS: Mapping[str, Field] = {**fields_of(Settings), **fields_of(Selection)}
"""Every parameter by name."""


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


def mask_title(names: Iterable[str]) -> str:
    """``causal and padding``, or ``no mask``."""
    return listed(map(name_of_mask, names)) or say("none")


def name_of_mask(name: str) -> str:
    """``sliding window``, ``painted``, or that a checkpoint blocks something by itself."""
    return say("own_mask") if name == OWN else FIELDS["mask"].choices[name].lower()
