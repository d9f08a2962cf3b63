"""Memory that was given back is taken up again, and threads that take turns come one after the other."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore

import pytest

from visualizer.server.tuning import Turns, keep_freed_memory

ROOT = Path(__file__).parents[3]
COUNT_FAULTS = """
import resource
from visualizer.server.tuning import keep_freed_memory

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


def test_another_c_library_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert keep_freed_memory() is False


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_memory_that_was_given_back_needs_no_fresh_pages():
    found = subprocess.run(
        [sys.executable, "-c", COUNT_FAULTS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    told, before, after = found.stdout.split()
    assert told == "True"
    assert int(before) > 1_000  # eight MiB in pages of four KiB
    assert int(after) < 10


def test_turns_do_not_overlap_and_come_in_the_order_asked_for():
    turns, entered, leave, done = Turns(longest=60), Event(), Event(), []

    waits = Semaphore(0)

    class Queue(deque):
        def append(self, mine):
            super().append(mine)
            waits.release()

    turns._queue = Queue()

    def first():
        with turns.turn():
            entered.set()
            leave.wait()
            done.append(0)

    def later(number):
        with turns.turn():
            done.append(number)

    with ThreadPoolExecutor(8) as threads:
        threads.submit(first)
        entered.wait()
        waits.acquire()
        for number in range(1, 8):
            threads.submit(later, number)
            waits.acquire()
        assert done == []
        leave.set()
    assert done == list(range(8))
    assert not turns._queue


def test_a_turn_that_takes_too_long_goes_on_beside_the_next():
    turns, entered, leave = Turns(longest=0.01), Event(), Event()

    def long():
        with turns.turn():
            entered.set()
            leave.wait()

    with ThreadPoolExecutor() as threads:
        threads.submit(long)
        entered.wait()
        for _ in range(3):
            with turns.turn():
                assert not leave.is_set()
        leave.set()
    assert not turns._queue


def test_a_turn_that_is_broken_off_is_over():
    turns = Turns(longest=60)
    with pytest.raises(KeyError), turns.turn():
        raise KeyError
    with turns.turn():
        pass
