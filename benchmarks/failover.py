"""Two servers behind the proxy of ``deploy/``, one of which is killed while many people are on it.

    python benchmarks/failover.py          40 sessions
    python benchmarks/failover.py 10       10 sessions

Printed is how long each session of the dead server took until it had its screen back on the other one, and how many
screens are not what they were. It needs HAProxy (Debian's package ``haproxy``).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlencode
from urllib.request import urlopen

from devtools import ROOT, Served, answering, free_port, served
from load import LINK, PROTOCOLS, Session
from streamlit.proto.Delta_pb2 import Delta
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

RETRY_SECONDS = 0.5
"""The time that a page waits before it asks for a new line, as Streamlit's does at first."""


class Visitor:
    """A person behind the proxy, whose page asks for a new line when the old one is cut."""

    def __init__(self, proxy: str, number: int) -> None:
        self.proxy = proxy
        self.link = urlencode(LINK | {"seed": str(number)})
        with urlopen(f"{proxy}/?{self.link}") as page:
            self.cookie = page.headers["Set-Cookie"].partition(";")[0]

    async def opened(self) -> Session:
        """A line whose script has run for the link."""
        session = Session(
            await connect(
                f"{self.proxy.replace('http', 'ws', 1)}/_stcore/stream",
                additional_headers={"Cookie": self.cookie},
                subprotocols=PROTOCOLS,
                max_size=None,
                compression=None,
            )
        )
        session.address = self.link
        await session.run()
        return session

    async def opened_again(self) -> Session:
        """The same, asked for until there is one."""
        while True:
            try:
                return await self.opened()
            except (OSError, InvalidHandshake, ConnectionClosed):
                await asyncio.sleep(RETRY_SECONDS)


async def kill_under(proxy: str, victim: Served, n: int) -> None:
    """Kill a server under so many sessions, and print what comes of them."""
    visitors = [Visitor(proxy, number) for number in range(n)]
    sessions = [await visitor.opened() for visitor in visitors]
    await asyncio.sleep(random.random())
    os.kill(victim.process, signal.SIGKILL)
    killed = time.perf_counter()

    async def return_of(visitor: Visitor, before: Session) -> tuple[float, bool] | None:
        if not visitor.cookie.endswith("=one"):
            return None
        await before.socket.wait_closed()
        after = await visitor.opened_again()
        return time.perf_counter() - killed, shown(after) == shown(before)

    found = await asyncio.gather(*map(return_of, visitors, sessions))
    moved = [one for one in found if one is not None]
    seconds = sorted(took for took, _ in moved)
    print(
        f"{n} sessions, {len(moved)} of them on the server that was killed: "
        f"back after {statistics.median(seconds):.1f} s (median), {seconds[-1]:.1f} s (last); "
        f"{sum(not is_same for _, is_same in moved)} with another screen"
    )


def shown(session: Session) -> set[bytes]:
    """Return the elements on a page when the script has run, but for those that tell the session from others."""
    changes = map(Delta.FromString, session.screen)
    elements = (change.new_element for change in changes if change.WhichOneof("type") == "new_element")
    return {
        element.SerializeToString()
        for element in elements
        if element.bidi_component.component_name != "headlight_page_keys"
    }


@contextmanager
def proxied(*servers: Served) -> Iterator[str]:
    """The address of the proxy before two servers."""
    address = f"127.0.0.1:{free_port()}"
    places = [server.address.rpartition("/")[2] for server in servers]
    named = dict(zip(("PROXY", "SERVER_ONE", "SERVER_TWO"), (address, *places), strict=True))
    command = ["haproxy", "-db", "-f", str(ROOT / "deploy" / "haproxy.cfg")]
    process = subprocess.Popen(command, env=os.environ | named, stderr=subprocess.DEVNULL)
    try:
        yield answering(f"http://{address}")
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as store, ExitStack() as running:
        os.environ["HEADLIGHT_STORE"] = store
        one, two = (running.enter_context(served()) for _ in range(2))
        asyncio.run(kill_under(running.enter_context(proxied(one, two)), one, n))


if __name__ == "__main__":
    main()
