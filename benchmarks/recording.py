"""The cost of recording: a recorded pass over one that is not, and that over one without taps, for several lengths.

    python benchmarks/recording.py             under the allocator that the app sets
    python benchmarks/recording.py unset       under the machine's own

Two passes take turns on one thread, so that a change of the machine's speed meets both, and what counts is how long
the processor worked for each. Printed are the median of the pairs' ratios and its quartiles.
"""

from __future__ import annotations

import ast
import importlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from model import TransformerConfig, build_masks, record  # noqa: E402 - the project is not installed
from model.masks import MaskInputs  # noqa: E402
from model.sources.weights import build_model  # noqa: E402
from visualizer.server.tuning import keep_freed_memory  # noqa: E402

CONFIG = TransformerConfig("encoder", vocab_size=256, d_model=128, n_heads=8, n_layers=4, d_ff=512)
TURNS = {16: 400, 64: 300, 128: 200, 256: 100, 512: 40}
"""The number of times that each kind of pass is timed at each length."""


def main() -> None:
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)  # as the app does
    is_set = "unset" not in sys.argv[1:] and keep_freed_memory()
    print(f"PyTorch {torch.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, one thread")
    print(f"allocator {'set' if is_set else 'not set'}")
    print(f"d_model={CONFIG.d_model}, {CONFIG.n_heads} heads, {CONFIG.n_layers} layers, causal mask")
    model = build_model(CONFIG, "random", seed=0)
    with tempfile.TemporaryDirectory() as folder:
        untapped = untapped_copy(model, Path(folder))
    for n_tokens, n_turns in TURNS.items():
        ids = torch.arange(n_tokens)[None] % CONFIG.vocab_size
        no_padding = torch.zeros(1, n_tokens, dtype=torch.bool)
        mask = build_masks(["causal"], MaskInputs(n_tokens, n_tokens, no_padding)).allowed
        if not torch.equal(model(ids, source_mask=mask), untapped(ids, source_mask=mask)):
            raise RuntimeError("the copy without taps computes something else")
        report(n_tokens, n_turns, lambda one, ids=ids, mask=mask: one(ids, source_mask=mask), model, untapped)


def report(
    n_tokens: int,
    n_turns: int,
    run: Callable[[torch.nn.Module], object],
    model: torch.nn.Module,
    untapped: torch.nn.Module,
) -> None:
    def record_it() -> None:
        with record(model):
            run(model)

    def not_recorded() -> None:
        run(model)

    recording = turns(record_it, not_recorded, n_turns)
    taps = turns(not_recorded, lambda: run(untapped), n_turns)
    milliseconds = 1000 * statistics.median(plain for _, plain in recording)
    print(f"  T={n_tokens:<4} recorded / not {spread(recording)}; not: {milliseconds:.2f} ms")
    print(f"         not recorded / without taps {spread(taps)}", flush=True)


def turns(one: Callable[[], object], other: Callable[[], object], count: int) -> list[tuple[float, float]]:
    """The seconds that two passes take in turn, once both are warm."""
    return [(seconds(one), seconds(other)) for _ in range(count + 8)][8:]


def spread(pairs: Sequence[tuple[float, float]]) -> str:
    low, middle, high = statistics.quantiles([one / other for one, other in pairs], n=4)
    return f"{middle:5.2f} (quartiles {low:.2f} to {high:.2f})"


def seconds(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def untapped_copy(model: torch.nn.Module, folder: Path) -> torch.nn.Module:
    """The same weights in the same sources, in which ``tap(name, value, ...)`` stands as ``value`` alone."""
    (folder / "untapped_model").mkdir()
    for file in (ROOT / "model").glob("*.py"):
        source = file.read_text(encoding="utf-8").replace("from model", "from untapped_model")
        tree = ast.fix_missing_locations(WithoutTaps().visit(ast.parse(source)))
        (folder / "untapped_model" / file.name).write_text(ast.unparse(tree), encoding="utf-8")
    sys.path.insert(0, str(folder))
    package = importlib.import_module("untapped_model")
    copy: torch.nn.Module = package.Transformer(package.TransformerConfig(**vars(CONFIG))).eval()
    copy.load_state_dict(model.state_dict(), assign=True)  # one set of weights in the processor's cache
    return copy


class WithoutTaps(ast.NodeTransformer):
    """Replaces each call of a tap by the value that it names."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        return node.args[1] if name == "tap" and len(node.args) >= 3 else node


if __name__ == "__main__":
    main()
