"""``headlight.paint``: a mask painted in a notebook's cell, read as an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.bundle import FOLDER, bundled
from visualizer.components.mask_painter.element import mask_painter, parse_mask
from visualizer.safe_text import visible_whole

say = texts_of(__name__)

try:
    import anywidget
    import traitlets
except ImportError:
    raise ImportError(say("needs")) from None

_MODULE = "mask_painter/element.js"
_ENTRY = f"""import {{ renderWidget }} from "./widget.js";
export default {{ render: (given) => renderWidget(PICTURES["{_MODULE}"], COLORS, given) }};
"""
MOST_TOKENS = 512


@cache
def _script() -> str:
    return bundled(_ENTRY, [_MODULE], FOLDER)


def paint(
    tokens: Sequence[str] | int, *, keys: Sequence[str] | int = (), mask: ArrayLike | None = None
) -> PaintedMask:
    """Show a mask that is painted with the mouse or the keys; ``.mask`` is what it is now.

    Args:
        tokens: the text of each query, and of each key where ``keys`` are not given; or how many there are.
        keys: the same of the keys.
        mask: bool, (Tq, Tk), True = may attend: what it begins as; all may attend unless given.

    Raises:
        ValueError: there are no tokens or too many, or the mask does not fit; the message is one sentence.
    """
    painted = PaintedMask(_labels(tokens), _labels(keys) or _labels(tokens))
    if mask is not None:
        painted.mask = np.asarray(mask)
    return painted


class PaintedMask(anywidget.AnyWidget):
    """The widget of ``paint``.

    Args:
        rows: the queries.
        columns: the keys.

    Raises:
        ValueError: there are no tokens or too many.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    event = traitlets.Dict().tag(sync=True)

    def __init__(self, rows: tuple[str, ...], columns: tuple[str, ...]) -> None:
        self._rows, self._columns = rows, columns
        for labels in (rows, columns):
            if not 1 <= len(labels) <= MOST_TOKENS:
                raise ValueError(say("tokens", n_tokens=len(labels), most=MOST_TOKENS))
        self._blocked = np.zeros((len(self._rows), len(self._columns)), dtype=np.bool_)
        self._seq = 0
        super().__init__(_esm=_script(), data=self._packed())
        self.observe(self._hear, names="event")

    @property
    def mask(self) -> NDArray[np.bool_]:
        """The mask, (Tq, Tk), True = may attend."""
        return ~self._blocked

    @mask.setter
    def mask(self, allowed: NDArray[np.bool_]) -> None:
        """Paint another mask."""
        if allowed.dtype != np.bool_ or allowed.shape != self._blocked.shape:
            raise ValueError(say("mask", kind=allowed.dtype, shape=allowed.shape, size=self._blocked.shape))
        self._blocked = ~allowed
        self.data = self._packed()

    def _packed(self) -> bytes:
        return mask_painter(
            self._blocked,
            others=np.zeros(self._blocked.shape, dtype=np.uint8),
            reasons=(),
            weights=None,
            weights_title="",
            findings=(),
            all_clear="",
            rows=Axis("query", self._rows, "target"),
            columns=Axis("key", self._columns, "source"),
            seq=self._seq,
            key="painted",
        ).data

    def _hear(self, change: Mapping[str, Any]) -> None:
        """Take a stroke; a browser can send anything."""
        value = change["new"].get("value")
        cells = parse_mask(value, *self._blocked.shape)
        if cells is None or not isinstance(value, Mapping):
            return
        seq = value.get("seq")
        self._seq = seq if isinstance(seq, int) else self._seq
        self._blocked = cells
        self.data = self._packed()


def _labels(tokens: Sequence[str] | int) -> tuple[str, ...]:
    texts = map(str, range(tokens)) if isinstance(tokens, int) else tokens
    return tuple(map(visible_whole, texts))
