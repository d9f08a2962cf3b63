"""Recorded runs by a token, for the address of their numbers: no link says what they are of."""

from __future__ import annotations

import secrets
from weakref import WeakValueDictionary

from visualizer.runs.run import Run
from visualizer.settings.fields import RECORDED

_RUNS: WeakValueDictionary[str, Run] = WeakValueDictionary()


def token_of(run: Run) -> str:
    """The token by which this process finds a recorded run while it is open; "" for any other."""
    return run.once("token", lambda: _new_token(run)) if run.settings.weights == RECORDED else ""


def run_of(token: str) -> Run | None:
    """The run of a token; None where its recording is no longer open here."""
    return _RUNS.get(token)


def _new_token(run: Run) -> str:
    token = secrets.token_hex(16)
    _RUNS[token] = run
    return token
