"""The residual streams of a pass, found by what is added up in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, takewhile

import torch

from headlight.residual_stream.heads import Heads
from headlight.residual_stream.operations import LINEAR, are_vectors
from headlight.residual_stream.sums import Sums
from model.dataflow import Constant, Operation, StageInput

_OF_A_LAYER = re.compile(r"(?:^|\.)\d+\.")


@dataclass(frozen=True)
class Stream:
    """A residual stream, from the first part that writes to it on.

    Attributes:
        path: the last stage of it.
        attentions: the stages by which its attentions write to it.
        places: the stages of the stream in the order computed, from the input of the first layer on: where
            something was added, and where it was changed by a norm after that.
        sums: those of them where something was added.
        steps: every stage that its terms pass through, in the order computed.
    """

    path: str
    attentions: tuple[str, ...]
    places: tuple[str, ...]
    sums: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def end(self) -> str:
        """The last place before a norm that belongs to no layer: what the logit lens goes on from."""
        n_layers_normed = len(self.places) - len(self.sums) - (self.places[-1] not in self.sums)
        starts_normed = len(self.places) > 1 and self.places[1] not in self.sums
        if n_layers_normed <= starts_normed:
            return self.sums[-1]
        return next((path for path in reversed(self.places) if _OF_A_LAYER.search(path)), self.path)


def find_streams(sums: Sums, heads: Heads) -> Iterator[Stream]:
    """Each last stage of a sum of attentions, as long as there are attentions in none."""
    attentions = heads.stages
    while attentions:
        counts = {
            path: len(writers & attentions)
            for path, writers in sums.writers.items()
            if not isinstance(sums.nodes[path], StageInput)  # another name of a stage, at who reads it
        }
        most = max(counts.values())
        if not most:
            return
        last = [path for path, count in counts.items() if count == most][-1]
        steps = sums.steps_to(last)
        within = sums.writers[last] & attentions
        attentions = attentions - within
        wrote = tuple(path for path in sums.nodes if path in within)
        plateaus = list(_plateaus(sums, steps))
        inputs = list(takewhile(lambda plateau: _is_input(sums, heads, plateau[0]), plateaus))
        plateaus = [*inputs[-1:], *plateaus[len(inputs) :]]
        places = tuple(path for plateau in plateaus for path in plateau)
        stream = Stream(last, wrote, places, tuple(plateau[0] for plateau in plateaus), steps)
        if _has_a_row_for_each_token(sums, heads, stream):
            yield stream


def _has_a_row_for_each_token(sums: Sums, heads: Heads, stream: Stream) -> bool:
    """False where tokens are sent to experts or windows with attentions of their own, which have other rows."""
    n_items, n_tokens = heads.size_at(stream.attentions[0])
    shape = sums.values[stream.path].shape
    if len(shape) > 2 and n_items not in shape[:2]:
        return False
    *steps, last = (sums.values[path].shape[:-1].numel() for path in stream.steps)
    return last == n_items * n_tokens and set(steps) <= {1, n_tokens, last}


def _is_input(sums: Sums, heads: Heads, path: str) -> bool:
    """True if neither an attention nor a linear layer wrote to a stage."""
    nodes = [sums.nodes[writer] for writer in sums.writers[path]]
    of_layers = (isinstance(node, Operation) and node.name in LINEAR for node in nodes)
    return sums.writers[path].isdisjoint(heads.multi_head) and not any(of_layers)


def _plateaus(sums: Sums, steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The stages of the stream that nothing was added between: the first, the last of a layer, the last.

    The stream is what holds the part that was written first. A stage with the numbers of the first is left out.
    """
    first = next(path for path in steps if sums.writers[path] == {path})
    stream = [path for path in steps if first in sums.writers[path]]
    entering = next((path for path in stream if _takes_vectors(sums, path)), stream[0])
    stream = stream[stream.index(entering) :]  # before that a part alone, which is added to what comes in
    for _, same in groupby(stream, sums.writers.__getitem__):
        alike = tuple(same)
        ends = [*[path for path in alike if _OF_A_LAYER.search(path)][-1:], alike[-1]]
        changed = (path for path in ends if not torch.equal(sums.values[alike[0]], sums.values[path]))
        yield tuple(dict.fromkeys((alike[0], *changed)))


def _takes_vectors(sums: Sums, path: str) -> bool:
    """True if vectors of tokens that come from outside are added at a stage."""
    node = sums.nodes[path]
    parts = sums.summands(node) if isinstance(node, Operation) else ()
    return len(parts) > 1 and any(isinstance(part, Constant) and are_vectors(part.value) for part in parts)
