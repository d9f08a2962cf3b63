"""The same tokens in another order: two runs of a model, set side by side token by token."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from headlight.masks.language import parse_score
from model.masks import with_leading_axes
from model.texts import listed, texts_of
from visualizer.runs.run import Run
from visualizer.runs.tokens import places
from visualizer.settings.settings import name_of_mask
from visualizer.stages.checks import TOLERANCE, Check

say = texts_of(__name__)

ORDER_OF_SUMS = 10 * TOLERANCE
"""Largest rounding error, relative to the largest number: keys in another order are summed in another order."""


def compare_orders(typed: Run, shuffled: Run) -> Check:
    """Check that the vectors of a text are those of the same text as typed, shuffled.

    Attention is a sum over keys, in which no key has a place, and all else is done row by row. So where neither
    positions nor masks go by place, another order of the tokens gives the same rows in another order (permutation
    equivariance). Beside a decoder this holds for the encoder's output, and the decoder's is the same altogether.

    Args:
        typed: the run of the same settings with the tokens as typed.
        shuffled: the run in another order.
    """
    difference, size = _largest_difference(typed, shuffled)
    reasons = _what_goes_by_place(typed, shuffled)
    if reasons:
        return Check(say("counts", reasons=" ".join(reasons), difference=difference), None)
    has_target = "target" in typed.batches
    same = say("same_in_both", difference=difference) if has_target else say("same", difference=difference)
    return Check(same, difference <= ORDER_OF_SUMS * size)


def _largest_difference(typed: Run, shuffled: Run) -> tuple[float, float]:
    """The largest difference of two numbers of the same token in what a model gives, and the largest number."""
    difference = size = 0.0
    for path in _outputs(typed):
        before, after = typed.trace[path].value, shuffled.trace[path].value
        of_source = typed.axes(path)[0].sequence == "source"
        for item, origin in enumerate(_origins(shuffled)):
            expected = before[item, origin] if of_source else before[item]
            difference = max(difference, (after[item] - expected).abs().max().item())
        size = max(size, before.abs().max().item())
    return difference, size


def _outputs(run: Run) -> tuple[str, ...]:
    """Return the paths of what leaves each stack: the logits, and beside a decoder what the encoder hands to it.

    Of an attention alone, which has no logits, its output.
    """
    of_encoder = [path for path in run.trace if path.startswith("encoder.")]
    last = "logits" if "logits" in run.trace else list(run.trace)[-1]
    return (of_encoder[-1], last) if "target" in run.batches else (last,)


def _origins(shuffled: Run) -> Iterator[Tensor]:
    """For each sequence and each of its places, the place whose token stands there; padding stays where it is."""
    for sequence in shuffled.batches["source"]:
        is_text = ~torch.tensor(sequence.is_padding)
        origin = torch.arange(len(sequence))
        text = origin[is_text]
        origin[is_text] = text[list(places(shuffled.settings.order, len(text)))]
        yield origin


def _what_goes_by_place(typed: Run, shuffled: Run) -> list[str]:
    """One sentence for each part of the model that knows where a token stands."""
    found = []
    if shuffled.settings.positions != "none":
        found.append(say("positions"))
    for what in _others_by_place(typed, shuffled):
        found.append(say("too", what=what) if found else say("without_positions", what=what))
    if shuffled.settings.dropout > 0:
        found.append(say("dropout"))
    return found


def _others_by_place(typed: Run, shuffled: Run) -> Iterator[str]:
    """The beginning of a sentence for each thing beside the positions that goes by them."""
    if names := _masks_by_place(typed, shuffled):
        labels = listed(map(name_of_mask, names))
        yield say("mask", label=labels) if len(names) == 1 else say("masks", labels=labels)
    settings, crosses = shuffled.settings, "target" in shuffled.batches
    if settings.score and not crosses and not {"q", "k"}.isdisjoint(parse_score(settings.score).names):
        yield say("scores")
    of_source = [each for each in shuffled.interventions if not (crosses and each.path.startswith("decoder."))]
    if any(each.row is not None or each.becomes == "other" for each in of_source):
        yield say("edit")


def _masks_by_place(typed: Run, shuffled: Run) -> tuple[str, ...]:
    """The masks that do not let every token see the same tokens in the other order."""
    by_place: dict[str, None] = {}
    for module, mask in shuffled.masks.items():
        queries, keys = (axis.sequence for axis in shuffled.axes(f"{module}.weights"))
        for name, part in mask.parts.items():
            before = typed.masks[module].parts[name]
            for item, origin in enumerate(_origins(shuffled)):
                expected, found = (_cells(typed, module, each, item) for each in (before, part))
                expected = expected[:, origin] if queries == "source" else expected
                expected = expected[..., origin] if keys == "source" else expected
                if not torch.equal(expected, found):
                    by_place[name] = None
    return tuple(by_place)


def _cells(run: Run, module: str, part: Tensor, item: int) -> Tensor:
    """Return the cells that a mask leaves open to one sequence, (H or 1, Tq, Tk)."""
    whole = with_leading_axes(part)
    of_item = whole[min(item, len(whole) - 1)]
    return of_item.expand(-1, *run.trace[f"{module}.scores"].value.shape[-2:])
