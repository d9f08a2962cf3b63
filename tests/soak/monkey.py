"""A monkey with two browsers: it clicks, types and goes back at random, and compares with a page loaded anew.

``python -m tests.soak.monkey --acts 10000 --seed 1`` runs it for long. After each burst of acts a page must show
what its address shows when it is opened by somebody else: the same numbers, controls and words. Whatever differs,
and each error of the page or the server, is printed with the acts that led to it, and written to a file that
``--replay`` takes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import mkdtemp

from playwright.sync_api import Browser, CDPSession, ConsoleMessage, Error, Page, Request, WebSocket

from tests.browser.conftest import APP, has_error, load, served
from tests.browser.headlight_page import PROBE
from tests.pages import chromium, fresh_context
from tests.soak.acts import LINKS, Act, choose, perform
from tests.soak.line import slow_line
from tests.soak.screens import bring_to_rest, read, unless_left

PAGES = 2
FEWEST, MOST = 8, 25  # acts in a burst
FOLLOWS_A_LINK = 0.3  # how often a burst begins with a link that somebody sent
CATCHES_UP = 30  # seconds within which two pages that rest come to show the same
MOST_LINES, WIDEST_LINE = 40, 300  # of what is printed of a burst
LAST_TOLD = 5
EVENT = re.compile(r'"event":.{0,120}')
IN_PAGE = (Path(__file__).parent / "in_page.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Conditions:
    """The browser and the server that the monkey acts on.

    Attributes:
        browser: what opens its pages.
        server: the address that its pages are loaded from.
        direct: the address of the same server for the pages that are compared with: no slow line is before it.
        log: what the server has written.
        slowdown: how many times slower than usual its pages compute.
    """

    browser: Browser
    server: str
    direct: str
    log: Path
    slowdown: float = 1


@dataclass(frozen=True)
class Options:
    """The options of a run of the monkey.

    Attributes:
        acts: how many things it does.
        seed: what they are chosen by.
        replayed: the burst that is done instead, once more; None to choose.
    """

    acts: int
    seed: int
    replayed: Burst | None = None


@dataclass
class Tab:
    """One page, its tools of a developer, what went wrong on it, and the events that it told the server last."""

    page: Page
    tools: CDPSession
    problems: list[str] = field(default_factory=list)
    told: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_TOLD))

    def note_told(self, socket: WebSocket) -> None:
        """Keep the events in what the page sends."""

        def note(frame: bytes | str) -> None:
            text = frame if isinstance(frame, str) else frame.decode(errors="replace")
            self.told.extend(f"told at {time.time():.3f}: {event}" for event in EVENT.findall(text))

        socket.on("framesent", note)

    def slow_down(self, factor: float) -> None:
        """Have the page compute so many times slower than usual."""
        self.tools.send("Emulation.setCPUThrottlingRate", {"rate": factor})

    def load_as_a_stranger(self, server: str, link: str) -> None:
        """Open a link with nothing kept from before but the files of the server."""
        self.tools.send("Storage.clearDataForOrigin", {"origin": server, "storageTypes": "cookies,local_storage"})
        load(self.page, f"{server}{link}")

    def taken_problems(self) -> list[str]:
        """Return the problems since this was last asked."""
        found = [*self.problems]
        self.problems.clear()
        return found


@dataclass(frozen=True)
class Burst:
    """Some acts in a row, and the links on which they begin; "" for a page that stays as it is."""

    links: tuple[str, ...]
    acts: tuple[Act, ...]

    def write(self, path: Path) -> None:
        acts = ",\n".join(json.dumps(act.to_json(), ensure_ascii=False) for act in self.acts)
        path.write_text(f'{{"links": {json.dumps(self.links)}, "acts": [\n{acts}\n]}}\n', encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Burst:
        """Read a burst from a file.

        Raises:
            ValueError: the file holds no burst.
        """
        found = json.loads(path.read_text(encoding="utf-8"))
        acts = tuple(Act(**{**act, "at": tuple(act.get("at", Act.at))}) for act in found["acts"])
        return Burst(tuple(found["links"]), acts)


@contextmanager
def opened(browser: Browser, server: str) -> Iterator[Tab]:
    """A page of its own that notes whatever goes wrong on it."""
    with fresh_context(browser) as context:
        context.add_init_script(PROBE)
        context.add_init_script(IN_PAGE)
        page = context.new_page()
        tab = Tab(page, context.new_cdp_session(page))
        page.on("websocket", tab.note_told)
        _note_problems(tab, server)
        context.on("page", lambda page: page.close())
        yield tab


_NO_ERRORS = (
    "Download Button source",
    "Cannot rerun script when disconnected from server",
    "Failed to copy text to clipboard",
)
"""Messages that are no errors: of a screen that was left, a page that comes back, one in the background."""


def _note_problems(tab: Tab, server: str) -> None:
    def note_console(message: ConsoleMessage) -> None:
        where = message.location.get("url", "")
        is_known = "/media/" in where or any(text in message.text for text in _NO_ERRORS)
        if message.type == "error" and not is_known:
            tab.problems.append(f"console: {message.text} ({where})")

    def note_request(request: Request) -> None:
        if not request.url.startswith((server, "data:", "blob:")):
            tab.problems.append(f"asked for {request.url}")

    tab.page.on("pageerror", lambda error: tab.problems.append(f"error of the page: {error.stack or error}"))
    tab.page.on("crash", lambda _: tab.problems.append("the page crashed"))
    tab.page.on("console", note_console)
    tab.page.on("request", note_request)


def differences(tab: Tab, other: Tab, conditions: Conditions) -> list[str]:
    """One line for each difference between a page and another on which its address is opened."""
    other.load_as_a_stranger(conditions.direct, tab.page.url.removeprefix(conditions.server))
    bring_to_rest(other.page)
    end = time.monotonic() + CATCHES_UP
    while True:
        mine, theirs = read(tab.page, conditions.server), read(other.page, conditions.direct)
        found = mine.differences(theirs)
        if not found or time.monotonic() > end:
            break
        bring_to_rest(tab.page)
    if found:
        found.insert(0, _pictured(tab.page, other.page, conditions.log.parent))
    return [*found, *(f"on the other page: {problem}" for problem in other.taken_problems())]


def _pictured(page: Page, other: Page, folder: Path) -> str:
    """Save what both pages look like; where it is."""
    number = len(list(folder.glob("*-loaded.png")))
    page.screenshot(path=folder / f"{number}.png")
    other.screenshot(path=folder / f"{number}-loaded.png")
    return f"pictures: {folder / str(number)}.png and -loaded.png"


def problems_of(tabs: Sequence[Tab], other: Tab, conditions: Conditions) -> list[str]:
    """One line for each thing that is wrong after a burst, on pages that rest."""
    found = []
    for number, tab in enumerate(tabs):
        try:
            lines = differences(tab, other, conditions)
            lines += ["an exception is shown"] * tab.page.get_by_test_id("stException").count()
            lines += ["a failure is shown"] * tab.page.get_by_text("The server's log has the cause").count()
        except Error as error:
            lines = [error.message]
        lines += tab.taken_problems()
        if lines:
            found += [f"page {number}, {tab.page.url}:", *_shortened(lines), *tab.told]
    return found


def burst(random: Random, n_acts: int, tabs: Sequence[Tab], conditions: Conditions) -> Iterator[Act]:
    """Do some acts on the pages in turn, as they come; each is named before it is done."""
    for _ in range(n_acts):
        number = random.randrange(len(tabs))
        page = tabs[number].page
        act = Act(number, "wheel")
        with unless_left():
            act = choose(random, number, page)
        yield act
        with unless_left():
            perform(act, page, conditions.server)


def replay(acts: Sequence[Act], tabs: Sequence[Tab], conditions: Conditions) -> Iterator[Act]:
    """Do the same once more."""
    for act in acts:
        yield act
        with unless_left():
            perform(act, tabs[act.page].page, conditions.server)


def _begin(links: Sequence[str], tabs: Sequence[Tab], conditions: Conditions) -> tuple[str, ...]:
    """Open the links; the addresses from which all begin."""
    for link, tab in zip(links, tabs, strict=True):
        if link or not tab.page.url.startswith(conditions.server):
            load(tab.page, f"{conditions.server}/?{link}")
    return tuple(tab.page.url.partition("?")[2] for tab in tabs)


@contextmanager
def slowed(tabs: Sequence[Tab], factor: float) -> Iterator[None]:
    """Have pages compute so many times slower than usual, until all that was done on them is shown."""
    for tab in tabs:
        tab.slow_down(factor)
    yield
    for tab in tabs:
        bring_to_rest(tab.page)
    for tab in tabs:
        tab.slow_down(1)


def run(options: Options, conditions: Conditions) -> int:
    """Run until all acts are done; how many bursts led to something that is wrong."""
    done = failed = number = 0
    with ExitStack() as pages:
        tabs: list[Tab] = []
        while done < options.acts:
            begun = time.monotonic()
            if not tabs:
                tabs = [pages.enter_context(opened(conditions.browser, conditions.server)) for _ in range(PAGES)]
                other = pages.enter_context(opened(conditions.browser, conditions.direct))
            random = Random(f"{options.seed} {number}")
            left = options.acts - done
            n_acts = left if options.replayed else min(random.randint(FEWEST, MOST), left)
            acted, found = _burst_and_problems(options, random, n_acts, tabs, other, conditions)
            done += n_acts
            if found:
                failed += 1
                path = conditions.log.parent / f"burst-{options.seed}-{number}.json"
                acted.write(path)
                print(f"\nburst {number} of seed {options.seed}; --replay {path}", *found, sep="\n")
                pages.close()
                tabs = []
            print(f"{done} acts, {failed} bursts failed, {time.monotonic() - begun:.1f} s", flush=True)
            number += 1
    return failed


def _burst_and_problems(
    options: Options, random: Random, n_acts: int, tabs: Sequence[Tab], other: Tab, conditions: Conditions
) -> tuple[Burst, list[str]]:
    """Return the burst of acts that was done, and the problems that came of it."""
    n_bytes = conditions.log.stat().st_size
    links = [random.choice(LINKS) if random.random() < FOLLOWS_A_LINK else "" for _ in tabs]
    begun = tuple(links)
    acts: list[Act] = []
    try:
        with slowed(tabs, conditions.slowdown):
            begun = _begin(options.replayed.links if options.replayed else links, tabs, conditions)
            again = options.replayed and replay(options.replayed.acts, tabs, conditions)
            acts.extend(again or burst(random, n_acts, tabs, conditions))  # keeps those before an error
        found = problems_of(tabs, other, conditions)
    except Error as error:
        found = [error.message]
    log = conditions.log.read_bytes()[n_bytes:].decode(errors="replace")
    if has_error(log):
        found += ["the server's log:", *_shortened(list(dict.fromkeys(log.splitlines())))]
    return Burst(begun, tuple(acts)), found


def _shortened(lines: Sequence[str]) -> list[str]:
    left_out = [f"  ... and {len(lines) - MOST_LINES} lines more"] if len(lines) > MOST_LINES else []
    return [*(f"  {line[:WIDEST_LINE]}" for line in lines[:MOST_LINES]), *left_out]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("tests.soak.monkey", description=__doc__.partition("\n")[0])
    parser.add_argument("--acts", type=int, default=1000, help="how many things it does")
    parser.add_argument("--seed", type=int, default=1, help="the same seed chooses the same on the same screens")
    parser.add_argument("--slow", type=float, default=1, help="how many times slower its pages compute")
    parser.add_argument("--latency", type=float, default=0, help="milliseconds that an answer takes longer")
    parser.add_argument("--replay", type=Path, help="the acts of one burst, as they were written to a file")
    given = parser.parse_args(arguments)
    replayed = Burst.read(given.replay) if given.replay else None
    options = Options(len(replayed.acts) if replayed else given.acts, given.seed, replayed)
    print(f"{options.acts} acts, seed {options.seed}", flush=True)
    os.environ["STREAMLIT_LOGGER_ENABLE_RICH"] = "false"  # a traceback as lines that can be read
    log = Path(mkdtemp(prefix="monkey-")) / "server.txt"
    with chromium() as browser, served(APP, log) as direct, slow_line(direct, given.latency) as server:
        failed = run(options, Conditions(browser, server, direct, log, given.slow))
        print(f"{options.acts} acts, seed {options.seed}: {failed} bursts failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
