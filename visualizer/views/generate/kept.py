"""The texts that models have written, kept for all sessions, so that going back to it computes nothing."""

from __future__ import annotations

from model.decoding import BeamTree
from visualizer.runs.run import Subject
from visualizer.runs.writer import Writer
from visualizer.runs.written import Beam, OneByOne, Written, search
from visualizer.work.cache import Kept

WRITTEN_BYTES = 128 * 2**20
"""The most memory that what was written may take together; the newest is always kept."""

WRITINGS: Kept[tuple[Subject, OneByOne], Written] = Kept(WRITTEN_BYTES, size=lambda written: written.n_bytes)
"""By the sequence of a run that a model continues or answers, and how."""

_SEARCHES: Kept[tuple[Subject, Beam], BeamTree] = Kept(room=32)


def searched(subject: Subject, how: Beam, writer: Writer) -> BeamTree:
    """The tree of a beam search by the writer of one sequence of a run."""
    return _SEARCHES.get((subject, how)) or _SEARCHES.keep((subject, how), search(writer, how))
