"""Other tools beside this one, on the same machine: pictures until painted with their bytes, and recording a pass.

    python benchmarks/beside.py            all
    python benchmarks/beside.py pictures   the pictures alone
    python benchmarks/beside.py recording  recording alone

What is not installed is skipped with the reason. The pictures are of the same weights, those that the app has for a
text. BertViz (``head_view``), CircuitsVis (``attention_heads``) and TransformerLens, below version 4, are packages
of this benchmark alone. The libraries that BertViz's page loads from other hosts are fetched with ``npm`` and come
from the disk, which is faster than any host. CircuitsVis' page is the one that it makes for a machine that has no
network, with its script inside.
"""

from __future__ import annotations

import importlib
import io
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "saw", "that", "every", "other", "one", "had", "gone")
LAYERS, HEADS, WIDTH, HIDDEN = 2, 8, 128, 512
LENGTHS = (16, 64, 128, 512)
REPEATS = 15
VISITS = 5
PATIENCE = 30

LIBRARIES = {
    "require.min.js": ("requirejs@2.3.6", "require.js"),
    "d3.min.js": ("d3@5.7.0", "dist/d3.min.js"),
    "jquery.min.js": ("jquery@2.1.0", "dist/jquery.min.js"),
}
"""By the name of a file that a page asks for: its package, and the file in that. Of jQuery 2.0.0 there is none."""


def main() -> None:
    torch.set_num_threads(1)
    wanted = set(sys.argv[1:]) or {"pictures", "recording"}
    print(f"PyTorch {torch.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{LAYERS} layers of {HEADS} heads", flush=True)
    if "pictures" in wanted:
        draw()
    if "recording" in wanted:
        record_ours()
        record_theirs()


def package(name: str) -> Any:
    """A package, or None with a line that says why."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - a package that is broken on this machine is skipped like one that is not there
        print(f"  {name}: skipped, {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
        return None


def tokens(n_tokens: int) -> list[str]:
    return list(itertools.islice(itertools.cycle(WORDS), n_tokens))


def link(n_tokens: int) -> str:
    """The parameters of the app's link."""
    return urlencode(
        {
            "architecture": "decoder",
            "text": " ".join(tokens(n_tokens)),
            "n_heads": HEADS,
            "d_model": WIDTH,
            "n_layers": LAYERS,
            "weights": "random",
            "view": "heads",
        }
    )


def weights_of(address: str, n_tokens: int) -> torch.Tensor:
    """The weights that the app has for a link, (L, H, T, T)."""
    data = urlopen(f"{address}/numbers/decoder.self_attention.weights.npy?{link(n_tokens)}").read()
    return torch.from_numpy(np.load(io.BytesIO(data))).reshape(LAYERS, HEADS, n_tokens, n_tokens)


def bertviz_page(weights: torch.Tensor, names: list[str]) -> str:
    from bertviz import head_view

    page = head_view([layer[None] for layer in weights], names, html_action="return")
    return f"<!doctype html><meta charset=utf-8><body>{page.data}</body>"


def circuitsvis_page(weights: torch.Tensor, names: list[str]) -> str:
    from circuitsvis.attention import attention_heads

    titles = [f"L{layer}H{head}" for layer in range(LAYERS) for head in range(HEADS)]
    page = attention_heads(weights.flatten(0, 1), names, attention_head_names=titles)
    return f"<!doctype html><meta charset=utf-8><body>{page.local_src}</body>"


def own_page(weights: torch.Tensor, names: list[str]) -> str:
    from visualizer.components.attention_heads.element import attention_heads
    from visualizer.components.axis import Axis
    from visualizer.components.looks import Looks
    from visualizer.components.page import page

    picture = attention_heads(
        weights.numpy(),
        blocked=None,
        blocked_by=(),
        rows=Axis("query", tuple(names), "source"),
        columns=Axis("key", tuple(names), "source"),
        head_names=[[""] * HEADS] * LAYERS,
        layer=0,
        head=0,
        looks=Looks(),
        key="heads",
    )
    return page([("Heads", picture)], title="Heads")


@dataclass(frozen=True)
class Tool:
    """A maker of pages, the package that it needs, and the expression that is true once its picture is drawn."""

    name: str
    package: str
    page: Callable[[torch.Tensor, list[str]], str]
    drawn: str


OWN = "window.probe.painted.attention_heads"
LINES = "document.querySelector('svg #attention line')"
CANVASES = """[...document.querySelectorAll("canvas")].filter(({ width, height }) => width && height)
  .filter((one) => one.getContext("2d").getImageData(one.width / 2, one.height / 2, 9, 9).data.some(Boolean))
  .length > 16"""
TOOLS = (
    Tool("BertViz head_view", "bertviz", bertviz_page, LINES),
    Tool("CircuitsVis attention_heads", "circuitsvis", circuitsvis_page, CANVASES),
    Tool("Headlight, a page", "visualizer", own_page, OWN),
)

PAINTED = """new Promise((done) => {
  const look = () => {
    if (!(%s)) return requestAnimationFrame(look);
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => done(performance.now());
      channel.port2.postMessage(0);
    });
  };
  look();
})"""
"""The time at which the first frame with the picture was painted, in milliseconds since the page was asked for."""
LOADED = """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((bytes, one) => bytes + one.encodedBodySize, window.probe.bytes)"""


