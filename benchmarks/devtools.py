"""A browser on a bare DevTools connection, and a server to look at.

No domain of the protocol is on that watches the network: with it, as test drivers have it, every message of the
page is copied as text through two more processes, which costs more than drawing the picture.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from websockets.sync.client import ClientConnection, connect

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")

PROBE = """
window.probe = {acted: 0, painted: {}, completed: {}, bytes: 0, nMessages: 0, sent: 0, received: [], worker: {}};
const Socket = window.WebSocket;
window.WebSocket = class extends Socket {
  constructor(...options) {
    super(...options);
    this.addEventListener("message", ({ data }) => {
      window.probe.bytes += data.byteLength ?? data.size;
      window.probe.nMessages += 1;
      window.probe.received.push({ at: performance.now(), data });
    });
  }
  send(data) {
    window.probe.sent ||= performance.now();
    return super.send(data);
  }
};
const Beside = window.Worker;
window.Worker = class extends Beside {
  constructor(...options) {
    super(...options);
    this.addEventListener("message", ({ data: { address, bytes } }) => {
      if (!address || bytes === null) return;
      window.probe.worker[bytes ? "the worker has the numbers" : "a worker asks for numbers"] = performance.now();
    });
  }
};
const act = () => Object.assign(window.probe, { acted: performance.now(), sent: 0, received: [], worker: {} });
addEventListener("pointerdown", act, true);
addEventListener("input", act, true);
addEventListener("headlight:painted", (event) => {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      const now = performance.now();
      window.probe.painted[event.detail.component] ??= now; // the new numbers
      window.probe.completed[event.detail.component] = now; // with all that came after them
    };
    channel.port2.postMessage(0);
  });
});
window.probe.phases = async (component) => {
  const { acted, sent, received, worker, painted, completed } = window.probe;
  const texts = await Promise.all(received.map(async ({ data }) => typeof data === "string" ? data :
    new TextDecoder().decode(data instanceof Blob ? await data.arrayBuffer() : data)));
  const first = (name) => received[texts.findIndex((text) => text.includes(name))]?.at;
  const fetched = performance.getEntriesByType("resource")
    .find((one) => one.name.includes("/pictures/") && one.startTime >= acted);
  const found = {
    sent,
    "script begun": received[0]?.at,
    "run computed": first("headlight_token_strip"),
    "message there": first(`headlight_${component}`),
    ...worker,
    ...(fetched && { "page asks for numbers": fetched.requestStart, "its answer there": fetched.responseEnd }),
    painted: painted[component],
    "painted with all that follows": completed[component],
  };
  return Object.fromEntries(Object.entries(found).map(([name, at]) => [name, at - acted]));
};
"""
"""Notes when a person acted, when a component was painted, and what came over the page's socket in between."""


