"""The time that the browser takes to draw heads that it has already received: no server, no Streamlit, no model.

    python benchmarks/drawing.py                  this folder's pictures
    python benchmarks/drawing.py --folder=PATH    those of another clone

Two numbers of each case, the least of some rounds in milliseconds: until the call returns, after which the browser
paints, and until nothing waits any more. The weights are random: drawing costs the same whatever they say.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from pathlib import Path

from devtools import CHROMIUM, ROOT

N_LAYERS, N_HEADS = 12, 8
N_TOKENS = (64, 192, 256, 512)
N_ROUNDS = 12

PAGE = """<!doctype html><meta charset="utf-8"><body style="--hl-background: #fff; --hl-text: #000">
<style>{style}</style><div class="headlight" style="width: 1000px"></div>
<script type="text/plain">{data}</script><script type="module">{script}</script>"""
ENTRY = """
import {{ render }} from "./attention_heads/element.js";
const whenNothingWaits = () => new Promise((done) => scheduler.postTask(done, {{ priority: "background" }}));
const binary = atob(document.querySelector("script").textContent);
const read = () => Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
const root = document.querySelector(".headlight");
const host = {{ colors: {colors}, send: () => {{}}, keep: () => {{}} }};

async function timed(action) {{
  const start = performance.now();
  action();
  const returned = performance.now();
  await whenNothingWaits();
  return [returned - start, performance.now() - start];
}}

const least = (times) => [0, 1].map((i) => Math.min(...times.map((pair) => pair[i])));

window.measure = async (rounds) => {{
  const picture = render(root, read(), host);
  await whenNothingWaits();
  const other = root.querySelectorAll(".layer-step");
  const [updates, layers] = [[], []];
  for (let round = 0; round < rounds; round++) {{
    const bytes = read();
    updates.push(await timed(() => picture.update(bytes)));
    layers.push(await timed(() => other[round % 2 === 0 ? 1 : 0].click()));
  }}
  return {{ "new numbers": least(updates), "another layer": least(layers) }};
}};
"""


def main() -> None:
    folders = [Path(word.removeprefix("--folder=")) for word in sys.argv[1:] if word.startswith("--folder=")]
    folder = folders[0] if folders else ROOT
    sys.path.insert(0, str(folder))
    from playwright.sync_api import sync_playwright

    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {N_LAYERS} layers of {N_HEADS} heads")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for n_tokens in N_TOKENS:
            file = Path(temporary) / f"{n_tokens}.html"
            file.write_text(page(n_tokens), encoding="utf-8")
            opened = browser.new_page(viewport={"width": 1280, "height": 720})
            opened.goto(file.as_uri())
            for name, (returned, done) in opened.evaluate(f"measure({N_ROUNDS})").items():
                print(f"  T={n_tokens} {name}: {returned:.1f} ms, {done:.1f} ms until nothing waits", flush=True)
            opened.close()
        browser.close()


def page(n_tokens: int) -> str:
    """The heads of a model under a causal mask."""
    import numpy as np

    from visualizer import colors
    from visualizer.components.attention_heads.element import attention_heads
    from visualizer.components.axis import Axis
    from visualizer.components.looks import Looks
    from visualizer.components.modules import module_text, style_sheet

    blocked = np.triu(np.ones((n_tokens, n_tokens), np.uint8), 1)
    scores = np.random.default_rng(0).normal(size=(N_LAYERS, N_HEADS, n_tokens, n_tokens)).astype(np.float32) * 3
    weights = np.exp(scores) * (1 - blocked)
    weights /= weights.sum(-1, keepdims=True)
    labels = tuple(f"w{index}" for index in range(n_tokens))
    picture = attention_heads(
        weights,
        blocked=blocked[None, None],
        blocked_by=("causal",),
        rows=Axis("query", labels, "source"),
        columns=Axis("key", labels, "source"),
        head_names=[[""] * N_HEADS] * N_LAYERS,
        layer=0,
        head=0,
        looks=Looks(),
        key="heads",
    )
    folder = Path(attention_heads.__code__.co_filename).parent.parent
    entry = ENTRY.format(colors=json.dumps(colors.as_json()))
    return PAGE.format(
        style=style_sheet(entry, folder),
        data=base64.b64encode(picture.data).decode(),
        script=module_text(entry, folder),
    )


if __name__ == "__main__":
    main()
