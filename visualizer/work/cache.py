"""The caches: finished runs, and what the rooms keep for themselves, shared by all sessions and never changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary, ref

import streamlit as st
import torch

from model.texts import texts_of
from visualizer.runs.compute import compute
from visualizer.runs.prepare import prepare
from visualizer.runs.run import Run
from visualizer.server.tuning import freeze_imports
from visualizer.settings.fitting import as_asked
from visualizer.settings.settings import Settings
from visualizer.state.streamlit_internals import is_page

say = texts_of(__name__)

SMALL_RUN = 64 * 2**20
"""Bytes up to which a run is worth keeping in numbers."""

LARGE_RUN = 256 * 2**20
"""Bytes from which on two runs are kept, whatever they take, as Compare needs them; of smaller ones more."""


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """The values of one kind that a room keeps, shared by all sessions: the newest, as many as there is room for.

    Args:
        room: the most that all kept together may count; the newest is kept whatever it counts.
        size: what one counts; 1 unless given.
    """

    def __init__(self, room: float, size: Callable[[Value], float] = lambda _: 1) -> None:
        self._room, self._size = room, size
        self._lock = Lock()
        self._values: OrderedDict[Key, tuple[Value, float]] = OrderedDict()  # with what each counts
        self._taken = 0.0

    def get(self, key: Key) -> Value | None:
        """Return the value kept under a key; None where none is, or not any more. It counts as new again."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Key, value: Value) -> Value:
        """Keep a value, forget the oldest ones that it leaves no room for, and return it."""
        size = self._size(value)
        with self._lock:
            if key in self._values:
                self._taken -= self._values.pop(key)[1]
            self._leave_room(size)
            self._values[key] = value, size
            self._taken += size
        return value

    def make_room(self, size: float) -> None:
        """Forget now the oldest ones that a value of a size, still to be made, will leave no room for."""
        with self._lock:
            self._leave_room(size)

    def _leave_room(self, size: float) -> None:
        while self._values and self._taken + size > self._room:
            _, (_, given_back) = self._values.popitem(last=False)
            self._taken -= given_back


_SMALL_RUNS: Cache[Settings, Run] = Cache(room=24)
_LARGE_RUNS: Cache[Settings, Run] = Cache(room=2 * LARGE_RUN, size=lambda run: min(run.n_bytes, LARGE_RUN))
_PASSING_RUNS: Cache[Settings, Run] = Cache(room=4)

_computing_large = Lock()
"""One large run is computed after the other, however many ask: each takes up to a gibibyte."""


def cached_run(settings: Settings, *, is_passing: bool = False) -> Run:
    """The run of these settings, prepared and computed once.

    Args:
        settings: what is run.
        is_passing: whether it may be one of many that nobody returns to, as while a control is dragged: it then
            takes the place of another such run and of no other.

    Raises:
        ValueError: as ``prepare``.
    """
    prepare_process()
    settings = as_asked(settings)
    with _turn_of(settings):
        found = _SMALL_RUNS.get(settings) or _LARGE_RUNS.get(settings) or _PASSING_RUNS.get(settings)
        if found is not None:
            return found
        prepared = prepare(settings)
        if prepared.n_bytes <= SMALL_RUN:
            return (_PASSING_RUNS if is_passing else _SMALL_RUNS).put(settings, compute(prepared))
        with sign_of_work(), _computing_large:
            _LARGE_RUNS.make_room(min(prepared.n_bytes, LARGE_RUN))
            return _LARGE_RUNS.put(settings, compute(prepared))


def sign_of_work() -> AbstractContextManager[object]:
    """A spinner on the page that waits; nothing where no page does, as when the server answers an address."""
    return st.spinner(say("computing")) if is_page() else nullcontext()


def recalled(run: Run) -> Callable[[], Run]:
    """A run for whoever may ask for it long after, as what waits for a click: computed again where it is gone.

    A page stays open for hours, and what it keeps of a run keeps up to a gibibyte.
    """
    held, (settings, item) = ref(run), run.subject

    def recall() -> Run:
        return held() or cached_run(settings).at(item)

    return recall


_TURNS: WeakValueDictionary[Settings, Lock] = WeakValueDictionary()
_taking_turns = Lock()


def _turn_of(settings: Settings) -> Lock:
    """The lock that makes a second session wait for a run that a first one computes."""
    with _taking_turns:
        return _TURNS.setdefault(settings, Lock())


@cache
def prepare_process() -> None:
    """Set up what is global to the process, once, after the imports.

    One thread per run: the operations are small, and threads that wait for each other on a core that the browser or
    another session also uses take ten times as long as one alone.
    """
    torch.set_num_threads(1)
    freeze_imports()
