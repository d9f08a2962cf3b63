"""A check that memory stays flat: the resident memory of a process that computes a thousand runs of mixed sizes.

    python benchmarks/memory.py            under the allocator that the app sets, and under the machine's own

With one session and with eight, each a thread, as the server has them.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

N_RUNS = 1_000
LENGTHS = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512)


def main() -> None:
    if len(sys.argv) == 3:
        measure(is_set=sys.argv[1] == "set", n_sessions=int(sys.argv[2]))
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; resident MiB after 0, 200, 400, ... runs")
    for n_sessions in ("1", "8"):
        for allocator in ("set", "unset"):
            subprocess.run([sys.executable, __file__, allocator, n_sessions], check=True, cwd=ROOT)


def measure(*, is_set: bool, n_sessions: int) -> None:
    """Compute the runs, and print the memory after every two hundred."""
    from visualizer.server.tuning import keep_freed_memory

    if is_set:
        keep_freed_memory()
    from visualizer.settings.settings import Settings
    from visualizer.work.cache import cached_run

    chance = random.Random(0)

    def compute(number: int) -> None:
        text = " ".join(["word"] * chance.choice(LENGTHS))
        cached_run(Settings(text=text, seed=number, n_heads=chance.choice((2, 4, 8)), weights="random"))

    cached_run(Settings())
    found, start = [resident()], time.process_time()
    with ThreadPoolExecutor(n_sessions) as sessions:
        for first in range(0, N_RUNS, N_RUNS // 5):
            list(sessions.map(compute, range(first, first + N_RUNS // 5)))
            found.append(resident())
    seconds = time.process_time() - start
    memory = " ".join(f"{mebibytes:6.0f}" for mebibytes in found)
    print(
        f"  {n_sessions} sessions, allocator {'set' if is_set else 'unset':5}  {memory}   ({seconds:.0f} s)",
        flush=True,
    )


def resident() -> float:
    """The memory of this process that is in use, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


if __name__ == "__main__":
    main()
