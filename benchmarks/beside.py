"""Other tools beside this one, on the same machine: pictures until painted with their bytes, and recording a pass.

    python benchmarks/beside.py            what is installed; the rest is skipped with the reason

BertViz (``head_view``) and CircuitsVis draw the same weights, random ones of 2 layers of 8 heads (CircuitsVis: of
one layer), as a page of their own. They and TransformerLens, below version 4, are packages of this benchmark alone.
The pages of both load libraries from other hosts: without these nothing is painted, and what is left to say is how
large they are.
"""

from __future__ import annotations

import importlib
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "saw", "that", "every", "other", "one", "had", "gone")
LAYERS, HEADS, WIDTH, HIDDEN = 2, 8, 128, 512
LENGTHS = (16, 64, 128)
REPEATS = 15
PATIENCE = 8


def main() -> None:
    torch.set_num_threads(1)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {LAYERS} layers of {HEADS} heads")
    for name, page in (("bertviz", bertviz_page), ("circuitsvis", circuitsvis_page), ("headlight", own_page)):
        draw(name, page)
    record_ours()
    record_theirs()


def package(name: str) -> Any:
    """A package, or None with a line that says why."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # a package that is broken on this machine is skipped like one that is not there
        print(f"  {name}: skipped, {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
        return None


def weights(n_tokens: int) -> torch.Tensor:
    """Causal weights of random scores, (L, H, T, T)."""
    scores = torch.randn(LAYERS, HEADS, n_tokens, n_tokens, generator=torch.Generator().manual_seed(0))
    return scores.masked_fill(torch.ones(n_tokens, n_tokens).triu(1).bool(), float("-inf")).softmax(-1)


def tokens(n_tokens: int) -> list[str]:
    return list(itertools.islice(itertools.cycle(WORDS), n_tokens))


def bertviz_page(n_tokens: int) -> str | None:
    if package("bertviz") is None:
        return None
    from bertviz import head_view

    attention = [layer[None] for layer in weights(n_tokens)]
    page = head_view(attention, tokens(n_tokens), html_action="return")
    return f"<!doctype html><meta charset=utf-8><body>{page.data}</body>"


def circuitsvis_page(n_tokens: int) -> str | None:
    if package("circuitsvis") is None:
        return None
    from circuitsvis.attention import attention_heads

    page = attention_heads(weights(n_tokens)[0], tokens(n_tokens))  # it draws one layer
    return f"<!doctype html><meta charset=utf-8><body>{page}</body>"


def own_page(n_tokens: int) -> str:
    from visualizer.components.attention_heads.element import attention_heads
    from visualizer.components.axis import Axis
    from visualizer.components.looks import Looks
    from visualizer.components.page import page

    names = tuple(tokens(n_tokens))
    picture = attention_heads(
        weights(n_tokens).numpy(),
        blocked=None,
        blocked_by=(),
        rows=Axis("query", names, "source"),
        columns=Axis("key", names, "source"),
        head_names=[[""] * HEADS] * LAYERS,
        layer=0,
        head=0,
        looks=Looks(),
        key="heads",
    )
    return page([("Heads", picture)], title="Heads")


PAINTED = "document.querySelectorAll('svg line, svg rect, canvas, img').length > 0"


def draw(name: str, page_of_tool: Callable[[int], str | None]) -> None:
    """Print the bytes of a tool's page, and how long a browser takes to paint it."""
    from devtools import Page, chromium

    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        for n_tokens in LENGTHS:
            started = time.perf_counter()
            html = page_of_tool(n_tokens)
            made = 1000 * (time.perf_counter() - started)
            if html is None:
                return
            file = Path(folder) / f"{name}_{n_tokens}.html"
            file.write_text(html, encoding="utf-8")
            page = Page(browser)
            page.go(file.as_uri())
            deep = PAINTED.replace("document.", "root.")
            roots = (
                "[document, ...[...document.querySelectorAll('*')].flatMap((one) => one.shadowRoot ?? [])]"
                f".some((root) => {deep})"
            )
            try:
                page.wait(roots, PATIENCE)
                painted = page.evaluate(
                    "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
                )
                said = f"painted after {painted:.0f} ms"
            except TimeoutError:
                said = f"not painted in {PATIENCE} s: what it loads from other hosts did not come"
            page.close()
            print(f"  {name} T={n_tokens}: {len(html) / 1e6:.2f} MB, made in {made:.0f} ms, {said}", flush=True)


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
    for n_tokens in (16, 128, 512):
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
    for n_tokens in (16, 128, 512):
        ids = torch.arange(n_tokens)[None] % 100
        ratio(
            f"TransformerLens run_with_cache, T={n_tokens}",
            lambda ids=ids: model(ids),  # type: ignore[misc]
            lambda ids=ids: model.run_with_cache(ids),  # type: ignore[misc]
        )


if __name__ == "__main__":
    main()
