"""How the process keeps the memory that a run gives back, where the C library can be told."""

from __future__ import annotations

import ctypes
import platform

_MIB = 2**20
_OPTIONS = {
    "M_ARENA_MAX": (-8, 1),
    "M_MMAP_THRESHOLD": (-3, 32 * _MIB),
    "M_TRIM_THRESHOLD": (-1, 256 * _MIB),
    "M_TOP_PAD": (-2, 64 * _MIB),
}
"""What glibc is told, as in mallopt(3): each option's number there and its value."""


def keep_freed_memory() -> bool:
    """Have the process take up the memory of an earlier run again, instead of asking the system for fresh pages.

    A recorded pass keeps all its tensors, so that each new one lies in memory that was never touched; the system's
    zeroing of those pages took up to as long as the pass. At most 256 MiB at the end of the heap stay unused.

    Returns:
        Whether it was told; False where the C library is another one, and nothing changes.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(number, value) == 1 for number, value in _OPTIONS.values())
