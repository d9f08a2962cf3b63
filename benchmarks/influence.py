"""The time and the memory that it takes to measure the influence of every token on every output.

    python benchmarks/influence.py              texts of 16, 32, 64 and 128 tokens
    python benchmarks/influence.py 64 256       texts of these lengths

The model is the one that the app opens with, under a causal mask; every token of the text is another word.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from model import TransformerConfig  # noqa: E402 - the project is not installed
from model.analysis.influence import measure_dependence, measure_influence  # noqa: E402
from model.masks import causal  # noqa: E402
from model.sources.weights import build_model  # noqa: E402
from visualizer.settings.settings import Settings  # noqa: E402

LENGTHS = (16, 32, 64, 128)
SECONDS = 15
"""For how long a measurement is repeated; it is made twice at least."""


def main() -> None:
    torch.set_num_threads(1)  # as the app does
    lengths = [int(length) for length in sys.argv[1:]] or LENGTHS
    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}, {os.cpu_count()} cores\n")
    measure(8)  # what is loaded at the first use
    for n_tokens in lengths:
        measure(n_tokens)


def measure(n_tokens: int) -> None:
    """Print the times and the memory for one length."""
    chosen = Settings()
    config = TransformerConfig(
        chosen.architecture,
        vocab_size=n_tokens,
        d_model=chosen.d_model,
        n_heads=chosen.n_heads,
        d_ff=chosen.d_ff,
        n_layers=chosen.n_layers,
    )
    model = build_model(config, chosen.weights, chosen.seed).requires_grad_(False)
    run = partial(model, torch.arange(n_tokens)[None], source_mask=causal(n_tokens, n_tokens))
    before = peak_megabytes()
    print(f"T={n_tokens:3}, d_model={chosen.d_model}, {chosen.n_heads} heads, {chosen.n_layers} layers")
    report("the norms of every Jacobian", lambda: measure_influence(model, run))
    report(
        "dependence alone, every stage", lambda: measure_dependence(model, run, torch.Generator().manual_seed(0))
    )
    print(f"  peak of memory {peak_megabytes():.0f} MB, {peak_megabytes() - before:.0f} MB above that before")


def report(name: str, work: Callable[[], object]) -> None:
    """Print how long something takes, by the clock and by the processors."""
    elapsed, computing = [], []
    while len(elapsed) < 2 or sum(elapsed) < SECONDS:
        start, start_computing = time.perf_counter(), time.process_time()
        work()
        elapsed.append(time.perf_counter() - start)
        computing.append(time.process_time() - start_computing)
    print(
        f"  {name:30} min {min(elapsed):6.2f} s, median {statistics.median(elapsed):6.2f} s,"
        f" first {elapsed[0]:6.2f} s; processor time {min(computing):6.2f} s ({len(elapsed)} times)"
    )


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
