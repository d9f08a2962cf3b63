"""The picture of what a model writes step by step, and the tree of a beam search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from visualizer.components.axis import Axis
from visualizer.components.packing import Array, Scaled, fields_of, fit_precision, pack
from visualizer.components.picture import Picture


@dataclass(frozen=True)
class Bar:
    """One token that could come next.

    label: the token. rank: 1 for the most likely. probability: by the model's softmax. share: what it is drawn
    with, after temperature, top-k and top-p. chosen: whether it was. never: whether it is never written.
    """

    label: str
    rank: int
    probability: float
    share: float
    chosen: bool
    never: bool


@dataclass(frozen=True)
class Tail:
    """All tokens without a bar of their own, together."""

    count: int
    probability: float
    share: float


@dataclass(frozen=True)
class StepPicture:
    """One token chosen.

    bars: the most likely tokens first. sentence: how it was chosen. kept: whether its logits are from before the
    last change of the settings. computed: how many rows of K and V of the decoder's self-attention this step
    computed. from_cache: how many it took from the cache, which may hold a window alone. source_computed: those
    computed of the cross-attention, 0 without one.
    """

    bars: tuple[Bar, ...]
    tail: Tail
    sentence: str
    kept: bool
    computed: int
    from_cache: int
    source_computed: int


@dataclass(frozen=True, eq=False)
class StepsPicture:
    """Everything of one decoding.

    labels: of the prompt and what was written. n_prompt: how many of them are the prompt. ended: whether the last
        one is the end token. steps: one for each token written.
    weights: (N, L, H, K), the attention row that each choice rests on. keys: what it is over; for a self-attention
        the tokens so far, of which each step has one more than the step before. heads: one name per head.
    own: whether the attention is over the tokens so far. title: what the attention is called.
    keys_blocked: (K,) uint8, of a cross-attention the keys that its mask hides.
    blocked: (T, T) uint8, the mask of the decoder's self-attention over all tokens read, bit i set where
        `blocked_by[i]` blocks the cell.
    sampled: whether shares differ from probabilities. cached: whether there was a key/value cache.
    """

    labels: tuple[str, ...]
    n_prompt: int
    ended: bool
    steps: tuple[StepPicture, ...]
    weights: npt.NDArray[np.float32]
    keys: Axis
    heads: tuple[str, ...]
    own: bool
    title: str
    keys_blocked: npt.NDArray[np.uint8]
    blocked: npt.NDArray[np.uint8]
    blocked_by: tuple[str, ...]
    sampled: bool
    cached: bool

    def __post_init__(self) -> None:
        expected = (len(self.steps), len(self.heads), len(self.keys.labels))
        n_steps, _, n_heads, n_keys = self.weights.shape
        if (n_steps, n_heads, n_keys) != expected:
            raise ValueError(f"weights of shape {self.weights.shape} need {expected} steps, heads and keys")
        if len(self.labels) != self.n_prompt + len(self.steps):
            raise ValueError(
                f"{len(self.labels)} labels are not {self.n_prompt} of the prompt and one for each step"
            )


@dataclass(frozen=True)
class Node:
    """One hypothesis of a beam search.

    parent: its index; None for the prompt. label: its last token. text: all that it wrote. depth: how many tokens
    that are. probability: of the last token after those before it. total: the sum of the log-probabilities. score:
    the total over the length penalty.
    """

    parent: int | None
    label: str
    text: tuple[str, ...]
    depth: int
    probability: float
    total: float
    score: float
    kept: bool
    finished: bool


def generation_steps(
    picture: StepsPicture,
    *,
    step: int,
    row_layer: int,
    key: str,
    seq: int = 0,
) -> Picture:
    """The steps. All are sent at once: going back and forth draws at once and asks for nothing.

    step: what to show first. row_layer: the layer of the attention row, -1 for the last. seq: the largest `seq`
    received from this component; the browser takes `step` and `row_layer` from here only when it is not older than
    what a person did.
    Its event `shown` is {"step", "row_layer", "seq"}, the first two as texts, once the person pauses.
    """
    header = {"key": key, "seq": seq, "step": step, "row_layer": row_layer}
    return Picture("generation/steps.js", steps_payload(picture, header), key, ("shown",))


def generation_tree(
    nodes: Sequence[Node],
    best: Sequence[int],
    *,
    node: int,
    key: str,
    seq: int = 0,
) -> Picture:
    """The tree.

    best: the indices of the results, the best score first. node: the one to show first, -1 for the best result.
    seq and the event `shown`, which is {"node", "seq"}: as for `generation_steps`.
    """
    header = {"key": key, "seq": seq, "node": node, "nodes": list(nodes), "best": list(best)}
    return Picture("generation/tree.js", pack(header, {}), key, ("shown",))


def steps_payload(picture: StepsPicture, header: dict[str, Any]) -> bytes:
    """Pack the picture for the browser."""
    arrays: dict[str, Array | Scaled] = {
        "weights": fit_precision(picture.weights),
        "keys_blocked": picture.keys_blocked,
        "blocked": picture.blocked,
    }
    return pack(header | fields_of(picture), arrays)
