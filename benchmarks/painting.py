"""From an act of a person to the painted picture, over a bare DevTools connection.

    python benchmarks/painting.py first            first picture, of a new server and of one that is warm
    python benchmarks/painting.py changes          a changed control of the sidebar
    python benchmarks/painting.py dial             temperature, heads and masks, in their pictures
    python benchmarks/painting.py strokes          a stroke in the Mask lab, and the weights that follow it
    python benchmarks/painting.py choices          another layer, head, cell or token, in the picture of the heads
    python benchmarks/painting.py                  all
    python benchmarks/painting.py changes dial heads:1024 heads:512:12x12     of these views, tokens, layers x heads

There are 2 layers of 8 heads unless others are named. Another clone is measured with ``--folder=PATH``.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from devtools import ROOT, Browser, Page, Served, chromium, phases, served, server, spread

COMPONENTS = {
    "heads": "attention_heads",
    "step": "tensor_grid",
    "compare": "compare_grids",
    "lab": "mask_painter",
}
"""The component that is waited for in each view."""

OPENING = "token_way"
"""The component that is waited for in the view that the page opens with."""


class Case(NamedTuple):
    """A view of a text, and the model that reads it."""

    view: str
    n_tokens: int
    n_layers: int = 2
    n_heads: int = 8

    def __str__(self) -> str:
        model = "" if self[2:] == (2, 8) else f", {self.n_layers} layers of {self.n_heads} heads"
        return f"{self.view} T={self.n_tokens}{model}"


CASES = (Case("heads", 128), Case("heads", 512), Case("step", 128), Case("compare", 512))
DIALS = (*(Case("heads", n_tokens) for n_tokens in (16, 128, 256, 512)), Case("compare", 128), Case("compare", 512))
STROKES = (Case("lab", 16), Case("lab", 64), Case("lab", 128))
CHOSEN_IN = (Case("heads", 128), Case("heads", 512))
N_CHANGES, N_VISITS, N_SERVERS = 20, 12, 4
WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "saw", "that", "every", "other", "one", "had", "gone")
PLUS = "document.querySelector('.st-key-seed [data-testid=stNumberInputStepUp]')"
MOVE_DIAL = """(() => {
  const roots = [...document.querySelectorAll("*")].flatMap((one) => (one.shadowRoot ? [one.shadowRoot] : []));
  const slider = roots.map((root) => root.querySelector(".dial-slider[aria-label=%s]")).find(Boolean);
  slider.value = %d;
  slider.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
})()"""
PRESS_MASK = """(() => {
  const roots = [...document.querySelectorAll("*")].flatMap((one) => (one.shadowRoot ? [one.shadowRoot] : []));
  const masks = roots.flatMap((root) => [...root.querySelectorAll("[data-dial^=mask]")]).at(-1);
  const name = masks.querySelector(`[data-name=${["causal", "strided"][%d %% 2]}]`);
  name.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, composed: true }));
  name.click();
})()"""
TURNED = {
    "Temperature": lambda number: MOVE_DIAL % ("Temperature", number - 11),
    "Heads": lambda number: MOVE_DIAL % ("Heads", 1 + 7 * number % 16),
    "Masks": lambda number: PRESS_MASK % number,
}
"""The controls that are changed in a picture, and the act of each time."""

N_MOVES, MOVE = 240, 0.016
CELLS_A_MOVE = 2.5
PLOT = """(() => {
  const roots = [...document.querySelectorAll("*")].flatMap((one) => (one.shadowRoot ? [one.shadowRoot] : []));
  const plot = roots.map((root) => root.querySelector(".mask-painter .matrix-plot")).find(Boolean);
  plot.scrollIntoView({ block: "center" });
  const { x, y, width } = plot.getBoundingClientRect();
  return { x, y, width };
})()"""
NOTE_STROKE = """(() => {
  const stroke = (window.stroke = { moved: [], asked: [], painted: [], frames: [], isUnderWay: false });
  addEventListener("pointermove", () => stroke.isUnderWay && stroke.moved.push(performance.now()), true);
  const noteIfAsked = (address) => {
    if (stroke.isUnderWay && String(address).includes("pictures/")) stroke.asked.push(performance.now());
  };
  const { fetch } = window;
  window.fetch = (...request) => (noteIfAsked(request[0]), fetch(...request));
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (data) {
    noteIfAsked(data);
    return send.call(this, data);
  };
  addEventListener("headlight:painted", (event) => {
    if (!stroke.isUnderWay || !event.detail.key.endsWith(" heads")) return;
    requestAnimationFrame((frame) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => stroke.painted.push([performance.now(), frame]);
      channel.port2.postMessage(0);
    });
  });
  const frame = () => {
    if (stroke.isUnderWay) stroke.frames.push(performance.now());
    requestAnimationFrame(frame);
  };
  frame();
})()"""
"""Notes when the pointer moved, when weights were asked for, when they were painted, and each frame of the page."""
NOTE_CHOICE = """(() => {
  let requests = 0;
  const real = window.fetch;
  window.fetch = (...request) => {
    requests += 1;
    return real(...request);
  };
  const afterThisTask = (task) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = task;
    channel.port2.postMessage(0);
  };
  window.inside = (selector) => [...document.querySelectorAll("*")]
    .flatMap((one) => (one.shadowRoot ? [...one.shadowRoot.querySelectorAll(selector)] : []));
  const seen = () => JSON.stringify([
    inside(".thumbnail").map((one) => one.ariaSelected),
    inside(".matrix-pixels")[0].toDataURL(),
    inside(".light-cell, .light-row")[0].style.cssText,
    inside(".chip").map((one) => [one.dataset.mark, one.className]),
  ]);
  window.expect = (...kinds) => (window.choice = { kinds, before: seen() });
  const begin = (event) => {
    const { choice, probe } = window;
    if (!choice || choice.begun || !choice.kinds.includes(event.type)) return;
    choice.begun = performance.now();
    const before = { messages: probe.nMessages, requests };
    afterThisTask(() => (choice.handled = performance.now()));
    requestAnimationFrame(() => {
      const frame = performance.now();
      afterThisTask(() => {
        const now = performance.now();
        const isInItsFrame = choice.handled === undefined || choice.handled > frame;
        choice.noted = {
          work: isInItsFrame ? now - choice.begun : choice.handled - choice.begun + now - frame,
          painted: now - event.timeStamp,
          messages: probe.nMessages - before.messages,
          requests: requests - before.requests,
        };
        choice.noted.isNew = seen() !== choice.before;
      });
    });
  };
  for (const kind of ["click", "pointerdown", "pointerover", "pointermove"]) addEventListener(kind, begin, true);
})()"""
"""Notes how long the page worked for an event of the pointer, when it was painted, and what came before that."""
POINTED, CLICKED, PRESSED = ("pointerover", "pointermove"), ("click",), ("pointerdown",)
CHOICES = {
    "another layer": (CLICKED, "inside('.thumbnail')[8 * (number % 2)]"),
    "another head": (CLICKED, "inside('.thumbnail')[number % 8]"),
    "a cell under the pointer": (POINTED, "inside('.matrix-plot')[0]"),
    "a token under the pointer": (POINTED, "inside('.chip')[number % 5]"),
    "a token chosen": (PRESSED, "inside('.chip')[number % 5]"),
}
"""The acts of the pointer, each with its events and its target: another one each time, or another place of it."""
TOLD = 0.6
"""Seconds after which the server has heard of a choice, and the page has its answer."""
MORE = "[...document.querySelectorAll('summary')].find((one) => one.textContent.includes('More'))"


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    wanted = {word for word in words if ":" not in word} or {"first", "changes", "dial", "strokes", "choices"}
    cases = [case_of(word) for word in words if ":" in word]
    folders = [Path(word.removeprefix("--folder=")) for word in sys.argv[1:] if word.startswith("--folder=")]
    folder = folders[0] if folders else ROOT
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {folder.name}", flush=True)
    with chromium() as browser:
        if "first" in wanted:
            first_pictures(browser, folder)
        if "changes" in wanted:
            with served(folder) as one:
                for case in cases or CASES:
                    report_changes(browser, one, case)
        if "dial" in wanted:
            with server(folder) as address:
                for case, name in itertools.product(cases or DIALS, TURNED):
                    print(f"  dial {name}, {case}: {spread(dial(browser, address, case, name))}", flush=True)
        if "strokes" in wanted:
            with server(folder) as address:
                for case in cases or STROKES:
                    waited, between, frames = stroke(browser, address, case)
                    print(f"  stroke {case}, pointer to weights: {spread(waited)}, {slowest(waited)}")
                    print(f"  the same, between two paintings of weights: {spread(between)}, {slowest(between)}")
                    print(f"  the same, frames of the page: {spread(frames)}, {slowest(frames)}", flush=True)
        if "choices" in wanted:
            with server(folder) as address:
                for case in cases or CHOSEN_IN:
                    report_choices(browser, address, case)


def case_of(word: str) -> Case:
    """``heads:1024``, or ``heads:512:12x12``, layers and heads."""
    view, n_tokens, *model = word.split(":")
    return Case(view, int(n_tokens), *(int(number) for size in model for number in size.split("x")))


def stroke(browser: Browser, address: str, case: Case) -> tuple[list[float], list[float], list[float]]:
    """From each move of the pointer to the painted weights that take account of it; between two such paintings; and
    between two frames of the page.

    The hand moves every 16 ms, whatever the page does, and each of its moves paints cells that were open: a change
    is waiting all the time, so that every interval between two paintings of weights counts. A request is under way
    at a time: a move counts until the answer to the first request after it is painted.
    """
    page = Page(browser)
    open_heads(page, address, case)
    page.evaluate(NOTE_STROKE)
    box = page.evaluate(PLOT)
    x, y, cell = box["x"], box["y"], box["width"] / case.n_tokens
    places = [(x + (column + 0.5) * cell, y + (row + 0.5) * cell) for row, column in new_cells(case.n_tokens)]
    page.mouse("mouseMoved", *places[0])
    page.mouse("mousePressed", *places[0])
    time.sleep(0.5)
    page.evaluate("window.stroke.isUnderWay = true")
    begun = time.monotonic()
    for number, place in enumerate(places[1:]):
        page.drag(*place)
        time.sleep(max(0.0, begun + (number + 1) * MOVE - time.monotonic()))
    frames = between(page.evaluate("window.stroke.frames"))
    time.sleep(1)
    noted = page.evaluate("window.stroke")
    page.mouse("mouseReleased", *places[-1])
    page.close()
    painted = list(zip(noted["asked"], (at for at, _ in noted["painted"]), strict=False))
    waited = [next((done - move for start, done in painted if start >= move), None) for move in noted["moved"]]
    seen = {frame: at for at, frame in noted["painted"]}  # of two answers in one frame the later is seen
    return [one for one in waited if one is not None], between(list(seen.values())), frames


def new_cells(n_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield the hand's cell after each move: back and forth along the rows, each of which keeps its last key."""
    n_columns = n_tokens - 1
    step = min(CELLS_A_MOVE, n_tokens * n_columns / N_MOVES)
    for number in range(N_MOVES):
        row, along = divmod(int(number * step), n_columns)
        yield row, along if row % 2 == 0 else n_columns - 1 - along


