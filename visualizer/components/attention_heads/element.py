"""Every head of every layer: an overview, large grids on one scale, or lines between two columns of tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from visualizer.components.axis import Axis
from visualizer.components.dials import Dial, Pressed
from visualizer.components.looks import Looks
from visualizer.components.packing import Array, Precision, Scaled, in_precision, pack
from visualizer.components.picture import Picture


def attention_heads(
    weights: npt.NDArray[np.floating[Any]] | str,
    *,
    blocked: npt.NDArray[np.uint8] | None,
    blocked_by: Sequence[str],
    rows: Axis,
    columns: Axis,
    head_names: Sequence[Sequence[str]],
    layer: int,
    head: int,
    looks: Looks,
    key: str,
    seq: int = 0,
    query: int | None = None,
    key_index: int | None = None,
    dials: Sequence[Dial | Pressed] = (),
    dial_address: str = "",
    light: str = "",
    layer_names: Sequence[str] = (),
    precision: Precision = "fit",
) -> Picture:
    """The heads. Its events: `select` is a cell just selected, `shown` the layer and head last looked at.

    weights: (L, H, Tq, Tk) in [0, 1]. All layers are sent at once, so that changing the layer sends no message. Or
        the address at which the browser finds them: the layer shown first, the others after it.
    blocked: (L or 1, H or 1, Tq, Tk) uint8, bit i set where mask `blocked_by[i]` blocks the cell; None without
        masks, and where they come with the weights.
    head_names: for each layer one name a head, "" where a head has none.
    layer_names: what the layers are called; by their numbers where nothing is given.
    precision: of weights that are sent.
    layer, head: what to show first, and looks: how. query, key_index: the selected cell, if any.
    dials: what can be turned in the picture; while it is, the numbers are fetched from `dial_address` and the
        parameters that the dials stand for.
    light: "head" brings the head shown first out among the others, "map" shows it alone beside the overview.
    seq: the largest `seq` received from this component. The browser counts what a person does, and takes `layer`,
        `head` and `looks` from here only when `seq` is not older than that.
    `shown` is {"layer", "head", "turned", "seq"} and each of `LOOKS` as a text, where "turned" has the
    values of the dials that `seq` does not know of; the picture has changed already when it arrives: once
    the person pauses, or turns to something else. `select` is the same with "query" and "key".
    Raises ValueError when shapes, labels and names do not agree.
    """
    header = {
        "key": key,
        "seq": seq,
        "layer": layer,
        "head": head,
        "looks": looks,
        "blocked_by": list(blocked_by),
        "selected": None if query is None or key_index is None else [query, key_index],
        "dials": list(dials),
        "dial_address": dial_address,
        "light": light,
        "layer_names": list(layer_names) or None,
    }
    labels: dict[str, Any] = {"rows": rows, "columns": columns, "head_names": head_names}
    if isinstance(weights, str):
        data = pack(header | {"address": weights} | labels, {})
    else:
        masks = {"blocked": blocked}
        data = payload({"weights": weights}, masks, header=header, precision=precision, **labels)
    return Picture("attention_heads/element.js", data, key, ("select", "shown"))


def payload(
    weights: Mapping[str, npt.NDArray[np.floating[Any]]],
    masks: Mapping[str, npt.NDArray[np.uint8] | None],
    *,
    rows: Axis,
    columns: Axis,
    head_names: Sequence[Sequence[str]],
    header: dict[str, Any],
    precision: Precision = "fit",
) -> bytes:
    """Pack one or more arrays of weights for the browser, by the names that its JavaScript gives them."""
    for each in weights.values():
        _check_shapes(each, masks, rows=rows, columns=columns, head_names=head_names)
    arrays: dict[str, Array | Scaled] = {name: in_precision(each, precision) for name, each in weights.items()}
    arrays |= {name: mask.astype(np.uint8, copy=False) for name, mask in masks.items() if mask is not None}
    largest = np.max([each.max(axis=(1, 2, 3)) for each in weights.values()], axis=0)
    labels = {"rows": rows, "columns": columns, "head_names": head_names}
    return pack(header | labels | {"layer_max": np.nan_to_num(largest).tolist()}, arrays)


def _check_shapes(
    weights: npt.NDArray[np.floating[Any]],
    masks: Mapping[str, npt.NDArray[np.uint8] | None],
    *,
    rows: Axis,
    columns: Axis,
    head_names: Sequence[Sequence[str]],
) -> None:
    """Raise ValueError unless weights (L, H, Tq, Tk), masks (L or 1, H or 1, Tq, Tk), labels and names agree."""
    if weights.ndim != 4 or 0 in weights.shape:
        raise ValueError(f"weights must have shape (L, H, Tq, Tk) with no empty axis, not {weights.shape}")
    n_layers, n_heads, *cells = weights.shape
    labels = [len(rows.labels), len(columns.labels)]
    if cells != labels:
        raise ValueError(f"weights of shape {weights.shape} need {cells} labels, not {labels}")
    if len(head_names) != n_layers or any(len(names) != n_heads for names in head_names):
        raise ValueError(f"head_names must hold {n_heads} names for each of {n_layers} layers")
    for name, mask in masks.items():
        if mask is not None and not _fits(mask.shape, weights.shape):
            raise ValueError(f"{name} must have shape {weights.shape} or 1 for its first axes, not {mask.shape}")


def _fits(mask: tuple[int, ...], weights: tuple[int, ...]) -> bool:
    return len(mask) == 4 and mask[2:] == weights[2:] and mask[0] in (1, weights[0]) and mask[1] in (1, weights[1])
