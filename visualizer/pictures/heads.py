"""What the picture of the heads draws: the weights of one attention in its layers, and what blocks its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from visualizer.components.attention_heads.element import payload
from visualizer.components.axis import Axis
from visualizer.components.packing import Precision
from visualizer.runs.paths import attention_modules, without_layer
from visualizer.runs.run import Run
from visualizer.runs.tokens import read_then_predicted
from visualizer.settings.fields import TRAINED
from visualizer.settings.settings import Selection
from visualizer.stages.panels import blocked_in_layers, to_array


@dataclass(frozen=True, eq=False)
class HeadsPicture:
    """All heads of one attention, in some of its layers.

    Attributes:
        kind: the attention, without a layer: ``encoder.self_attention``.
        modules: its path in each of the layers drawn.
        layers: their numbers.
        weights: (L, H, Tq, Tk).
        blocked: (L or 1, H or 1, Tq, Tk), with a bit for each mask; None without masks.
        blocked_by: the masks' names.
        rows: the queries.
        columns: the keys.
        head_names: what each head does, for each layer.
    """

    kind: str
    modules: tuple[str, ...]
    layers: tuple[int, ...]
    weights: NDArray[np.float32]
    blocked: NDArray[np.uint8] | None
    blocked_by: tuple[str, ...]
    rows: Axis
    columns: Axis
    head_names: tuple[tuple[str, ...], ...]

    def packed(self, precision: Precision) -> bytes:
        """The bytes that the browser draws, with the numbers of the layers in the header."""
        return payload(
            {"weights": self.weights},
            {"blocked": self.blocked},
            rows=self.rows,
            columns=self.columns,
            head_names=self.head_names,
            header={"layers": list(self.layers), "blocked_by": list(self.blocked_by)},
            precision=precision,
        )


def attention_of(modules: Sequence[str], stage: str) -> str:
    """Which attention to draw, without its layer: the one that a stage belongs to, else the last one."""
    kinds = [without_layer(module) for module in modules]
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
    every = [module for module in attention_modules(run.trace) if without_layer(module) == kind]
    if missing := [layer for layer in layers if layer >= len(every)]:
        raise ValueError(f"There is no layer {missing[0]}: {kind} has {len(every)}, counted from 0.")
    chosen = tuple(layers) or tuple(range(len(every)))
    modules = tuple(every[layer] for layer in chosen)
    batch = min(selection.batch, run.batch_size(f"{every[0]}.weights") - 1)
    weights = np.stack([to_array(run.trace[f"{module}.weights"].value[batch]) for module in modules])
    rows, columns = run.axes(f"{every[0]}.weights")
    blocked, names = blocked_in_layers(run, modules, batch)
    return HeadsPicture(
        kind,
        modules,
        chosen,
        weights,
        blocked,
        names,
        _with_predictions(run, kind, rows, batch),
        columns,
        (run.names_of(weights.shape[1]),) * len(modules),
    )


def _with_predictions(run: Run, kind: str, rows: Axis, batch: int) -> Axis:
    """The rows of a decoder that learned a task, each with the token that this run predicts after it."""
    if run.settings.weights != TRAINED or not kind.startswith("decoder.") or rows.sequence is None:
        return rows
    chosen = run.trace["logits"].value[batch].argmax(-1).tolist()
    pads = run.tokens[rows.sequence].is_padding
    predicted = ["" if padding else run.vocabulary[token] for token, padding in zip(chosen, pads, strict=True)]
    return replace(rows, labels=read_then_predicted(rows.labels, predicted))
