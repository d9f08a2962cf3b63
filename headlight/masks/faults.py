"""Masks that are put into effect in the wrong place, for teaching: edits for ``record(model, edits=...)``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from model.texts import texts_of
from model.tracing import Edit

say = texts_of(__name__)

Formula = Callable[[Tensor, Tensor], Tensor]
"""A function of scores and the mask, both (B, H, Tq, Tk)."""


@dataclass(frozen=True)
class Fault:
    """One way to get masking wrong.

    Attributes:
        title: a few words.
        note: one sentence on what goes wrong.
        masked_scores: computes them from the scaled scores and the mask.
        weights: computes them from the masked scores and the mask.
    """

    title: str
    note: str
    masked_scores: Formula
    weights: Formula

    def edits(self, attention_paths: Sequence[str]) -> dict[str, Edit]:
        """The edits that make attentions faulty, for any number of passes in any number of threads.

        A pass in which one of them has no mask raises ValueError.
        """
        edits = [_attention_edits(path, self.masked_scores, self.weights) for path in attention_paths]
        return {stage: edit for of_attention in edits for stage, edit in of_attention.items()}


class _Passing(threading.local):
    """The tensors that the edits of one attention hand each other while a pass runs; each thread has its own."""

    scaled_scores: Tensor
    mask: Tensor
    masked_scores: Tensor


def _attention_edits(attention_path: str, masked_scores: Formula, weights: Formula) -> dict[str, Edit]:
    """Recompute two stages of one attention from earlier ones, which the edits there remember on the way."""
    passing = _Passing()

    def keep_scaled_scores(value: Tensor) -> Tensor:
        vars(passing).clear()  # of a pass that was broken off
        passing.scaled_scores = value
        return value

    def keep_mask(value: Tensor) -> Tensor:
        passing.mask = value
        return value

    def edit_masked_scores(_value: Tensor) -> Tensor:
        if "mask" not in vars(passing):
            raise ValueError(
                f"the attention {attention_path!r} has no mask: only a masked one can be masked wrongly"
            )
        passing.masked_scores = masked_scores(passing.scaled_scores, passing.mask)
        return passing.masked_scores

    def edit_weights(_value: Tensor) -> Tensor:
        result = weights(passing.masked_scores, passing.mask)
        vars(passing).clear()  # no tensor outlives the pass
        return result

    prefix = f"{attention_path}." if attention_path else ""
    return {
        f"{prefix}scaled_scores": keep_scaled_scores,
        f"{prefix}mask": keep_mask,
        f"{prefix}masked_scores": edit_masked_scores,
        f"{prefix}weights": edit_weights,
    }


FAULTS: dict[str, Fault] = {
    "before_softmax": Fault(
        say("before_softmax"),
        say("before_softmax_note"),
        lambda scaled_scores, mask: scaled_scores * mask,
        lambda masked_scores, mask: masked_scores.softmax(-1),
    ),
    "after_softmax": Fault(
        say("after_softmax"),
        say("after_softmax_note"),
        lambda scaled_scores, mask: scaled_scores,
        lambda masked_scores, mask: masked_scores.softmax(-1) * mask,
    ),
}
