"""Garbage collection: its times, and what it passes over.

A collection holds the interpreter. With all that was imported, PyTorch among it, one takes longer than a run of the
script. Streamlit's own, after every run, is therefore switched off (``runner.postScriptGC``): with it, ten people
who change something once a second wait for 3.2 s, and for 0.03 s without (``benchmarks/load.py``, two cores).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from threading import Event, Thread

from visualizer.server.allocator import give_back_freed_memory

EVERY_SECONDS = 3.0
"""The seconds between two collections while pages are changed."""

_imported = {"modules": 0}
_HAS_RUN = Event()


def freeze_imports() -> None:
    """Leave what was imported since out of the collections. For the end of a run, when the page has left."""
    _HAS_RUN.set()
    n_modules = len(sys.modules)
    if n_modules > _imported["modules"]:
        _imported["modules"] = n_modules
        gc.collect()
        gc.freeze()


def collect_at_intervals() -> None:
    """Have a thread collect every few seconds while pages are changed."""
    Thread(target=_collect_again_and_again, args=(Event().wait,), name="garbage", daemon=True).start()


def _collect_again_and_again(wait: Callable[[float], bool]) -> None:
    """Collect after each pause in which the script has run, and give memory back after the first one in which not.

    Until a pause is broken off.
    """
    has_run = False
    while not wait(EVERY_SECONDS):
        had_run, has_run = has_run, _HAS_RUN.is_set()
        if has_run:
            _HAS_RUN.clear()
            gc.collect()
        elif had_run:
            give_back_freed_memory()
