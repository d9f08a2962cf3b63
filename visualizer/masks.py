"""The masks that can be chosen, a record each; ``model.masks.MASKS`` computes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MaskKind:
    """A mask of the list.

    Attributes:
        label: its name in controls.
        term: its entry in the glossary.
        color: the step of lightness, the chroma and the hue of its stripes.
        expression: the cells that it leaves open, with the sizes of the settings in braces; "" for painted ones.
    """

    label: str
    term: str
    color: tuple[int, float, int]
    expression: str


# Each has a hue between those of the roles. Hues that colour-blind people take for one another stand on different
# steps of lightness.
MASK_KINDS: Mapping[str, MaskKind] = {
    "causal": MaskKind("Causal", "causal", (1, 0.14, 235), "k <= q"),
    "padding": MaskKind("Padding", "padding", (1, 0.03, 170), "not is_pad(k)"),
    "sliding_window": MaskKind("Sliding window", "sliding window", (0, 0.12, 100), "abs(q - k) < {window}"),
    "prefix": MaskKind("Prefix", "prefix", (0, 0.06, 165), "k < {prefix} or k <= q"),
    "strided": MaskKind("Strided", "strided", (1, 0.12, 50), "(q - k) % {stride} == 0"),
    "custom": MaskKind("Painted", "painted mask", (0, 0.20, 335), ""),
}
"""The masks by their names, in the order in which they are named and combined."""

MASK_NAMES = tuple(MASK_KINDS)

OWN = "own_mask"
"""The name of a checkpoint's own mask, where that is none of these."""
