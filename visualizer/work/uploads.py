"""Files that were uploaded, kept in the store, by what a link calls them: ``<digest>/<name of the file>``."""

from __future__ import annotations

import hashlib
import logging
import re

from visualizer import store

MOST_BYTES = 32 * 2**20
"""The longest file that is kept; a longer one stays in its session."""

_logger = logging.getLogger(__name__)
_DIGEST = re.compile(r"[0-9a-f]{32}")


def keep(name: str, content: bytes) -> str:
    """Keep a file, and give what a link calls it; "" where it is too long, or there is no place for it."""
    if len(content) > MOST_BYTES:
        return ""
    digest = _digest(content)
    try:
        store.save(_file(digest), content)
    except OSError:
        _logger.warning("an upload was not kept", exc_info=True)
        return ""
    return f"{digest}/{name}"


def content_of(called: str) -> bytes | None:
    """Read what a link calls so; None where it is not kept, or not any more."""
    digest = called.partition("/")[0]
    content = store.load(_file(digest)) if _DIGEST.fullmatch(digest) else None
    return content if content is not None and _digest(content) == digest else None


def name_of(called: str) -> str:
    """The name of the file that was uploaded."""
    return called.partition("/")[2]


def _file(digest: str) -> str:
    return f"{digest}.upload"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
