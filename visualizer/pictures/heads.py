"""The picture of the heads: the weights of one attention in its layers, and what blocks its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.components.attention_heads.element import attention_heads, payload
from visualizer.components.axis import Axis
from visualizer.components.looks import Looks
from visualizer.components.packing import Precision
from visualizer.components.picture import Picture
from visualizer.runs.paths import attention_modules, without_layer
from visualizer.runs.run import Run
from visualizer.runs.tokens import read_then_predicted
from visualizer.settings.fields import TRAINED
from visualizer.settings.settings import Selection
from visualizer.stages.panels import blocked_in_layers, to_array

say = texts_of(__name__)


@dataclass(frozen=True, eq=False)
class HeadsPicture:
    """All heads of one attention, in some of its layers. Arrays are made when they are asked for.

    Attributes:
        run: what it is of.
        kind: the attention, without a layer: ``encoder.self_attention``.
        layers: the numbers of the layers drawn.
        batch: the sequence of the batch.
    """

    run: Run
    kind: str
    layers: tuple[int, ...]
    batch: int

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """The paths of the attention in the layers drawn."""
        every = modules_of(self.run, self.kind)
        return tuple(every[layer] for layer in self.layers)

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """(L, H, Tq, Tk)."""
        layers = [to_array(self.run.trace[f"{path}.weights"].value[self.batch]) for path in self.modules]
        return layers[0][None] if len(layers) == 1 else np.stack(layers)

    @property
    def n_weights(self) -> int:
        """The count of the weights in all layers drawn."""
        rows, columns = self.axes
        return len(self.modules) * self.n_heads * len(rows.labels) * len(columns.labels)

    @property
    def n_heads(self) -> int:
        """H."""
        return self.run.n_heads(f"{self.modules[0]}.weights") or 1

    @cached_property
    def blocked(self) -> NDArray[np.uint8] | None:
        """(L or 1, H or 1, Tq, Tk), with a bit for each mask; None without masks. 1 where all layers share them."""
        bits = self._blocking
        return bits if bits is None or len(bits) == 1 else bits[list(self.layers)]

    @property
    def masks_are_shared(self) -> bool:
        """True if every layer has the same masks, which ``blocked`` then has once."""
        bits = self._blocking
        return bits is None or len(bits) == 1

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """The masks' names, also where one layer goes without them."""
        return max((self.run.mask_of(path).names for path in modules_of(self.run, self.kind)), key=len)

    @cached_property
    def _blocking(self) -> NDArray[np.uint8] | None:
        return blocked_in_layers(self.run, modules_of(self.run, self.kind), self.batch)

    @cached_property
    def rows(self) -> Axis:
        """The queries; of a decoder that learned a task each with the token that is predicted after it."""
        return _with_predictions(self.run, self.kind, self.axes[0], self.batch)

    @property
    def columns(self) -> Axis:
        """The keys."""
        return self.axes[1]

    @cached_property
    def axes(self) -> tuple[Axis, Axis]:
        """The queries and the keys, each with the token that stands there."""
        return self.run.axes(f"{self.modules[0]}.weights")

    @property
    def head_names(self) -> tuple[tuple[str, ...], ...]:
        """The names of the heads, which say what each does, for each layer."""
        return (self.run.names_of(self.n_heads),) * len(self.layers)

    @property
    def noted_names(self) -> tuple[tuple[str, ...], ...]:
        """The same, each with what its mask makes of it, and whether it was edited."""
        named = zip(self.edited_names, self.modules, strict=True)
        return tuple(self.run.noted(names, module) for names, module in named)

    @property
    def edited_names(self) -> tuple[tuple[str, ...], ...]:
        """The names of the heads for each layer, which also say whether a head was edited."""
        return tuple(
            tuple(self._edited(path, head, name) for head, name in enumerate(names))
            for path, names in zip(self.modules, self.head_names, strict=True)
        )

    def _edited(self, path: str, head: int, name: str) -> str:
        found = [each for each in self.run.interventions if each.path == f"{path}.context"]
        edited = [each.becomes for each in found if each.head in (None, head) and each.row is None]
        if not edited:
            return name
        what = say("left_out") if edited[-1] == "zero" else say("edited")
        return say("edited_head", name=name, what=what) if name else what

    def exact_at(self, places: Sequence[int]) -> dict[str, NDArray[np.float32]]:
        """The weight of one cell, (L,).

        Args:
            places: its head, its query and its key.

        Raises:
            ValueError: there is no such cell.
        """
        return {"weights": cell_of(self.weights, places)}

    def packed(self, precision: Precision) -> bytes:
        """The bytes that the browser draws, with the numbers of the layers in the header."""
        return payload(
            {"weights": self.weights},
            {"blocked": self.blocked},
            rows=self.rows,
            columns=self.columns,
            head_names=self.noted_names,
            header={
                "layers": list(self.layers),
                "shared": ["blocked"] if self.masks_are_shared else [],
                "blocked_by": list(self.blocked_by),
            },
            precision=precision,
        )