def between(times: Sequence[float]) -> list[float]:
    """From each to the next."""
    return [later - sooner for sooner, later in itertools.pairwise(times)]


def report_choices(browser: Browser, address: str, case: Case) -> None:
    """From the pointer on something in the picture to the frame that shows it."""
    page = Page(browser)
    open_heads(page, address, case)
    page.evaluate(NOTE_CHOICE)
    for name, (kinds, target) in CHOICES.items():
        noted = [choose(page, kinds, target, number) for number in range(1, N_CHANGES + 3)][2:]
        if not all(one["isNew"] for one in noted):
            raise RuntimeError(f"the first frame after {kinds[0]} ({name}) was no other picture")
        messages, requests = (sum(one[kind] for one in noted) for kind in ("messages", "requests"))
        work, painted = ([one[kind] for one in noted] for kind in ("work", "painted"))
        print(f"  {case}, {name}: work {spread(work, 1)}; before it is painted")
        print(f"    {spread(painted, 1)}, {messages} messages come and {requests} requests go", flush=True)
    page.close()


def choose(page: Page, kinds: Sequence[str], target: str, number: int) -> dict[str, float]:
    """Send one event to a target, and return what is noted of it."""
    left, top, width, height = page.evaluate(
        f"((number) => {{ const one = {target}; one.scrollIntoView({{block: 'nearest'}});"
        f" const box = one.getBoundingClientRect(); return [box.x, box.y, box.width, box.height] }})({number})"
    )
    along = 0.2 + 0.6 * (7 * number % 23) / 23  # never twice in a row on one cell
    x, y = left + width * along, top + height * along
    if kinds != POINTED:
        page.mouse("mouseMoved", x, y)
        time.sleep(0.1)
        page.evaluate(f"void window.expect(...{list(kinds)})")
        page.mouse("mousePressed", x, y)
        page.mouse("mouseReleased", x, y)
    else:
        page.evaluate(f"void window.expect(...{list(kinds)})")
        page.mouse("mouseMoved", x, y)
    page.wait("window.choice.noted?.isNew !== undefined", 10)
    noted: dict[str, float] = page.evaluate("window.choice.noted")
    time.sleep(0.1 if kinds == POINTED else TOLD)
    page.wait("performance.now() - (probe.received.at(-1)?.at ?? 0) > 300")
    return noted


