"""The picture of a watched model's heads: weights, masks and biases of its attentions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headlight.attention import Attention
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel
from visualizer.runs.watched import WatchedRun, key_groups, n_items, plane
from visualizer.safe_text import visible, visible_whole

say = texts_of(__name__)

MOST_CELLS = 2**23
"""The most weights that are sent at once: of all layers, or else of the one that is looked at."""

MOST_SIDE = 512
"""The most queries, and keys, that are drawn."""

BLOCKED_BY = ("mask",)


@dataclass(frozen=True, eq=False)
class WatchedHeads:
    """All heads of the attentions of one kind.

    Attributes:
        run: what they are of.
        kind: the attentions; at least one has weights.
        attention: the one that is looked at.
        item: the sequence of the batch.
        wanted: the first query and key to be drawn; those that fill the picture, where that is too late.
    """

    run: WatchedRun
    kind: tuple[Attention, ...]
    attention: Attention
    item: int
    wanted: tuple[int, int] = (0, 0)

    @cached_property
    def drawn(self) -> tuple[Attention, ...]:
        """The attentions that are drawn: all of the kind where they are not too many cells."""
        weights = self.attention.weights
        n_cells = 0 if weights is None else weights.shape[1] * self.n_queries * self.n_keys
        return self.kind if n_cells * len(self.kind) <= MOST_CELLS else (self.attention,)

    def alone(self) -> WatchedHeads:
        """The attention that is looked at, without the others of its kind."""
        return replace(self, kind=(self.attention,))

    @property
    def layer(self) -> int:
        """The place of the attention looked at among those drawn."""
        return self.drawn.index(self.attention)

    @property
    def n_queries(self) -> int:
        """The number of queries drawn."""
        return min(self.attention.shape[2], MOST_SIDE)

    @property
    def n_keys(self) -> int:
        """The number of keys drawn."""
        return min(self.attention.shape[3], MOST_SIDE)

    @property
    def first_query(self) -> int:
        """The number of the first query that is drawn."""
        return min(self.wanted[0], self.attention.shape[2] - self.n_queries)

    @property
    def first_key(self) -> int:
        """The number of the first key that is drawn."""
        return min(self.wanted[1], self.attention.shape[3] - self.n_keys)

    @property
    def window(self) -> tuple[slice, slice]:
        """The queries and keys that are drawn."""
        first, then = self.first_query, self.first_key
        return slice(first, first + self.n_queries), slice(then, then + self.n_keys)

    def cell(self, query: int, key: int) -> tuple[int, int] | None:
        """The place in the picture of a query and a key; None where they are not drawn."""
        row, column = query - self.first_query, key - self.first_key
        return (row, column) if 0 <= row < self.n_queries and 0 <= column < self.n_keys else None

    def largest(self, head: int, query: int) -> tuple[int, float] | None:
        """The key, drawn or not, to which a query gives the largest weight in a head, and that weight."""
        if self.attention.weights is None:
            return None
        row = plane(self.attention.weights, self.item)[head, query].float()
        if bool(row.isnan().any()):
            return None
        return int(row.argmax()), float(row.max())

    @property
    def is_part(self) -> bool:
        """True if there are more queries or keys than can be drawn."""
        return max(self.attention.shape[2:]) > MOST_SIDE

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attentions drawn."""
        return tuple(visible_whole(attention.path) for attention in self.drawn)

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """(L, H, Tq, Tk)."""
        found = [attention.weights for attention in self.drawn if attention.weights is not None]
        return np.stack([self._cut(plane(weights, self.item)) for weights in found])

    @cached_property
    def blocked(self) -> NDArray[np.uint8] | None:
        """(L or 1, H or 1, Tq, Tk), 1 where the mask blocks; None where no mask is known."""
        masks = [attention.allowed for attention in self.drawn]
        if all(mask is None for mask in masks):
            return None
        if all(mask is masks[0] for mask in masks):
            masks = masks[:1]
        planes = [self._blocked(mask) for mask in masks]
        n_heads = max(len(each) for each in planes)
        return np.stack([np.broadcast_to(each, (n_heads, *each.shape[1:])) for each in planes])

    @cached_property
    def rows(self) -> Axis:
        """The queries."""
        return Axis("query", self._labels(self.run.labels(self.attention, self.item)[0], self.window[0]))

    @cached_property
    def columns(self) -> Axis:
        """The keys."""
        return Axis("key", self._labels(self.run.labels(self.attention, self.item)[1], self.window[1]))

    @property
    def head_names(self) -> tuple[tuple[str, ...], ...]:
        """For each attention drawn what its heads share."""
        return tuple(_names(attention, self.weights.shape[1]) for attention in self.drawn)

    def panels(self, head: int) -> tuple[Panel, ...]:
        """The mask and the bias of the attention looked at, in one head; none where it has neither."""
        attention, found = self.attention, []
        if attention.allowed is not None:
            blocked = self._blocked(attention.allowed)
            of_head = blocked[min(head, len(blocked) - 1)]
            found.append(
                Panel(
                    name="mask",
                    title="Mask" if len(blocked) == 1 else f"Mask · head {head}",
                    subtitle=_shape(attention.allowed),
                    array=1.0 - of_head.astype(np.float32),
                    rows=self.rows,
                    columns=self.columns,
                    bounds=(0.0, 1.0),
                    blocked=of_head,
                    blocked_by=BLOCKED_BY,
                )
            )
        if attention.bias is not None:
            bias = self._cut(plane(self._whole(attention.bias), self.item))
            found.append(
                Panel(
                    name="bias",
                    title="Bias" if len(bias) == 1 else f"Bias · head {head}",
                    subtitle=_shape(attention.bias),
                    array=bias[min(head, len(bias) - 1)],
                    rows=self.rows,
                    columns=self.columns,
                    palette="diverging",
                )
            )
        return tuple(found)

    def _blocked(self, allowed: Tensor | None) -> NDArray[np.uint8]:
        given = torch.ones(1, 1, dtype=torch.bool) if allowed is None else allowed
        return (1 - self._cut(plane(self._whole(given), self.item))).astype(np.uint8)

    def _whole(self, tensor: Tensor) -> Tensor:
        """The last two axes in full."""
        return tensor.expand(*tensor.shape[:-2], *self.attention.shape[2:])

    def _cut(self, planes: Tensor) -> NDArray[np.float32]:
        array: NDArray[np.float32] = planes[(..., *self.window)].detach().float().cpu().numpy()
        return array

    def _labels(self, texts: tuple[str, ...], drawn: slice) -> tuple[str, ...]:
        return tuple(visible(text) for text in texts[drawn]) or tuple(map(str, range(drawn.start, drawn.stop)))


def watched_heads(run: WatchedRun, path: str, item: int, wanted: tuple[int, int] = (0, 0)) -> WatchedHeads:
    """The picture of the attention at a path, or of the first one, with the others of its kind.

    Args:
        run: what the attention is of.
        path: its path.
        item: the sequence of the batch.
        wanted: the first query and key to be drawn.

    Raises:
        IndexError: the trace has no attention.
    """
    attention = run.attention(path)
    return WatchedHeads(run, run.kind_of(attention), attention, min(item, n_items(attention) - 1), wanted)


def _names(attention: Attention, n_heads: int) -> tuple[str, ...]:
    groups = key_groups(attention)
    return tuple(say("keys_and_values", group=group) for group in groups) if groups else ("",) * n_heads


def _shape(tensor: Tensor) -> str:
    return " × ".join(f"{size:,}" for size in tensor.shape)
