"""Work in a process of its own: it is given JSON and writes frames, a length and as many bytes each.

A process can be ended at any moment, whatever library is at work in it, and leaves the interpreter to the page:
threads of one process take turns at it. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

_ROOT = Path(__file__).parents[1]
_BEAT_SECONDS = 0.25
_LENGTH_BYTES = 8


def frames_of(command: Sequence[str], request: object) -> Generator[bytes]:
    """Yield the frames that a program writes; empty ones where none comes, so that whoever waits can go.

    The program ends with the last frame or when no more is asked for, and with it what it has started.

    Args:
        command: starts the program.
        request: what it is to do, as JSON.

    Raises:
        RuntimeError: it failed.
    """
    paths = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "TQDM_DISABLE": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as process:
        try:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("the process has no pipes")
            with suppress(BrokenPipeError), process.stdin as pipe:  # it is gone already: how it ended says more
                pipe.write(json.dumps(request).encode())
            yield from _frames_and_beats(process.stdout)
            if process.wait() != 0:
                raise RuntimeError(f"the process ended with exit code {process.returncode}")
        finally:
            if process.poll() is None:
                _end(process)


def _frames_and_beats(stream: IO[bytes]) -> Generator[bytes]:
    waiting: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        while frame := stream.read(int.from_bytes(stream.read(_LENGTH_BYTES), "little")):
            waiting.put(frame)
        waiting.put(b"")

    Thread(target=read, daemon=True).start()
    while True:
        try:
            frame = waiting.get(timeout=_BEAT_SECONDS)
        except Empty:
            yield b""
            continue
        if not frame:
            return
        yield frame


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def work(do: Callable[[Any, Callable[[bytes], None]], object]) -> None:
    """Do what the program was given, and write the frames that ``do`` hands on.

    Args:
        do: takes what was given, and a function that writes a frame. What it prints goes elsewhere.
    """
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)

        def write(frame: bytes) -> None:
            output.write(len(frame).to_bytes(_LENGTH_BYTES, "little") + frame)
            output.flush()

        try:
            do(json.load(sys.stdin), write)
        except BrokenPipeError:  # whoever asked has gone
            os._exit(1)
