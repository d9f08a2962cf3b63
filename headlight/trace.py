"""What was seen of a pass: its attentions, and sentences on what could not be seen."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import overload

from headlight.attention import Attention


class Trace(Sequence[Attention]):
    """The attentions of the passes that were watched, in the order computed; by number or by path."""

    def __init__(self, attentions: Sequence[Attention] = (), notes: Sequence[str] = ()) -> None:
        self._attentions = list(attentions)
        self._notes = list(notes)

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of each attention."""
        return tuple(attention.path for attention in self._attentions)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be seen, and how what was seen differs from an unwatched pass; one sentence each."""
        return tuple(self._notes)

    @property
    def nbytes(self) -> int:
        """The memory of what is kept, in bytes; what attentions share is counted once for each."""
        return sum(attention.nbytes for attention in self._attentions)

    @overload
    def __getitem__(self, which: int | str) -> Attention: ...
    @overload
    def __getitem__(self, which: slice) -> Trace: ...
    def __getitem__(self, which: int | str | slice) -> Attention | Trace:
        """An attention by number or path, or a part of the trace.

        Raises:
            IndexError: there are fewer attentions.
            KeyError: none has the path; the message names the nearest one.
        """
        if isinstance(which, slice):
            return Trace(self._attentions[which], self._notes)
        if isinstance(which, int):
            return self._attentions[which]
        for attention in self._attentions:
            if attention.path == which:
                return attention
        near = difflib.get_close_matches(which, self.paths, n=1)
        raise KeyError(f"no attention {which!r} was seen" + (f": did you mean {near[0]!r}?" if near else ""))

    def __len__(self) -> int:
        return len(self._attentions)

    def __iter__(self) -> Iterator[Attention]:
        return iter(self._attentions)

    def append(self, attention: Attention) -> None:
        """Add what was seen next."""
        self._attentions.append(attention)

    def note(self, sentence: str) -> None:
        """Add a sentence, unless it was said already."""
        if sentence not in self._notes:
            self._notes.append(sentence)
