"""The allocator: the process keeps the memory that a run gives back, where the C library can be told."""

from __future__ import annotations

import ctypes
import platform
from typing import Any

_MIB = 2**20
_OPTIONS = {
    "M_ARENA_MAX": (-8, 1),
    "M_MMAP_THRESHOLD": (-3, 32 * _MIB),
    "M_TRIM_THRESHOLD": (-1, 256 * _MIB),
    "M_TOP_PAD": (-2, 64 * _MIB),
}
"""The options of glibc, as in mallopt(3): each option's number there and its value."""

MOST_FREE = 1024 * _MIB
"""So much memory may lie free: the next runs take it up faster than fresh pages."""


def keep_freed_memory() -> bool:
    """Have the process take up the memory of an earlier run again, instead of asking the system for fresh pages.

    A recorded pass keeps all its tensors, so that each new one lies in memory that was never touched; the system's
    zeroing of those pages took up to as long as the pass. At most 256 MiB at the end of the heap stay unused.

    Returns:
        Whether it was told; False where the C library is another one, and nothing changes.
    """
    mallopt = _of_glibc("mallopt")
    return mallopt is not None and all(mallopt(number, value) == 1 for number, value in _OPTIONS.values())


def give_back_freed_memory() -> bool:
    """Return to the system what lies free in the heap, where that is a lot.

    For when nobody waits, and for when a large run has taken what it needs: such runs leave gaps behind, two
    gibibytes of them after twenty, that the next ones do not fill again.

    Returns:
        Whether anything was returned.
    """
    describe, trim = _of_glibc("mallinfo2"), _of_glibc("malloc_trim")
    if describe is None or trim is None:
        return False
    describe.restype = _Heap
    return bool(describe().fordblks > MOST_FREE and trim(0))


class _Heap(ctypes.Structure):
    """The heap by mallinfo2(3); ``fordblks`` are the bytes that are free."""

    _fields_ = (("before", ctypes.c_size_t * 8), ("fordblks", ctypes.c_size_t), ("keepcost", ctypes.c_size_t))


def _of_glibc(name: str) -> Any:  # noqa: ANN401 - ctypes has no type for a function of a library
    """A function of the C library; None where it is another one, or too old."""
    if platform.libc_ver()[0] != "glibc":
        return None
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
