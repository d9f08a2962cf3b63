"""How the threads of the server share its one interpreter."""

from __future__ import annotations

import sys

TURN = 0.0005
"""Seconds after which a thread that computes lets another one have the interpreter, if one waits for it.

A page is some sixty messages, each of which a thread that does nothing else hands to the network, and it has to
wait for a turn each time. With Python's own 5 ms a change with nine other sessions took 1.6 times as long
(``benchmarks/load.py``).
"""


def take_short_turns() -> None:
    """Have threads take turns more often than Python does by itself."""
    sys.setswitchinterval(TURN)
