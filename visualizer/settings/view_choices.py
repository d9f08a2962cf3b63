"""The choices of a person in each view, as one frozen value for each.

``Selection`` holds them. A field has the name of its control, which no other has; a link puts that of its view
before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from visualizer.masks import MASK_KINDS
from visualizer.settings.fields import MOST_HEADS, UNSAID, setting

PaintScope = Literal["all", "layer", "head", "layer_head"]
AttentionName = Literal["encoder", "decoder", "cross"]
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
OneRow = Literal["usual", "one", "all"]
LabPanel = Literal["translate", "load", "apply", "scores", "blocks", "reach", "prove"]
Claim = Literal["intended", "promised", "causal"]
Embeddings = Literal["target", "source"]
Strategy = Literal["greedy", "sampling", "beam"]
Drawn = Literal["grids", "lines"]
Curve = Literal["auto", "linear", "root"]

MASK_LABELS = {name: kind.label for name, kind in MASK_KINDS.items()}
"""The masks of the list, with what each is called."""


@dataclass(frozen=True)
class HeadsChoice:
    """The looks of the heads, in every view that draws them."""

    drawn: Drawn = setting("grids")
    shown: tuple[int, ...] = setting((), kind="places", most=MOST_HEADS - 1)
    curve: Curve = setting("auto")
    least_weight: float = setting(0.01, most=0.5)
    pinned: str = setting("", kind="identifier")


@dataclass(frozen=True)
class CompareChoice:
    """The two runs that Compare shows, and how."""

    mask_a: tuple[str, ...] = setting((), choices=MASK_LABELS)
    mask_b: tuple[str, ...] = setting(("causal",), choices=MASK_LABELS)
    compared_token: int = setting(-1, least=-1, most=10**6)
    against_intent: bool = setting(False)
    baseline: str = setting("")
    relative: bool = setting(False)

    @property
    def masks(self) -> frozenset[str]:
        """The masks of either run."""
        return frozenset((*self.mask_a, *self.mask_b))


@dataclass(frozen=True)
class LabChoice:
    """The tool of the Mask lab, the mask that it is for, and what that should be."""

    scope: PaintScope = setting("all")
    attention: AttentionName = setting("decoder")
    panel: LabPanel = setting("translate")
    block_size: str = setting("128", choices={str(size): str(size) for size in (2, 4, 8, 16, 32, 64, 128, 256)})
    block_tokens: str = setting(
        "8192", choices={"text": "As the text", **{str(n): f"{n:,}" for n in (512, 2048, 8192)}}
    )
    library: str = setting(
        "multihead_attention",
        choices=(
            "multihead_attention",
            "multihead_attention_float",
            "multihead_attention_padding",
            "transformer_encoder",
            "transformer_decoder",
            "scaled_dot_product_attention",
            "flex_attention",
            "hugging_face_2d",
            "hugging_face_4d",
            "numpy",
        ),
    )
    number_type: str = setting("float32", choices=("float32", "bfloat16", "float16"))
    claim: Claim = setting("intended")
    embeddings: Embeddings = setting("target")
    intent: str = setting(UNSAID, kind="intent")
    intent_encoder: str = setting(UNSAID, kind="intent")
    intent_cross: str = setting(UNSAID, kind="intent")
    intent_array: str = setting(UNSAID, kind="intent")
    array_documents: str = setting("")
    array_padding: str = setting("")
    array_file: str = setting("")
    array_text: str = setting("")
    array_heads: int = setting(0, most=128)
    passed_to: PassedTo = setting("ask")
    one_row: OneRow = setting("usual")
    keys_before: int = setting(-1, least=-1, most=2_048)
    plane: int = setting(0, most=65_535)
    crop_query: int = setting(0, most=2_047)
    crop_key: int = setting(0, most=2_047)


@dataclass(frozen=True)
class GenerateChoice:
    """The way in which Generate writes, and the step that is looked at."""

    strategy: Strategy = setting("greedy")
    limit: int = setting(0, most=32)
    temperature: float = setting(1.0, least=0.1, most=3)
    top_k: int = setting(0, most=10_000)
    top_p: float = setting(1.0, least=0.05, most=1)
    draws: int = setting(0, most=2**32 - 1)
    beams: int = setting(3, least=1, most=5)
    length_penalty: float = setting(0.6, most=2)
    cached: bool = setting(False)
    step: int = setting(0, most=31)
    row_layer: int = setting(-1, least=-1, most=11)
    node: int = setting(-1, least=-1, most=9_999)
