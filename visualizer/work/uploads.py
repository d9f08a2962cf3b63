"""Files that were uploaded, kept in the store, by what a link calls them: ``<digest>/<name of the file>``."""

from __future__ import annotations

import logging
from typing import NamedTuple

from visualizer import store

MOST_BYTES = 32 * 2**20
"""The longest file that is kept; a longer one stays in its session."""

_logger = logging.getLogger(__name__)
_ENDING = ".upload"


class Upload(NamedTuple):
    """An uploaded file, and what a link calls it; "" where it is in its session alone."""

    name: str
    content: bytes
    called: str


def keep(name: str, content: bytes) -> Upload:
    """Keep a file for its link, unless it is too long, or there is no place for it."""
    if len(content) > MOST_BYTES:
        return Upload(name, content, "")
    try:
        digest = store.put(content, _ENDING)
    except OSError:
        _logger.warning("not kept: %s", name, exc_info=True)
        return Upload(name, content, "")
    return Upload(name, content, f"{digest}/{name}")


def find(called: str) -> Upload | None:
    """The file that a link calls so; None where it is not kept, or not any more."""
    digest, _, name = called.partition("/")
    content = store.get(digest, _ENDING)
    return None if content is None else Upload(name, content, called)
