"""The operations of a checkpoint's pass, watched once for all sessions."""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.tokenized import TooLongError
from headlight.trace import Trace
from visualizer.runs.checkpoints import (
    MOST_BYTES,
    answers_of,
    checkpoint_of,
    every_operation,
    labels_of,
    of_line,
    refused,
)
from visualizer.runs.operations_run import run_of_operations
from visualizer.runs.run import Run
from visualizer.runs.watched import WatchedRun
from visualizer.settings.fitting import as_asked
from visualizer.settings.settings import Settings
from visualizer.work.cache import Cache, sign_of_work

_WATCHED: WeakKeyDictionary[Checkpoint, Cache[Settings, WatchedRun]] = WeakKeyDictionary()
_watching = Lock()


def cached_operations(run: Run) -> Run:
    """The run whose stages are the operations of a checkpoint's run, over the sequence that is looked at alone.

    Raises:
        RefusedError: they take more memory than there is room for.
        ValueError: the checkpoint is not in memory.
    """
    settings = as_asked(of_line(run.settings, run.item))
    checkpoint = checkpoint_of(settings)
    with _watching:
        cache = _WATCHED.setdefault(checkpoint, Cache(2 * MOST_BYTES, size=lambda seen: seen.trace.nbytes))
        if (found := cache.get(settings)) is None:
            try:
                with sign_of_work():
                    found = cache.put(settings, _watched(checkpoint, every_operation(settings)))
            except TooLongError as error:
                raise refused(run.settings, error) from error
    return run_of_operations(found, settings=settings)


def _watched(checkpoint: Checkpoint, trace: Trace) -> WatchedRun:
    return WatchedRun(
        trace,
        checkpoint.name,
        causal=True if checkpoint.part == "decoder" else None,
        model_name=type(checkpoint.model).__name__,
        vocabulary=answers_of(checkpoint),
        source_vocabulary=labels_of(checkpoint),
    )
