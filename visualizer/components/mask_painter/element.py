"""The mask painter, and reads what a person did on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from model.texts import texts_of
from visualizer.colors import MASK_COLORS
from visualizer.components.axis import Axis
from visualizer.components.bits import cells_of
from visualizer.components.events import whole_number_in
from visualizer.components.packing import Array, pack
from visualizer.components.picture import Picture

say = texts_of(__name__)

Cells = NDArray[np.bool_]
Bits = NDArray[np.uint8]
Weights = NDArray[np.floating[Any]]

MOST_REASONS = 8


@dataclass(frozen=True)
class Reason:
    """A mask that blocks cells.

    Attributes:
        name: its name among the masks, which gives its colour.
        label: its name as a person reads it.
    """

    name: str
    label: str


PAINTED = Reason("custom", say("painted"))
"""The painting as a reason."""


@dataclass(frozen=True)
class PaintedHeads:
    """Every head that a stroke can change, as small pictures that follow it.

    Attributes:
        at_rest: the address of their weights as they are.
        painting: the same address with ``mark`` in the place of the cells that are painted.
        mark: what stands there.
        names: for each layer one name a head, "" where a head has none.
        first: the first layer that a stroke can change.
        layer: the one that is looked at.
        head: of it.
    """

    at_rest: str
    painting: str
    mark: str
    names: tuple[tuple[str, ...], ...]
    first: int
    layer: int
    head: int


@dataclass(frozen=True, eq=False)
class FindingMark:
    """Something about the mask that looks wrong.

    Attributes:
        title: a few words.
        severity: how bad it is.
        why: one sentence on why it matters.
        mend: one line on how to mend it.
        cells: the cells that it is about, (Tq, Tk).
        can_mend: whether the painter offers to mend it.
    """

    title: str
    severity: Literal["error", "warning", "note"]
    why: str
    mend: str
    cells: Cells
    can_mend: bool


def mask_painter(
    painted: Cells,
    *,
    others: Bits,
    reasons: tuple[Reason, ...],
    weights: Weights | None,
    weights_title: str,
    findings: tuple[FindingMark, ...],
    all_clear: str,
    rows: Axis,
    columns: Axis,
    seq: int,
    key: str,
    masks: Mapping[str, str] | None = None,
    selected: tuple[int, int] | None = None,
    scope: str = "",
    heads: PaintedHeads | None = None,
) -> Picture:
    """The painter: one row per query, one column per key.

    Args:
        painted: which cells the painting blocks, (Tq, Tk).
        others: what the other masks in force block, (Tq, Tk), bit i set where ``reasons[i]`` does.
        reasons: the other masks in force, at most 8.
        weights: the attention weights under all of them, (Tq, Tk); None shows none.
        weights_title: what the weights are of, as the legend says it.
        findings: what looks wrong, in the order to be listed.
        all_clear: the line that stands in the list's place when there is no finding.
        rows: the Tq queries.
        columns: the Tk keys.
        seq: ``seq`` of the last event that all of this takes account of, 0 before the first. The browser ignores a
            ``painted`` that is older than its own last event.
        key: identifies the element on the page.
        masks: the masks chosen and the painting, as text, which ``bring_back`` hands back.
        selected: query and key of the chosen cell, which gets an outline.
        scope: names what ``painted`` is for, such as the heads. A stroke in one scope cannot be undone in another.
        heads: the small pictures of all heads, which are fetched at every move of a stroke; None shows none.

    Its events; ``seq`` counts all six together:

    - ``paint``, when a stroke has ended: {"blocked": base64 of one bit per cell, "n_queries": Tq, "n_keys": Tk,
      "seq"}, which ``parse_mask`` reads.
    - ``take_over``, {"seq"}, when the other masks are to become part of the painting, so that they can be painted
      over. The answer is everything blocked as ``painted``, and no ``reasons``.
    - ``mend``, {"finding": its index, "seq"}, when a finding is to be mended; ``parse_mend`` reads it.
    - ``bring_back``, as ``paint`` and with "masks", when a step is undone or done again that replaced other masks:
      these are to be in force, with these cells painted; ``parse_masks`` reads it.
    - ``select``, {"query", "key", "seq"}, when a cell is chosen without painting it; ``parse_select`` reads it.
    - ``look``, {"layer", "head", "seq"}, when another head is to be looked at.

    Raises:
        ValueError: an array does not have one row and one column per label, an axis has no label, or a reason has
            no colour, no bit, or a bit that is none's.
    """
    data = payload(
        painted,
        others=others,
        reasons=reasons,
        weights=weights,
        findings=findings,
        rows=rows,
        columns=columns,
        header={
            "key": key,
            "seq": seq,
            "scope": scope,
            "masks": masks,
            "weights_title": weights_title,
            "all_clear": all_clear,
            "selected": None if selected is None else list(selected),
            "live": heads,
        },
    )
    return Picture(
        "mask_painter/element.js", data, key, ("paint", "take_over", "mend", "bring_back", "select", "look")
    )


def payload(
    painted: Cells,
    *,
    others: Bits,
    reasons: tuple[Reason, ...],
    weights: Weights | None,
    findings: tuple[FindingMark, ...],
    rows: Axis,
    columns: Axis,
    header: Mapping[str, Any],
) -> bytes:
    """Pack for the browser texts, one bit per cell painted or found, one byte of reasons, and the weights."""
    planes = {"painted": painted, "others": others, "weights": weights}
    found = {f"cells of {finding.title!r}": finding.cells for finding in findings}
    size = (len(rows.labels), len(columns.labels))
    _check_shapes({name: cells for name, cells in (planes | found).items() if cells is not None}, size)
    _check_reasons(reasons, others)
    arrays: dict[str, Array] = {"painted": _bits(painted), "others": others.astype(np.uint8, copy=False)}
    if findings:
        arrays["found"] = np.stack([_bits(finding.cells) for finding in findings])
    if weights is not None:
        arrays["weights"] = weights.astype(np.float32, copy=False)
    described = {
        "rows": rows,
        "columns": columns,
        "reasons": [*reasons, PAINTED],
        "findings": findings,
    }
    return pack({**header, **described}, arrays)


def parse_mask(value: object, n_queries: int, n_keys: int) -> Cells | None:
    """Read what the browser sent as ``paint``: the cells that the painting blocks, (n_queries, n_keys).

    None unless it says that it is about so many queries and keys, and holds base64 of exactly one bit per cell,
    filled up with zeros to whole bytes.
    """
    sizes = {"n_queries": n_queries, "n_keys": n_keys}
    if not isinstance(value, Mapping) or any(whole_number_in(value, name) != n for name, n in sizes.items()):
        return None
    return cells_of(value.get("blocked"), (n_queries, n_keys))


def parse_masks(value: object) -> dict[str, str]:
    """Read what the browser sent as ``bring_back``: ``masks`` as given to it; what is no text is left out."""
    masks = value.get("masks") if isinstance(value, Mapping) else None
    chosen = masks if isinstance(masks, Mapping) else {}
    return {name: text for name, text in chosen.items() if isinstance(text, str)}


def parse_mend(value: object, n_findings: int) -> int | None:
    """Read what the browser sent as ``mend``: the index of a finding. None unless it is one of ``n_findings``."""
    return whole_number_in(value, "finding", n_findings)


def parse_select(value: object, n_queries: int, n_keys: int) -> tuple[int, int] | None:
    """Read what the browser sent as ``select``: a query and a key. None unless both are there."""
    query, key = whole_number_in(value, "query", n_queries), whole_number_in(value, "key", n_keys)
    return None if query is None or key is None else (query, key)


def _check_shapes(arrays: Mapping[str, Array], size: tuple[int, int]) -> None:
    for name, cells in arrays.items():
        if 0 in size or cells.shape != size:
            raise ValueError(
                f"{name} has shape {cells.shape} but needs {size[0]} rows and {size[1]} columns, one for each label"
            )


def _check_reasons(reasons: tuple[Reason, ...], others: Bits) -> None:
    colors = MASK_COLORS["light"]
    for reason in reasons:
        if reason.name not in colors:
            raise ValueError(f"reason {reason.name!r} has no colour: it must be one of {', '.join(colors)}")
    if len(reasons) > MOST_REASONS:
        raise ValueError(f"reasons are {len(reasons)}, but others has bits for {MOST_REASONS} only")
    if (n_bits := int(others.max()).bit_length()) > len(reasons):
        raise ValueError(f"others has {n_bits} bits, so reasons must be at least {n_bits}, not {len(reasons)}")


def _bits(cells: Cells) -> Bits:
    return np.packbits(cells.astype(np.bool_, copy=False))