class Browser:
    """One connection to a browser."""

    def __init__(self, address: str) -> None:
        self.socket: ClientConnection = connect(address, max_size=None, compression=None)
        self.count = 0
        self.files: dict[str, bytes] = {}

    def post(self, method: str, session: str | None = None, **parameters: Any) -> int:
        """Have a method of the protocol run, without waiting for what comes of it: the number of the answer."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        self.socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        return self.count

    def call(self, method: str, session: str | None = None, seconds: float = 120, **parameters: Any) -> Any:
        """The result of a method of the protocol."""
        number = self.post(method, session, **parameters)
        end = time.monotonic() + seconds
        while True:
            answer = json.loads(self.socket.recv(timeout=max(0, end - time.monotonic())))
            if answer.get("method") == "Fetch.requestPaused":
                self.fulfil(answer["sessionId"], answer["params"])
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def fulfil(self, session: str, paused: dict[str, Any]) -> None:
        """Answer what a page asks another host for with the file of that name, or let it fail."""
        body = self.files.get(paused["request"]["url"].rpartition("/")[2])
        request = {"requestId": paused["requestId"]}
        if body is None:
            self.post("Fetch.failRequest", session, **request, errorReason="NameNotResolved")
        else:
            said: dict[str, Any] = {"responseCode": 200, "body": base64.b64encode(body).decode("ascii")}
            said |= {"responseHeaders": [{"name": "Content-Type", "value": "text/javascript"}]}
            self.post("Fetch.fulfillRequest", session, **request, **said)


class Page:
    """A page in a context of its own: nothing is kept from earlier ones."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1280, height=1000, deviceScaleFactor=1, mobile=False)
        self.call("Page.addScriptToEvaluateOnNewDocument", source=PROBE)

    def call(self, method: str, **parameters: Any) -> Any:
        return self.browser.call(method, self.session, **parameters)

    def answer(self, files: dict[str, bytes]) -> None:
        """From now on, what is asked of other hosts is answered with files by their names."""
        self.browser.files = files
        self.call("Fetch.enable", patterns=[{"urlPattern": "https://*"}])

    def evaluate(self, script: str, seconds: float = 120) -> Any:
        """The value of a script, or of what it promises.

        Raises:
            TimeoutError: it did not come in time.
        """
        asked = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", seconds=seconds, **asked)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def wait(self, condition: str, seconds: float = 60) -> None:
        """Ask again and again until a condition holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.evaluate(f"!!({condition})"):
                    return
            except RuntimeError:  # the page is just being left
                pass
            time.sleep(0.02)
        raise TimeoutError(condition)

    def click(self, element: str) -> None:
        """Click in the middle of an element."""
        x, y = self.evaluate(
            f"(() => {{ const one = {element}; one.scrollIntoView({{block: 'center'}});"
            " const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] })()"
        )
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def mouse(self, kind: str, x: float, y: float) -> None:
        pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def drag(self, x: float, y: float) -> None:
        """Move the pointer with its button held; a hand does not wait until the page has seen it."""
        place = {"type": "mouseMoved", "x": x, "y": y}
        self.browser.post("Input.dispatchMouseEvent", self.session, **place, button="left", buttons=1)

    def close(self) -> None:
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a folder of its own."""
    folder = tempfile.mkdtemp(prefix="chromium-")
    options = [*FLAGS, "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen([CHROMIUM, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield Browser(address_of(Path(folder) / "DevToolsActivePort"))
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def address_of(file: Path) -> str:
    """Return the address of a browser that has just been started."""
    for _ in range(600):
        lines = file.read_text(encoding="ascii").split("\n") if file.exists() else []
        if len(lines) >= 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.05)
    raise TimeoutError("the browser does not answer")


@dataclass(frozen=True)
class Served:
    """A server that answers: where it is, and the number of its process."""

    address: str
    process: int

    def resident(self) -> float:
        """Its memory that is in use, in MiB."""
        pages = int(Path(f"/proc/{self.process}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def computed(self) -> float:
        """The seconds that it has computed so far, in all its threads."""
        ticks = Path(f"/proc/{self.process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(folder: Path = ROOT) -> Iterator[str]:
    """The address of the app, from the moment at which it answers."""
    with served(folder) as one:
        yield one.address


@contextmanager
def served(folder: Path = ROOT) -> Iterator[Served]:
    """The same with what its process takes."""
    port = free_port()
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield Served(answering(f"http://127.0.0.1:{port}"), process.pid)
    finally:
        process.terminate()
        process.wait(20)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def answering(address: str) -> str:
    """The address of a server, once it answers."""
    for _ in range(1_200):
        try:
            urlopen(f"{address}/_stcore/health", timeout=1).read()
        except OSError:
            time.sleep(0.05)
        else:
            return address
    raise TimeoutError("the server does not answer")


def phases(found: Sequence[dict[str, float]]) -> str:
    """The medians of the phases of several changes, in the order they end, each counted from the one before."""
    names = dict.fromkeys(name for one in found for name in one)
    times = {name: [one[name] for one in found if one.get(name) is not None] for name in names}
    at = sorted((statistics.median(each), name) for name, each in times.items() if 2 * len(each) > len(found))
    before = [0.0, *(time for time, _ in at)]
    return ", ".join(f"{name} +{time - since:.0f}" for (time, name), since in zip(at, before, strict=False))


def spread(times: Sequence[float], digits: int = 0) -> str:
    """The median of some milliseconds, with its quartiles."""
    low, middle, high = (f"{time:.{digits}f}" for time in statistics.quantiles(times, n=4))
    return f"{middle:>6} ms (quartiles {low} to {high}, n={len(times)})"
