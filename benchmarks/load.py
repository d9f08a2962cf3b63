"""Many people at once, each changing the seed once a second, and as many asking for numbers by their address.

    python benchmarks/load.py              10 and 40 sessions, and 10 and 40 readers of addresses
    python benchmarks/load.py 10 20        10 sessions for 20 seconds
    python benchmarks/load.py 1000 0       the memory while 1,000 sessions are opened and closed, a few at a time

A session is what a browser has with the server, without the browser: it sends the state of a widget over the page's
socket and waits until the script has run. The client shares the machine with the server. Printed are the changes in
a second, the median, the quartiles and the 95th percentile, and what the server computes for one change: one
interpreter makes no more of them in a second than fit into one.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from urllib.parse import urlencode
from urllib.request import urlopen

from devtools import Served, served
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

SECONDS, PERIOD = 20.0, 1.0
LINK = {"view": "heads", "weights": "random", "text": "the cat sat on the mat because the cat was tired"}
PROTOCOLS = ["streamlit", "PLACEHOLDER_AUTH_TOKEN"]
FINISHED = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
OPEN_AT_ONCE = 4
PARTS = 10


class Session:
    """One person's page."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.address = urlencode(LINK)
        self.seed = ""
        self.kept: set[str] = set()
        self.screen: set[bytes] = set()

    async def run(self, seed: float | None = None) -> float:
        """Have the script run, with another seed where one is given; the seconds until it has."""
        message = BackMsg()
        message.rerun_script.query_string = self.address
        message.rerun_script.cached_message_hashes.extend(self.kept)
        if seed is not None:
            message.rerun_script.widget_states.widgets.add(id=self.seed).double_value = seed
        self.screen.clear()
        start = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg.FromString(await asyncio.wait_for(self.socket.recv(), 120))
            if answer.hash and answer.metadata.cacheable:
                self.kept.add(answer.hash)
            if answer.WhichOneof("type") == "delta":
                self.screen.add(answer.delta.SerializeToString())
                if answer.delta.new_element.number_input.label == "Seed":
                    self.seed = answer.delta.new_element.number_input.id
            elif answer.WhichOneof("type") == "page_info_changed":
                self.address = answer.page_info_changed.query_string
            elif answer.WhichOneof("type") == "script_finished" and answer.script_finished in FINISHED:
                return time.perf_counter() - start

    async def change(self, until: float) -> list[float]:
        """Another seed in every period."""
        chance, times = random.Random(id(self)), []
        await asyncio.sleep(chance.random() * PERIOD)
        while time.perf_counter() < until:
            times.append(await self.run(float(chance.randrange(10**6))))
            await asyncio.sleep(max(0.0, PERIOD - times[-1]))
        return times


async def sessions(address: str, n: int, seconds: float) -> list[float]:
    """What each change of the seed took."""
    gate = asyncio.Semaphore(OPEN_AT_ONCE)
    url = f"{address.replace('http', 'ws', 1)}/_stcore/stream"

    async def opened() -> Session:
        async with gate:
            session = Session(await connect(url, subprotocols=PROTOCOLS, max_size=None, compression=None))
            await session.run()
            return session

    every = await asyncio.gather(*(opened() for _ in range(n)))
    until = time.perf_counter() + seconds
    found = await asyncio.gather(*(session.change(until) for session in every))
    for session in every:
        await session.socket.close()
    return [took for times in found for took in times]


async def visits(address: str, n: int) -> None:
    """So many sessions that each open the page, change the seed once, and leave."""
    gate = asyncio.Semaphore(OPEN_AT_ONCE)
    url = f"{address.replace('http', 'ws', 1)}/_stcore/stream"

    async def visit(number: int) -> None:
        async with gate:
            session = Session(await connect(url, subprotocols=PROTOCOLS, max_size=None, compression=None))
            await session.run()
            await session.run(float(number))
            await session.socket.close()

    await asyncio.gather(*(visit(number) for number in range(n)))


async def readers(address: str, n: int, seconds: float) -> list[float]:
    """What each request for the weights of another seed took."""
    until = time.perf_counter() + seconds
    link = {name: text for name, text in LINK.items() if name != "view"}

    def fetch(seed: int) -> float:
        start = time.perf_counter()
        urlopen(f"{address}/pictures/heads?{urlencode(link | {'seed': seed})}", timeout=120).read()
        return time.perf_counter() - start

    async def read(number: int) -> list[float]:
        chance, times = random.Random(number), []
        await asyncio.sleep(chance.random() * PERIOD)
        while time.perf_counter() < until:
            times.append(await asyncio.to_thread(fetch, chance.randrange(10**6)))
            await asyncio.sleep(max(0.0, PERIOD - times[-1]))
        return times

    found = await asyncio.gather(*(read(number) for number in range(n)))
    return [took for times in found for took in times]


def report(name: str, times: Sequence[float], seconds: float, computed: float) -> None:
    """Print what changes took, and what the server computed meanwhile."""
    in_order = sorted(1000 * took for took in times)
    low, middle, high = statistics.quantiles(in_order, n=4)
    slow = in_order[int(0.95 * len(in_order))]
    print(
        f"  {name:<12} {len(times) / seconds:5.1f} a second, median {middle:6.0f} ms "
        f"(quartiles {low:.0f} to {high:.0f}), 95th percentile {slow:.0f} ms; "
        f"computing for one {1000 * computed / len(times):.0f} ms",
        flush=True,
    )


def main() -> None:
    warnings.simplefilter("ignore")
    numbers = [int(word) for word in sys.argv[1:]]
    counts, seconds = (numbers[:1] or [10, 40]), float(numbers[1]) if len(numbers) > 1 else SECONDS
    print(json.dumps(LINK))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, one change a second each, {seconds:.0f} s")
    for n in counts:
        with served() as app:
            time.sleep(5)  # PyTorch is being loaded
            if not seconds:
                memory(app, n)
                continue
            for kind in (sessions, readers):
                before = app.computed()
                times = asyncio.run(kind(app.address, n, seconds))
                report(f"{n} {kind.__name__}", times, seconds, app.computed() - before)


def memory(app: Served, n: int) -> None:
    """Print the memory of the server while sessions come and go."""
    print(f"  resident MiB after 0, {n // PARTS}, ... sessions: {app.resident():.0f}", end="", flush=True)
    for _ in range(PARTS):
        asyncio.run(visits(app.address, n // PARTS))
        print(f" {app.resident():.0f}", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
