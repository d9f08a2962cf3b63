"""Arrays written with brackets: JSON, Python, and what NumPy and PyTorch print."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from visualizer.views.lab.mask_files.entries import Array, Entry, array_of, check_side, quoted, read_entry_at

_CALL = re.compile(r"(?:\w{1,40}\s*=\s*)?(?:(?:np|numpy|torch)\.)?(?:as)?(?:array|tensor)\s*\(", re.IGNORECASE)
_ASSIGNED = re.compile(r"\w{1,40}\s*=\s*(?=[\[(])")
_AFTER_ARRAY = re.compile(r"\s*(,[^()\[\]]*)?\)\s*;?")
_TOKEN = re.compile(r"[\[\](),]|[^\s\[\](),]+")
_CLOSING = {"[": "]", "(": ")"}
_DEEPEST = 6


def is_nested(text: str) -> bool:
    """Whether a text is an array in brackets, rather than lines of numbers."""
    return text.startswith(tuple(_CLOSING)) or bool(_CALL.match(text) or _ASSIGNED.match(text))


def read_nested(text: str) -> Array:
    """The array in brackets: (rows, columns), or (columns,) if written without inner brackets.

    Values may be separated by commas or by blanks, as NumPy prints them. Outer brackets around a single array count
    for nothing.

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
        raise ValueError(
            "the array was printed with ... in place of entries: print it whole, in NumPy after "
            "np.set_printoptions(threshold=sys.maxsize), in PyTorch after torch.set_printoptions(profile='full')"
        )
    call = _CALL.match(text)
    if call is None:
        assigned = _ASSIGNED.match(text)
        return text[assigned.end() :] if assigned else text
    end = text.rfind("]") + 1
    if end == 0 or not _AFTER_ARRAY.fullmatch(text, end):
        raise ValueError(f"after {quoted(call.group())} comes no array in brackets that ends with the text")
    return text[call.end() : end]


@dataclass
class _List:
    """A list that is not closed yet: it holds lists or entries."""

    bracket: str
    entries: list[Entry] = field(default_factory=list)
    n_lists: int = 0


@dataclass
class _Lists:
    """What was read so far, token by token, so that deep nesting costs no recursion."""

    open: list[_List] = field(default_factory=list)
    rows: list[list[Entry]] = field(default_factory=list)
    row_depth: int = 0
    n_closed: Counter[int] = field(default_factory=Counter)
    previous: str = ""

    def take(self, token: str) -> None:
        """Read one bracket, comma or entry."""
        if self.n_closed and not self.open:
            raise ValueError(f"after the array comes {quoted(token)}")
        if token in _CLOSING:
            self._open(token)
        elif token in _CLOSING.values():
            self._close(token)
        elif token == ",":
            if self.previous in ("", ",", *_CLOSING):
                raise ValueError(f"row {self._row} has a comma without a value before it")
        else:
            self._add(token)
        self.previous = token

    def array(self) -> Array:
        """The array, once all is read."""
        if self.open:
            raise ValueError(f"a {self.open[-1].bracket!r} is never closed")
        array = array_of(self.rows or [[]])
        if self.row_depth == 1:
            return array.reshape(-1)
        n_arrays = self.n_closed[self.row_depth - 1]
        if n_arrays > 1:
            raise ValueError(f"there are {n_arrays} arrays in one, such as heads or sequences: give one of them")
        return array

    @property
    def _row(self) -> int:
        return len(self.rows) + 1

    def _open(self, bracket: str) -> None:
        if len(self.open) == _DEEPEST:
            raise ValueError(f"row {self._row} is nested deeper than {_DEEPEST} brackets")
        if self.open:
            if self.open[-1].entries:
                raise ValueError(f"row {self._row} has a list beside a value")
            self.open[-1].n_lists += 1
        self.open.append(_List(bracket))

    def _close(self, bracket: str) -> None:
        if not self.open or _CLOSING[self.open[-1].bracket] != bracket:
            raise ValueError(f"row {self._row} has a {bracket!r} that closes nothing")
        closed, depth = self.open[-1], len(self.open)
        if closed.n_lists == 0:
            if self.rows and depth != self.row_depth:
                raise ValueError(f"row {self._row} is nested in {depth} brackets and row 1 in {self.row_depth}")
            self.rows.append(closed.entries)
            self.row_depth = depth
            check_side(len(self.rows), 0)
        self.n_closed[depth] += 1
        self.open.pop()

    def _add(self, text: str) -> None:
        if not self.open:
            raise ValueError(f"before the array comes {quoted(text)}")
        if self.open[-1].n_lists:
            raise ValueError(f"row {self._row} has the value {quoted(text)} beside lists")
        entries = self.open[-1].entries
        entries.append(read_entry_at(text, self._row, len(entries) + 1))
        check_side(0, len(entries))
