"""Mounts the mask painter and reads what a person painted on it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from streamlit.components.v2.bidi_component import ComponentResult

from visualizer.components.axis import Axis, SequenceName
from visualizer.components.packing import pack
from visualizer.components.registry import register

_mount = register(
    "mask_painter",
    "shared/matrix_pixels.js",
    "shared/tooltip.js",
    "shared/grid_layout.js",
    "shared/grid.js",
    "mask_painter/cells.js",
    "mask_painter/history.js",
    "mask_painter/surface.js",
    "mask_painter/toolbar.js",
    "mask_painter/element.js",
)

Cells = NDArray[np.bool_]


def mask_painter(
    blocked: Cells,
    *,
    labels: tuple[str, ...],
    sequence: SequenceName,
    seq: int,
    key: str,
    on_paint: Callable[[], None],
) -> ComponentResult:
    """Mount the painter: one row per query, one column per key.

    Args:
        blocked: which cells are blocked, (T, T).
        labels: the T tokens' printable texts, invisible characters made visible already.
        sequence: the token sequence that both axes run over.
        seq: ``seq`` of the last ``paint`` event that ``blocked`` takes account of, 0 before the first. The browser
            ignores a ``blocked`` that is older than its own last stroke.
        key: identifies the element on the page.
        on_paint: called before the next run when a person has finished a stroke;
            ``parse_mask(st.session_state[key]["paint"], T)`` then says what is blocked.

    ``paint`` is {"blocked": base64 of one bit per cell, "seq": count of strokes}.
    Raises ValueError when ``blocked`` is not one row and one column per label, or when there is no label.
    """
    return _mount(key=key, data=payload(blocked, labels, sequence, seq, key), on_paint_change=on_paint)


def payload(blocked: Cells, labels: tuple[str, ...], sequence: SequenceName, seq: int, key: str) -> bytes:
    """What the browser receives: both axes, and one bit per cell."""
    if not labels or blocked.shape != (len(labels), len(labels)):
        raise ValueError(f"blocked has shape {blocked.shape} but needs a row and a column for {len(labels)} labels")
    header = {
        "key": key,
        "seq": seq,
        "rows": Axis("query", labels, sequence).as_header(),
        "columns": Axis("key", labels, sequence).as_header(),
    }
    return pack(header, {"blocked": np.packbits(blocked.astype(np.bool_, copy=False))})


def parse_mask(value: object, n_tokens: int) -> Cells | None:
    """What the browser sent as ``paint``: which cells are blocked, (n_tokens, n_tokens).

    None unless it is base64 of exactly one bit per cell, filled up with zeros to whole bytes. A stroke on another
    number of tokens is refused by its length, except between 1 and 2 tokens and between 3 and 4.
    """
    text = value.get("blocked") if isinstance(value, dict) else None
    n_cells = n_tokens * n_tokens
    n_bytes = (n_cells + 7) // 8
    # The length is looked at first: a text of any size is refused before it is decoded.
    if not isinstance(text, str) or len(text) != 4 * ((n_bytes + 2) // 3):
        return None
    try:
        data = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    except (binascii.Error, ValueError):
        return None
    if len(data) != n_bytes:
        return None
    bits = np.unpackbits(data)
    return None if bits[n_cells:].any() else bits[:n_cells].reshape(n_tokens, n_tokens).astype(np.bool_)
