"""The texts that models have written, kept for all sessions, so that going back to it computes nothing."""

from __future__ import annotations

from model.decoding import BeamTree
from visualizer.runs.continuation import Beam, Continuation, OneByOne, search
from visualizer.runs.run import Subject
from visualizer.runs.writer import Writer
from visualizer.work.cache import Cache

CONTINUATION_BYTES = 128 * 2**20
"""The most memory that what was written may take together; the newest is always kept."""

CONTINUATIONS: Cache[tuple[Subject, OneByOne], Continuation] = Cache(
    CONTINUATION_BYTES, size=lambda continuation: continuation.n_bytes
)
"""By the sequence of a run that a model continues or answers, and how."""

_SEARCHES: Cache[tuple[Subject, Beam], BeamTree] = Cache(room=32)


def tree_of_search(subject: Subject, how: Beam, writer: Writer) -> BeamTree:
    """The tree of a beam search by the writer of one sequence of a run."""
    return _SEARCHES.get((subject, how)) or _SEARCHES.put((subject, how), search(writer, how))
