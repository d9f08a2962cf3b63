"""Threads that take turns come one after the other, and nobody waits for one that takes long."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore

import pytest

from visualizer.server.turns import Turns


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
