"""Recorded runs under another mask; and by a token, for the address of their numbers, as no link names them."""

from __future__ import annotations

import secrets
from dataclasses import replace
from weakref import WeakValueDictionary

from model.texts import texts_of
from visualizer.runs.run import Run
from visualizer.settings.fields import RECORDED

say = texts_of(__name__)
_RUNS: WeakValueDictionary[str, Run] = WeakValueDictionary()


def token_of(run: Run) -> str:
    """The token by which this process finds a recorded run while it is open; "" for any other."""
    return run.once("token", lambda: _new_token(run)) if run.settings.weights == RECORDED else ""


def run_of(token: str) -> Run | None:
    """The run of a token; None where its recording is no longer open here."""
    return _RUNS.get(token)


def under(run: Run, mask: tuple[str, ...]) -> Run:
    """A recorded run under other masks: the last one is kept, as a picture asks for it layer by layer.

    Raises:
        ValueError: its queries and keys were not recorded.
    """
    if run.repeat is None:
        raise ValueError(say("not_repeated"))
    cache: dict[tuple[str, ...], Run] = run.once("under", dict)
    if (found := cache.get(mask)) is None:
        found = run.repeat(replace(run.settings, mask=mask))
        cache.clear()
        cache[mask] = found
    return found


def _new_token(run: Run) -> str:
    token = secrets.token_hex(16)
    _RUNS[token] = run
    return token
