"""Many people at once, each changing something once a second, and as many asking for numbers by their address.

    python benchmarks/load.py              10 and 40 sessions and pupils, and 10 and 40 readers of addresses
    python benchmarks/load.py 10 20        10 sessions for 20 seconds
    python benchmarks/load.py 1000 0       the memory while 1,000 sessions are opened and closed, a few at a time

A session is what a browser has with the server, without the browser: it sends the state of a widget, another seed,
over the page's socket and waits until the script has run. A pupil changes heads, masks and text in turn: the first
two in the picture, whose numbers are fetched and waited for, before the script is told. The client shares the
machine with the server. Printed are the changes in a second, the median, the quartiles and the 95th percentile, and
what the server computes for one change: one interpreter makes no more of them in a second than fit into one.
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
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from devtools import Served, served
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

SECONDS, PERIOD = 20.0, 1.0
LINK = {"view": "heads", "weights": "random", "text": "the cat sat on the mat because the cat was tired"}
EVENTS = "$$STREAMLIT_INTERNAL_KEY_{}__events"
"""Streamlit's name for the events of a component."""

PROTOCOLS = ["streamlit", "PLACEHOLDER_AUTH_TOKEN"]
FINISHED = ForwardMsg.FINISHED_SUCCESSFULLY
OPEN_AT_ONCE = 4
PARTS = 10


