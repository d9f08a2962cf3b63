"""Arrays written with brackets: JSON, Python, and what NumPy, PyTorch and JAX print."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from model.texts import texts_of
from visualizer.views.lab.mask_files.entries import (
    MAX_AXES,
    Array,
    Entry,
    array_of,
    check_entries,
    check_shape,
    check_side,
    quoted,
    read_entry_at,
)

say = texts_of(__name__)
_CALL = re.compile(
    r"(?:\w{1,40}\s*=\s*)?(?:(?:np|numpy|torch|jnp|jax\.numpy)\.)?(?:as)?(?:array|tensor)\s*\(", re.IGNORECASE
)
_ASSIGNED = re.compile(r"\w{1,40}\s*=\s*(?=[\[(])")
_AFTER_ARRAY = re.compile(r"\s*(,[^()\[\]]*)?\)\s*;?")
_TOKEN = re.compile(r"[\[\](),]|[^\s\[\](),]+")
_CLOSING = {"[": "]", "(": ")"}
_DEEPEST = 6


def is_nested(text: str) -> bool:
    """True if a text is an array in brackets, rather than lines of numbers."""
    return text.startswith(tuple(_CLOSING)) or bool(_CALL.match(text) or _ASSIGNED.match(text))


def read_nested(text: str) -> Array:
    """The array in brackets, with as many axes as brackets, at most four: what is around these counts for nothing.

    Values may be separated by commas or by blanks, as NumPy prints them.

    Raises:
        ValueError: it is none; the message says where.
    """
    lists = _Lists()
    for token in _TOKEN.finditer(_without_call(text)):
        lists.take(token.group())
    return lists.array()


def _without_call(text: str) -> str:
    """The brackets alone, without ``tensor(`` and what follows the array, such as ``, dtype=torch.bool)``."""
    if "..." in text:
        raise ValueError(say("shortened"))
    call = _CALL.match(text)
    if call is None:
        assigned = _ASSIGNED.match(text)
        return text[assigned.end() :] if assigned else text
    end = text.rfind("]") + 1
    if end == 0 or not _AFTER_ARRAY.fullmatch(text, end):
        raise ValueError(say("no_array_after", call=quoted(call.group())))
    return text[call.end() : end]


@dataclass
class _List:
    """A list that is not closed yet: it holds lists or entries."""

    bracket: str
    entries: list[Entry] = field(default_factory=list)
    n_lists: int = 0


@dataclass
class _Lists:
    """The lists read so far, token by token, so that deep nesting costs no recursion."""

    open: list[_List] = field(default_factory=list)
    rows: list[list[Entry]] = field(default_factory=list)
    row_depth: int = 0
    sizes: dict[int, int] = field(default_factory=dict)
    previous: str = ""

    def take(self, token: str) -> None:
        """Read one bracket, comma or entry."""
        if self.rows and not self.open:
            raise ValueError(say("after_array", text=quoted(token)))
        if token in _CLOSING:
            self._open(token)
        elif token in _CLOSING.values():
            self._close(token)
        elif token == ",":
            if self.previous in ("", ",", *_CLOSING):
                raise ValueError(say("lone_comma", row=self._row))
        else:
            self._add(token)
        self.previous = token

    def array(self) -> Array:
        """The array, once all is read."""
        if self.open:
            raise ValueError(say("never_closed", bracket=self.open[-1].bracket))
        array = array_of(self.rows or [[]])
        shape = [*(self.sizes[depth] for depth in range(1, self.row_depth)), array.shape[1]]
        while len(shape) > MAX_AXES and shape[0] == 1:
            del shape[0]
        check_shape(shape)
        return array.reshape(shape)

    @property
    def _row(self) -> int:
        return len(self.rows) + 1

    def _open(self, bracket: str) -> None:
        if len(self.open) == _DEEPEST:
            raise ValueError(say("too_deep", row=self._row, most=_DEEPEST))
        if self.open:
            if self.open[-1].entries:
                raise ValueError(say("list_beside_value", row=self._row))
            self.open[-1].n_lists += 1
        self.open.append(_List(bracket))

    def _close(self, bracket: str) -> None:
        if not self.open or _CLOSING[self.open[-1].bracket] != bracket:
            raise ValueError(say("closes_nothing", row=self._row, bracket=bracket))
        closed, depth = self.open[-1], len(self.open)
        if closed.n_lists == 0:
            if self.rows and depth != self.row_depth:
                raise ValueError(say("uneven_depth", row=self._row, depth=depth, first=self.row_depth))
            self.rows.append(closed.entries)
            self.row_depth = depth
            check_entries(len(self.rows) * max(1, len(closed.entries)))
        elif self.sizes.setdefault(depth, closed.n_lists) != closed.n_lists:
            raise ValueError(say("uneven_lists", row=self._row, size=closed.n_lists, first=self.sizes[depth]))
        self.open.pop()
        if self.open:
            check_side(self.open[-1].n_lists, 0)

    def _add(self, text: str) -> None:
        if not self.open:
            raise ValueError(say("before_array", text=quoted(text)))
        if self.open[-1].n_lists:
            raise ValueError(say("value_beside_lists", row=self._row, value=quoted(text)))
        entries = self.open[-1].entries
        entries.append(read_entry_at(text, self._row, len(entries) + 1))
        check_side(0, len(entries))
