"""The mask painter on a page of its own, and its host, which computes weights and findings with NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page

from tests.pictures.static_page import heard, panels, update
from tests.reading import click_cell, point_at
from visualizer.components.axis import Axis
from visualizer.components.mask_painter.element import (
    FindingMark,
    Reason,
    mask_painter,
    parse_mask,
    parse_masks,
    parse_mend,
    parse_select,
)
from visualizer.components.picture import Picture

Cells = NDArray[np.bool_]
Event = dict[str, object]

KEY = "painter"
ALL_CLEAR = "Nothing suspicious: every query keeps a key, and no padding is seen."
WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "slept")
LABELS = {"causal": "causal", "padding": "padding", "sliding_window": "window of 3"}


class Painter:
    """A painter as a person finds it, and a host that answers what it has heard when it is told to."""

    def __init__(
        self,
        show: Callable[..., Page],
        n_tokens: int = 6,
        *,
        reasons: tuple[str, ...] = (),
        row: int | None = None,
        words: tuple[str, ...] = WORDS,
        has_weights: bool = True,
        dark: bool = False,
        width: int = 1280,
    ) -> None:
        self.cells = np.zeros((n_tokens, n_tokens), dtype=np.bool_)
        if row is not None:
            self.cells[row] = True
        self.reasons = reasons
        self.words = words
        self.has_weights = has_weights
        self.selected: tuple[int, int] | None = None
        self.scope = ""
        self.seq = 0
        self.n_answered = 0
        self.page: Page = show([self.picture()], dark=dark, width=width)
        self.panel = panels(self.page, KEY)

    # What a person does.

    def point_at(self, row: int, column: int) -> None:
        point_at(self.panel, row, column, self.cells.shape)

    def click(self, row: int, column: int) -> None:
        click_cell(self.panel, row, column, self.cells.shape)

    def drag(self, *cells: tuple[int, int]) -> None:
        """Press on the first cell and move over the others; the button stays down."""
        self.point_at(*cells[0])
        self.page.mouse.down()
        for cell in cells[1:]:
            self.point_at(*cell)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name)

    # What the host does.

    @property
    def heard(self) -> list[tuple[str, Event]]:
        return heard(self.page, KEY)

    @property
    def painted(self) -> list[tuple[int, int]]:
        """The cells that the host knows as painted."""
        return [(row, column) for row, column in np.argwhere(self.cells).tolist()]

    @property
    def blocked(self) -> Cells:
        return blocked_with(self.cells, self.reasons)

    def answer(self) -> None:
        """Answer what is heard, one event after the other, until there is no more."""
        assert len(self.heard) > self.n_answered
        while len(self.heard) > self.n_answered:
            self.answer_next()

    def answer_next(self) -> None:
        name, event = self.heard[self.n_answered]
        self.n_answered += 1
        self.seq = int(str(event["seq"]))
        acts = {"paint": self._paint, "take_over": self._take_over, "mend": self._mend}
        (acts | {"bring_back": self._bring_back, "select": self._select})[name](event)
        self.send()

    def send(self) -> None:
        update(self.page, self.picture())

    def _paint(self, event: Event) -> None:
        painted = parse_mask(event, *self.cells.shape)
        assert painted is not None
        self.cells = painted

    def _take_over(self, _event: Event) -> None:
        self.cells, self.reasons = self.blocked, ()

    def _mend(self, event: Event) -> None:
        found = findings_of(self.blocked)
        index = parse_mend(event, len(found))
        assert index is not None
        self.cells, self.reasons = self.blocked | found[index].cells, ()

    def _bring_back(self, event: Event) -> None:
        self._paint(event)
        self.reasons = tuple(name for name in parse_masks(event)["mask"].split(",") if name)

    def _select(self, event: Event) -> None:
        self.selected = parse_select(event, *self.cells.shape)

    def picture(self) -> Picture:
        n_tokens = len(self.cells)
        labels = tuple(self.words[i % len(self.words)] for i in range(n_tokens))
        others = np.zeros(self.cells.shape, dtype=np.uint8)
        for bit, name in enumerate(self.reasons):
            others |= blocked_by(name, n_tokens).astype(np.uint8) << bit
        return mask_painter(
            self.cells,
            others=others,
            reasons=tuple(Reason(name, LABELS[name]) for name in self.reasons),
            weights=weights_under(self.blocked) if self.has_weights else None,
            weights_title="weight, layer 0 head 1",
            findings=findings_of(self.blocked),
            all_clear=ALL_CLEAR,
            rows=Axis("query", labels, "source"),
            columns=Axis("key", labels, "source"),
            seq=self.seq,
            key=KEY,
            masks={"mask": ",".join(self.reasons)},
            selected=self.selected,
            scope=self.scope,
        )


def blocked_by(name: str, size: int) -> Cells:
    query, key = np.indices((size, size))
    return {"causal": key > query, "padding": key >= size - 2, "sliding_window": abs(query - key) >= 3}[name]


def blocked_with(painted: Cells, reasons: tuple[str, ...]) -> Cells:
    return np.any([painted, *(blocked_by(name, len(painted)) for name in reasons)], axis=0)


def weights_under(blocked: Cells) -> NDArray[np.float32]:
    size = len(blocked)
    numbers = np.exp(np.random.default_rng(0).normal(size=(size, size)) * 1.5) * ~blocked
    return (numbers / np.maximum(numbers.sum(1, keepdims=True), 1e-30)).astype(np.float32)


def findings_of(blocked: Cells) -> tuple[FindingMark, ...]:
    size = len(blocked)
    found = []
    if (empty := blocked.all(1)).any():
        rows = np.repeat(empty[:, None], size, 1)
        why = "The softmax of a row without a key is no distribution."
        found.append(FindingMark("A query keeps no key", "error", why, "Let each query see itself.", rows, False))
    visible = ~blocked & (np.arange(size) >= size - 2)
    if size > 2 and visible.any():
        why = "A padding token carries no meaning, and weights on it are lost."
        found.append(FindingMark("Padding can be seen", "warning", why, "Block its columns.", visible, True))
    return tuple(found)
