"""The memory that a run gives back is taken up by the next one, where the C library can be told."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from visualizer.server.allocator import give_back_freed_memory, keep_freed_memory

ROOT = Path(__file__).parents[3]
COUNT_FAULTS = """
import resource
from visualizer.server.allocator import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(2**23)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
as_it_was = faults()
told = keep_freed_memory()
faults()
print(told, as_it_was, faults())
"""


GIVE_BACK = """
import os
from pathlib import Path
from visualizer.server import allocator

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

allocator.keep_freed_memory()
kept = [bytearray(2**20) for _ in range(128)]
before = resident()
del kept[:-1]  # below the last one the heap is free, and stays
between = resident()
refused = allocator.give_back_freed_memory()
allocator.MOST_FREE = 2**26
print(allocator.give_back_freed_memory(), refused, before - between, between - resident())
"""


def test_another_c_library_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert keep_freed_memory() is False
    assert give_back_freed_memory() is False


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_a_lot_of_free_memory_goes_back_when_nobody_waits():
    found = subprocess.run([sys.executable, "-c", GIVE_BACK], cwd=ROOT, capture_output=True, text=True, check=True)
    has_given, was_little, by_itself, given = found.stdout.split()
    assert (has_given, was_little) == ("True", "False")
    assert int(by_itself) < 2**24
    assert int(given) > 2**26


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_memory_that_was_given_back_needs_no_fresh_pages():
    found = subprocess.run(
        [sys.executable, "-c", COUNT_FAULTS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    told, before, after = found.stdout.split()
    assert told == "True"
    assert int(before) > 1_000  # eight MiB in pages of four KiB
    assert int(after) < 10