class Session:
    """One person's page."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.address = urlencode(LINK)
        self.seed = self.drawer = ""
        self.kept: set[str] = set()
        self.screen: set[bytes] = set()
        self.text = ""
        self.picture = ""
        self.header: dict[str, Any] = {}

    async def run(self, seed: float | None = None, **said: object) -> float:
        """Have the script run, with another seed, text or event of the picture; the seconds until it has."""
        message = BackMsg()
        message.rerun_script.query_string = self.address
        message.rerun_script.cached_message_hashes.extend(self.kept)
        if seed is not None:
            message.rerun_script.widget_states.widgets.add(id=self.drawer).bool_value = True
            if self.seed:  # it is on the page once the drawer is open
                message.rerun_script.widget_states.widgets.add(id=self.seed).double_value = seed
        if "text" in said:
            message.rerun_script.widget_states.widgets.add(id=self.text).string_value = said["text"]
        if "turned" in said:
            told = message.rerun_script.widget_states.widgets.add(id=EVENTS.format(self.picture))
            told.json_trigger_value = json.dumps([{"event": "turned", "value": said["turned"]}])
        self.screen.clear()
        start = time.perf_counter()
        await self.socket.send(message.SerializeToString())
        while True:
            answer = ForwardMsg.FromString(await asyncio.wait_for(self.socket.recv(), 120))
            if answer.hash and answer.metadata.cacheable:
                self.kept.add(answer.hash)
            if answer.WhichOneof("type") == "delta":
                self.screen.add(answer.delta.SerializeToString())
                self.note(answer.delta.new_element)
                self.drawer = answer.delta.add_block.expandable.id or self.drawer
            elif answer.WhichOneof("type") == "page_info_changed":
                self.address = answer.page_info_changed.query_string
            elif answer.WhichOneof("type") == "script_finished" and answer.script_finished == FINISHED:
                return time.perf_counter() - start

    def note(self, element: Element) -> None:
        """Keep what is to be spoken of later."""
        if element.number_input.label == "Seed":
            self.seed = element.number_input.id
        elif element.text_area.label == "Text":
            self.text = element.text_area.id
        elif "-attention_heads" in element.bidi_component.id:
            packed = element.bidi_component.bytes
            self.picture = element.bidi_component.id
            self.header = json.loads(packed[4 : 4 + int.from_bytes(packed[:4], "little")])

    async def turn(self, server: str, name: str, value: object, said: str) -> float:
        """Turn a dial of the picture; the seconds until its numbers are there. Then the script hears of it."""
        others = [dial for dial in self.header["dials"] if dial["name"] != name and dial["name"] != "temperature"]
        kept = [parameter_of(dial) for dial in others]
        start = time.perf_counter()
        await asyncio.to_thread(fetch, f"{server}/{'&'.join([self.header['dial_address'], said, *kept])}")
        took = time.perf_counter() - start
        await self.run(turned={"dial": name, "value": value, "layer": 0, "head": 0, "seq": time.monotonic_ns()})
        return took

    async def learn(self, server: str, until: float) -> list[float]:
        """Heads, masks and text in turn, one of them in every period."""
        chance, times = random.Random(id(self)), []
        await asyncio.sleep(chance.random() * PERIOD)
        while time.perf_counter() < until:
            start = time.perf_counter()
            match len(times) % 3:
                case 0:
                    heads = next(dial for dial in self.header["dials"] if dial["name"] == "n_heads")
                    n_heads = chance.randint(1, 16)
                    times.append(await self.turn(server, "n_heads", n_heads, heads["parameters"][n_heads - 1]))
                case 1:
                    mask = chance.choice(("causal", "strided", "prefix"))
                    times.append(await self.turn(server, "mask", [mask], f"mask={mask}"))
                case _:
                    words = chance.sample(LINK["text"].split(), 9)
                    times.append(await self.run(text=" ".join(words)))
            await asyncio.sleep(max(0.0, PERIOD - (time.perf_counter() - start)))
        return times

    async def change(self, until: float) -> list[float]:
        """Another seed in every period."""
        chance, times = random.Random(id(self)), []
        await asyncio.sleep(chance.random() * PERIOD)
        await self.run(0.0)  # opens the drawer that has the seed
        while time.perf_counter() < until:
            times.append(await self.run(float(chance.randrange(10**6))))
            await asyncio.sleep(max(0.0, PERIOD - times[-1]))
        return times


def parameter_of(dial: dict[str, Any]) -> str:
    """Return the parameter of an address that says where a dial stands."""
    if "offered" in dial:
        return f"{dial['name']}={','.join(dial['value']) or 'none'}"
    named = f"{dial['name']}={dial['value']}"
    return str(dial["parameters"][dial["value"] - dial["least"]]) if dial["parameters"] else named


def fetch(address: str) -> None:
    urlopen(address, timeout=120).read()


async def sessions(address: str, n: int, seconds: float) -> list[float]:
    """Return the seconds that each change of the seed took."""
    return await together(address, n, seconds, lambda session, until: session.change(until))


async def pupils(address: str, n: int, seconds: float) -> list[float]:
    """Return the seconds that each change of heads, masks and text took."""
    return await together(address, n, seconds, lambda session, until: session.learn(address, until))


async def together(
    address: str, n: int, seconds: float, act: Callable[[Session, float], Awaitable[list[float]]]
) -> list[float]:
    """Return the seconds that each act of so many sessions took."""
    gate = asyncio.Semaphore(OPEN_AT_ONCE)
    url = f"{address.replace('http', 'ws', 1)}/_stcore/stream"

    async def opened() -> Session:
        async with gate:
            session = Session(await connect(url, subprotocols=PROTOCOLS, max_size=None, compression=None))
            await session.run()
            return session

    every = await asyncio.gather(*(opened() for _ in range(n)))
    until = time.perf_counter() + seconds
    found = await asyncio.gather(*(act(session, until) for session in every))
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
    """Return the seconds that each request for the weights of another seed took."""
    until = time.perf_counter() + seconds
    link = {name: text for name, text in LINK.items() if name != "view"}

    def timed(seed: int) -> float:
        start = time.perf_counter()
        fetch(f"{address}/pictures/heads?{urlencode(link | {'seed': seed})}")
        return time.perf_counter() - start

    async def read(number: int) -> list[float]:
        chance, times = random.Random(number), []
        await asyncio.sleep(chance.random() * PERIOD)
        while time.perf_counter() < until:
            times.append(await asyncio.to_thread(timed, chance.randrange(10**6)))
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
            for kind in (sessions, pupils, readers):
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
