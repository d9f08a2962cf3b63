"""Attention in JupyterLab: bytes of the output and time until painted, beside BertViz and Inspectus, offline.

    python -m venv /somewhere && /somewhere/bin/pip install jupyterlab bertviz inspectus safetensors
    .venv-test/bin/python -m benchmarks.notebooks /somewhere/bin [folder for pictures]

Each draws the same weights, of 12 layers of 12 heads over 128 tokens. The time is that from opening the notebook
until its output has a picture of some size; the browser reaches no host but JupyterLab's own. Median of three.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from playwright.sync_api import Browser

from tests.pages import chromium

ROOT = Path(__file__).resolve().parents[1]
WEIGHTS = """import torch
scores = 9 * torch.rand(12, 12, 128, 128, generator=torch.Generator().manual_seed(0))
weights = scores.masked_fill(~torch.ones(128, 128).tril().bool(), -torch.inf).softmax(-1)
tokens = [f"w{i}" for i in range(128)]
"""
DRAWN = {
    "headlight": "import headlight\nheadlight.attention(weights, tokens)",
    "bertviz_head_view": "from bertviz import head_view\nhead_view(list(weights[:, None]), tokens)",
    "bertviz_model_view": "from bertviz import model_view\nmodel_view(list(weights[:, None]), tokens)",
    "inspectus": "import inspectus\ninspectus.attention(weights.numpy(), tokens)",
}
HAS_PICTURE = """scope => {
  const root = scope ? document.querySelector(scope) : document;
  const roots = [root, ...[...(root?.querySelectorAll("*") ?? [])].flatMap(({ shadowRoot }) => shadowRoot ?? [])];
  const found = roots.flatMap((one) => [...(one?.querySelectorAll("canvas, svg") ?? [])]);
  return found.some((one) => one.getBoundingClientRect().width > 60 && one.getBoundingClientRect().height > 60);
}"""
OUTPUT = ".jp-OutputArea-output"
LONGEST = 60


def execute(code: str, path: Path, folder: Path) -> int:
    """Write, execute and trust a notebook; the bytes of its output."""
    cell = {"cell_type": "code", "id": "drawn", "metadata": {}, "source": WEIGHTS + code, "outputs": []}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    content = {"cells": [cell | {"execution_count": None}], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for words in (["nbconvert", "--to", "notebook", "--execute", "--inplace", path], ["trust", path]):
        subprocess.run([folder / "jupyter", *words], env=environment, check=True, capture_output=True)
    return len(json.dumps(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["outputs"]).encode())


@contextmanager
def jupyter_lab(folder: Path, notebooks: Path) -> Iterator[str]:
    """The address of a JupyterLab without a token."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", f"--port={port}", "--ServerApp.token=", "--ServerApp.password=", "--allow-root"]
    command = [folder / "jupyter-lab", *options]
    with subprocess.Popen(command, cwd=notebooks, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        address = f"http://127.0.0.1:{port}"
        try:
            wait_for(f"{address}/api")
            yield address
        finally:
            server.terminate()


def wait_for(address: str) -> None:
    for _ in range(240):
        try:
            urlopen(address, timeout=5).close()
        except OSError:
            time.sleep(0.25)
        else:
            return


def painted_after(browser: Browser, address: str, name: str, picture: Path | None) -> float:
    """Seconds from opening a notebook until its output has a picture; infinity where it never has."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.route(lambda url: not url.startswith(address), lambda route: route.abort())
    page = context.new_page()
    start = time.perf_counter()
    page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
    taken = float("inf")
    while (now := time.perf_counter() - start) < LONGEST:
        frames = page.frames[1:]
        if page.evaluate(HAS_PICTURE, OUTPUT) or any(frame.evaluate(HAS_PICTURE, "") for frame in frames):
            taken = now
            break
        page.wait_for_timeout(30)
    if picture:
        page.wait_for_timeout(1000)
        page.screenshot(path=picture)
    context.close()
    return taken


def main(folder: Path, pictures: Path | None) -> None:
    with TemporaryDirectory() as kept, chromium() as browser:
        notebooks = Path(kept)
        sizes = {name: execute(code, notebooks / f"{name}.ipynb", folder) for name, code in DRAWN.items()}
        with jupyter_lab(folder, notebooks) as address:
            for name, size in sizes.items():
                picture = pictures / f"{name}.png" if pictures else None
                times = sorted(painted_after(browser, address, name, picture) for _ in range(3))
                print(f"{name:20} {size / 2**20:6.1f} MiB   painted after {times[1]:5.1f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