def draw() -> None:
    """Print of each tool and of the app the bytes of the page, and how long a browser takes to paint it."""
    from devtools import Page, chromium, server

    with tempfile.TemporaryDirectory() as folder, server() as address, chromium() as browser:
        files = libraries(Path(folder))
        tools = [tool for tool in TOOLS if package(tool.package) is not None]

        def visit(url: str, drawn: str) -> tuple[float, float]:
            page = Page(browser)
            page.answer(files)
            page.go(url)
            try:
                at = page.evaluate(PAINTED % drawn, seconds=PATIENCE)
                return at, page.evaluate(LOADED)
            finally:
                page.close()

        for n_tokens in LENGTHS:
            weights = weights_of(address, n_tokens)
            for tool in tools:
                started = time.perf_counter()
                html = tool.page(weights, tokens(n_tokens))
                made = 1000 * (time.perf_counter() - started)
                file = Path(folder) / "page.html"
                file.write_text(html, encoding="utf-8")
                said = f"  T={n_tokens} {tool.name}: {len(html.encode()) / 1e6:.2f} MB, made in {made:.0f} ms"
                report(said, lambda tool=tool, file=file: visit(file.as_uri(), tool.drawn)[0])
            sizes: list[float] = []
            app = f"{address}/?{link(n_tokens)}"
            report(f"  T={n_tokens} Headlight, the app", lambda app=app, sizes=sizes: noted(visit(app, OWN), sizes))
            if sizes:
                print(f"    {statistics.median(sizes) / 1e6:.2f} MB until then")


def noted(visited: tuple[float, float], sizes: list[float]) -> float:
    painted, size = visited
    sizes.append(size)
    return painted


def report(said: str, visit: Callable[[], float]) -> None:
    """Print when a page is painted: the median of some visits."""
    from devtools import spread

    try:
        print(f"{said}, painted after {spread([visit() for _ in range(VISITS)])}", flush=True)
    except TimeoutError:
        print(f"{said}, not painted in {PATIENCE} s", flush=True)


def libraries(folder: Path) -> dict[str, bytes]:
    """The libraries that pages load, by the names of their files; none without npm."""
    npm = shutil.which("npm")
    if npm is None:
        print("  no npm: pages that load libraries are not painted")
        return {}
    names = [name for name, _ in LIBRARIES.values()]
    subprocess.run([npm, "install", "--silent", "--no-save", "--ignore-scripts", *names], cwd=folder, check=True)
    print(f"  from the disk, and not from their hosts: {', '.join(names)}", flush=True)
    installed = folder / "node_modules"
    return {file: (installed / name.split("@")[0] / path).read_bytes() for file, (name, path) in LIBRARIES.items()}


def ratio(name: str, plain: Callable[[], object], recording: Callable[[], object]) -> None:
    """Print how long a pass takes by itself and recorded, in turn."""
    times: dict[Callable[[], object], list[float]] = {plain: [], recording: []}
    with torch.inference_mode():
        for number in range(REPEATS + 3):
            for one in times:
                started = time.perf_counter()
                one()
                if number >= 3:
                    times[one].append(1000 * (time.perf_counter() - started))
    alone, recorded = (statistics.median(of_one) for of_one in times.values())
    print(f"  {name}: {alone:.1f} ms, recorded {recorded:.1f} ms, ratio {recorded / alone:.2f}", flush=True)


def record_ours() -> None:
    """Recording of our model."""
    from model import Transformer, TransformerConfig, record

    config = TransformerConfig("decoder", 100, d_model=WIDTH, n_heads=HEADS, d_ff=HIDDEN, n_layers=LAYERS)
    model = Transformer(config).eval()
    for n_tokens in LENGTHS:
        ids = torch.arange(n_tokens)[None] % 100

        def recorded(ids: torch.Tensor = ids) -> None:
            with record(model):
                model(ids)

        ratio(f"record, T={n_tokens}", lambda ids=ids: model(ids), recorded)  # type: ignore[misc]


def record_theirs() -> None:
    """Recording of a model of the same size by TransformerLens."""
    if package("transformer_lens") is None:
        return
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError as error:
        print(f"  transformer_lens: skipped, this needs a version below 4: {str(error).splitlines()[0]}")
        return
    config = HookedTransformerConfig(
        n_layers=LAYERS,
        d_model=WIDTH,
        n_ctx=512,
        d_head=WIDTH // HEADS,
        n_heads=HEADS,
        d_mlp=HIDDEN,
        d_vocab=100,
        act_fn="relu",
    )
    model = HookedTransformer(config)
    for n_tokens in LENGTHS:
        ids = torch.arange(n_tokens)[None] % 100
        ratio(
            f"TransformerLens run_with_cache, T={n_tokens}",
            lambda ids=ids: model(ids),  # type: ignore[misc]
            lambda ids=ids: model.run_with_cache(ids),  # type: ignore[misc]
        )


if __name__ == "__main__":
    main()
