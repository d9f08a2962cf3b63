"""What recording costs: a recorded pass over one that is not recorded, for several lengths.

    python benchmarks/recording.py             under the allocator that the app sets
    python benchmarks/recording.py unset       under the machine's own

Both passes take turns on one thread, so that a change of the machine's speed meets both, and what counts is how
long the processor worked for each. Printed are the median of the pairs' ratios and its quartiles.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from model import TransformerConfig, build_masks, record  # noqa: E402 - the project is not installed
from model.masks import MaskInputs  # noqa: E402
from model.sources.weights import build_model  # noqa: E402
from visualizer.session.allocator import keep_freed_memory  # noqa: E402

CONFIG = TransformerConfig("encoder", vocab_size=256, d_model=128, n_heads=8, n_layers=4, d_ff=512)
PAIRS = {16: 400, 64: 300, 128: 200, 256: 100, 512: 40}
"""How many pairs of passes are timed at each length."""


def main() -> None:
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)  # as the app does
    is_set = "unset" not in sys.argv[1:] and keep_freed_memory()
    print(f"PyTorch {torch.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, one thread")
    print(f"allocator {'set' if is_set else 'not set'}")
    print(f"d_model={CONFIG.d_model}, {CONFIG.n_heads} heads, {CONFIG.n_layers} layers, causal mask")
    model = build_model(CONFIG, "random", seed=0)
    for n_tokens, n_pairs in PAIRS.items():
        ids = torch.arange(n_tokens)[None] % CONFIG.vocab_size
        no_padding = torch.zeros(1, n_tokens, dtype=torch.bool)
        mask = build_masks(["causal"], MaskInputs(n_tokens, n_tokens, no_padding)).allowed
        report(n_tokens, n_pairs, lambda ids=ids, mask=mask: model(ids, source_mask=mask), model)


def report(n_tokens: int, n_pairs: int, forward: Callable[[], object], model: torch.nn.Module) -> None:
    def recorded() -> None:
        with record(model):
            forward()

    for _ in range(8):
        recorded()
        forward()
    pairs = [(seconds(recorded), seconds(forward)) for _ in range(n_pairs)]
    low, middle, high = statistics.quantiles([a / b for a, b in pairs], n=4)
    plain = 1000 * statistics.median(b for _, b in pairs)
    print(
        f"  T={n_tokens:<4} recorded / not {middle:5.2f}   (quartiles {low:.2f} to {high:.2f}; not: {plain:.2f} ms)"
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


if __name__ == "__main__":
    main()
