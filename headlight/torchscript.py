"""Functions that TorchScript compiled run as the Python that they were compiled from while a model is watched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

_called: ContextVar[dict[str, None] | None] = ContextVar("called", default=None)
_lock = threading.Lock()
_CALL = "__call__"
_compiled: Any = torch.jit.ScriptFunction.__call__
_n_watching = 0


@contextmanager
def as_python(called: dict[str, None]) -> Iterator[None]:
    """Run such functions as Python until the block ends, in this thread alone.

    A compiled function shows no functions of PyTorch. One that ``torch.jit.trace`` made stays compiled, since the
    Python that it was made from can do something else.

    Args:
        called: takes the name of each one that did, once.
    """
    token = _called.set(called)
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        _called.reset(token)


def _count(more: int) -> None:
    """Have PyTorch call compiled functions by ``_call`` while any thread watches."""
    global _n_watching
    with _lock:
        _n_watching += more
        setattr(torch.jit.ScriptFunction, _CALL, _call if _n_watching else _compiled)


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
    called = _called.get()
    if called is None or torch._C._get_tracing_state() is not None:
        return _compiled(function, *args, **kwargs)
    python = getattr(function, "_torchdynamo_inline", None)
    if python is None or "__name__" not in vars(function):  # which torch.jit.script alone gives
        return _compiled(function, *args, **kwargs)
    called[python.__name__] = None
    return python(*args, **kwargs)