def cell_of(weights: NDArray[np.float32], places: Sequence[int]) -> NDArray[np.float32]:
    """One cell of weights (L, H, Tq, Tk) in each layer, (L,).

    Raises:
        ValueError: the places are no head, query and key of them.
    """
    sizes = weights.shape[1:]
    if len(places) != len(sizes) or any(place >= size for place, size in zip(places, sizes, strict=False)):
        of = ", ".join(f"{size} {name}" for size, name in zip(sizes, ("heads", "queries", "keys"), strict=True))
        raise ValueError(f"at is a head, a query and a key, counted from 0, of {of}.")
    head, query, key = places
    cell: NDArray[np.float32] = weights[:, head, query, key]
    return cell


def modules_of(run: Run, kind: str) -> tuple[str, ...]:
    """The paths of an attention in all layers."""
    return tuple(module for module in attention_modules(run.trace) if without_layer(module) == kind)


def kinds_of(modules: Sequence[str]) -> tuple[str, ...]:
    """The attentions of some paths, each once and without its layer."""
    return tuple(dict.fromkeys(without_layer(module) for module in modules))


def attention_of(modules: Sequence[str], stage: str) -> str:
    """Return the attention to draw, without its layer: the one that a stage belongs to, else the last one."""
    kinds = kinds_of(modules)
    named = stage.rpartition(".")[0]
    return named if named in kinds else kinds[-1]


def heads_picture(run: Run, kind: str, selection: Selection, layers: Sequence[int] = ()) -> HeadsPicture:
    """The picture of one attention.

    Args:
        run: the run.
        kind: the attention, without its layer.
        selection: the sequence of the batch counts.
        layers: the layers to draw; all where none are named.

    Raises:
        ValueError: the model has no such layer.
    """
    every = modules_of(run, kind)
    if missing := [layer for layer in layers if layer >= len(every)]:
        raise ValueError(f"There is no layer {missing[0]}: {kind} has {len(every)}, counted from 0.")
    batch = min(selection.batch, run.batch_size(f"{every[0]}.weights") - 1)
    return HeadsPicture(run, kind, tuple(layers) or tuple(range(len(every))), batch)


def draw_heads(
    picture: HeadsPicture,
    selection: Selection,
    *,
    looks: Looks,
    key: str,
    address: str | None = None,
    **others: Any,  # noqa: ANN401 - what else ``attention_heads`` takes
) -> Picture:
    """The picture as a component, at the layer and the head that are selected.

    address: where the browser finds the numbers; None sends them along.
    """
    return attention_heads(
        address or picture.weights,
        blocked=None if address else picture.blocked,
        blocked_by=picture.blocked_by,
        rows=picture.rows,
        columns=picture.columns,
        head_names=picture.noted_names,
        layer=min(selection.layer, len(picture.layers) - 1),
        head=min(selection.head, picture.n_heads - 1),
        looks=looks,
        key=key,
        **others,
    )


def _with_predictions(run: Run, kind: str, rows: Axis, batch: int) -> Axis:
    """The rows of a decoder that learned to answer a source, each with the token predicted after it."""
    answers = run.settings.architecture == "encoder-decoder" and kind.startswith("decoder.")
    if run.settings.weights != TRAINED or not answers or rows.sequence is None:
        return rows
    chosen = run.trace["logits"].value[batch].argmax(-1).tolist()
    pads = run.tokens[rows.sequence].is_padding
    predicted = ["" if padding else run.vocabulary[token] for token, padding in zip(chosen, pads, strict=True)]
    return replace(rows, labels=read_then_predicted(rows.labels, predicted))
