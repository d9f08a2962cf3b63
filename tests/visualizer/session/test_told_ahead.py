"""What a page is told ahead reaches its own line, in order, and nothing is kept of a line that was closed."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

from visualizer.session import told_ahead
from visualizer.session.told_ahead import listening_to, tell


def test_a_line_hears_what_any_thread_tells_it_and_no_other_does():
    async def heard():
        with listening_to("ours") as ours, listening_to("theirs") as theirs:
            told = Thread(target=lambda: [tell("ours", text) for text in "abc"])
            told.start()
            found = [await asyncio.wait_for(ours.get(), 10) for _ in range(3)]
            told.join()
            return found, theirs.empty()

    with ThreadPoolExecutor() as thread:  # this one may have a loop: Playwright's runs as long as the tests do
        assert thread.submit(lambda: asyncio.run(heard())).result() == (["a", "b", "c"], True)
    assert not told_ahead._listening
    tell("ours", "d")  # nobody listens