def slowest(times: Sequence[float]) -> str:
    """The 95th percentile."""
    return f"95th percentile {sorted(times)[int(0.95 * len(times))]:.0f} ms"


def dial(browser: Browser, address: str, case: Case, name: str) -> list[float]:
    """From an act on a dial to the painted weights."""
    painted = f"window.probe.painted.{COMPONENTS[case.view]}"
    page = Page(browser)
    open_heads(page, address, case)
    moves = []
    for number in range(N_CHANGES + 2):
        page.evaluate("window.probe.painted = {}")
        page.evaluate(TURNED[name](number))
        page.wait(painted)
        moves.append(page.evaluate(f"{painted} - window.probe.acted"))
        time.sleep(0.6 if name == "Masks" else 0.2)  # the layers that are not shown; a press is told at once
    page.close()
    return moves[2:]


def first_pictures(browser: Browser, folder: Path) -> None:
    """From asking for the address to the picture, of the first visitor and of later ones."""
    waited, first, later = [], [], []
    for _ in range(N_SERVERS):
        started = time.monotonic()
        with server(folder) as address:
            first.append(first_picture(browser, address))
            waited.append(1000 * (time.monotonic() - started))
            later += [first_picture(browser, address) for _ in range(N_VISITS // N_SERVERS)]
    print(f"  first picture, from the start of a server: {spread(waited)}")
    print(f"  first picture, first visitor of a server:  {spread(first)}")
    print(f"  first picture, later visitors:             {spread(later)}", flush=True)


def first_picture(browser: Browser, address: str) -> float:
    page = Page(browser)
    page.go(address)
    page.wait(f"window.probe?.painted.{OPENING}")
    painted: float = page.evaluate(f"window.probe.painted.{OPENING}")
    page.close()
    return painted


def report_changes(browser: Browser, server: Served, case: Case) -> None:
    """From the pointer on the step of the seed to the picture: how long, in which phases, and what was sent."""
    component = COMPONENTS[case.view]
    page = Page(browser)
    opened = open_heads(page, server.address, case)
    page.wait(MORE)
    page.click(MORE)
    page.wait(PLUS)
    time.sleep(1)
    times, found = [], []
    for number in range(N_CHANGES + 2):
        page.evaluate("window.probe.painted = {}; performance.clearResourceTimings()")
        if number == 2:
            page.evaluate("window.probe.bytes = window.probe.nMessages = 0")
        page.click(PLUS)
        page.wait(f"window.probe.painted.{component}")
        time.sleep(0.4)  # what comes after the picture
        times.append(page.evaluate(f"window.probe.painted.{component} - window.probe.acted"))
        found.append(page.evaluate(f"window.probe.phases({component!r})"))
    sent, n_messages = (each / N_CHANGES for each in page.evaluate("[probe.bytes, probe.nMessages]"))
    print(f"  {case}: {spread(times[2:])}, {sent / 1000:.0f} kB in {n_messages:.0f} messages a change")
    print(f"    opened in {opened:.0f} ms; the server takes {server.resident():.0f} MiB")
    print(f"    {phases(found[2:])}", flush=True)
    page.close()


def open_heads(page: Page, address: str, case: Case) -> float:
    """Open a view; the milliseconds until it is painted."""
    text = " ".join(itertools.islice(itertools.cycle(WORDS), case.n_tokens))
    link = {
        "architecture": "encoder",
        "text": text,
        "n_layers": case.n_layers,
        "n_heads": case.n_heads,
        "d_model": 16 * case.n_heads,
        "weights": "random",
        "view": case.view,
    }
    page.go(f"{address}/?{urlencode(link)}")
    page.wait(f"window.probe?.painted.{COMPONENTS[case.view]}")
    painted: float = page.evaluate(f"window.probe.painted.{COMPONENTS[case.view]}")
    time.sleep(1)
    return painted


if __name__ == "__main__":
    main()
