"""The effect of padding on the outputs: the same model on the same tokens, with their padding and without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model import CombinedMask, record
from visualizer.components.axis import SequenceName
from visualizer.runs.compute import edits_of_fault
from visualizer.runs.run import Run

_ROUNDING = 1e-4
"""Up to this, relative to the largest number, two outputs count as the same: other sizes are added up otherwise."""


@dataclass(frozen=True)
class PaddingEffect:
    """The change of the tokens' outputs when the padding is taken away.

    Attributes:
        output: the path of what the model puts out.
        largest: the largest difference of any number.
        row: the token, counted with the padding, whose output moves most.
        changes: whether that is more than rounding.
    """

    output: str
    largest: float
    row: int
    changes: bool


def effect_of_padding(run: Run) -> PaddingEffect | None:
    """Run the model of a run on its tokens alone, and compare.

    The masks are those of the run, without the rows and columns of padding. None where there is no padding, where
    nothing else is left, where dropout makes every run another, or where there is no model to run again.

    Args:
        run: a run of one sequence.
    """
    real = {name: ~torch.tensor(sequence.is_padding) for name, sequence in run.tokens.items()}
    is_comparable = run.example is None and not run.model.training
    if (
        not is_comparable
        or all(bool(tokens.all()) for tokens in real.values())
        or not all(bool(tokens.any()) for tokens in real.values())
    ):
        return None
    output = "logits" if "logits" in run.trace else next(reversed(list(run.trace)))
    rows = real["target" if "target" in real else "source"]
    with_padding = run.trace[output].value[0][rows]
    difference = (with_padding - _without(run, real, output)).abs().amax(-1)
    largest = float(difference.max())
    allowance = _ROUNDING * max(1.0, float(with_padding.abs().max()))
    row = int(rows.nonzero()[int(difference.argmax())])
    return PaddingEffect(output, largest, row, changes=not largest <= allowance)


def _without(run: Run, real: Mapping[SequenceName, Tensor], output: str) -> Tensor:
    """The output of the tokens alone, (tokens, ...)."""
    masks = {path: _cropped(run, path, mask, real) for path, mask in run.masks.items()}
    batches = {
        name: (sequence.only(real[name].nonzero().flatten().tolist()),) for name, sequence in run.tokens.items()
    }
    alone = replace(run, batches=batches, masks=masks, item=0)
    with torch.inference_mode(), record(run.model, edits_of_fault(run.settings, masks)) as trace:
        run.forward(alone)
    return trace[output].value[0]


def _cropped(run: Run, path: str, mask: CombinedMask, real: Mapping[SequenceName, Tensor]) -> CombinedMask:
    """The masks of an attention without the rows and columns of padding."""
    rows, columns = run.axes(f"{path}.weights")
    of_queries, of_keys = real[rows.sequence or "source"], real[columns.sequence or "source"]
    return CombinedMask({name: _part(part, of_queries, of_keys) for name, part in mask.parts.items()})


def _part(part: Tensor, of_queries: Tensor, of_keys: Tensor) -> Tensor:
    """Axes of size 1 stay: they serve all."""
    if part.dim() > 1 and part.shape[-2] > 1:
        part = part[..., of_queries, :]
    return part[..., of_keys] if part.shape[-1] > 1 else part


def padding_is_seen(run: Run, *, without: str = "") -> bool:
    """True if the masks of a run let a token attend to padding; ``without`` names one that is left out."""
    batches = run.batches
    pads = {name: torch.tensor([sequence.is_padding for sequence in batch]) for name, batch in batches.items()}
    for path, mask in run.promised.items():
        of_target = "target" in batches and path.startswith("decoder.")
        queries = pads["target" if of_target else "source"]
        keys = pads["target" if of_target and "cross" not in path else "source"]
        pairs = ~queries[:, None, :, None] & keys[:, None, None, :]
        allowed = mask.without(without).allowed
        if bool((pairs if allowed is None else pairs & allowed).any()):
            return True
    return False
