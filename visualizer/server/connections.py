"""How the server sends what it has to say: at once."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator

_OPEN_FILES = "/dev/fd"
"""Where Linux and macOS list what a process has open."""


def send_at_once() -> int:
    """Have every connection to this process send small parts without waiting for an answer to the one before.

    asyncio does so for sockets that say that they speak TCP; the server's does not say it. A head and its body, or
    two messages in a row, then wait for each other: 40 ms, until the other side confirms what it has got (Nagle's
    algorithm, RFC 896, against delayed acknowledgements, RFC 1122). Connections take it over from the socket that
    accepts them.

    Returns:
        How many listening sockets were told; none where they cannot be listed.
    """
    told = 0
    for listening in _listening():
        with listening:
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            told += 1
    return told


def _listening() -> Iterator[socket.socket]:
    """The TCP sockets of this process that accept connections, each by a handle of its own."""
    numbers = os.listdir(_OPEN_FILES) if os.path.isdir(_OPEN_FILES) else []
    for number in map(int, numbers):
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            found = socket.socket(fileno=os.dup(number))
        except OSError:  # closed meanwhile
            continue
        is_internet = found.family in (socket.AF_INET, socket.AF_INET6) and found.type == socket.SOCK_STREAM
        if is_internet and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            yield found
        else:
            found.close()
