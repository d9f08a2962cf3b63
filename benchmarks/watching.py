"""The slowdown of a forward pass while it is watched.

    python benchmarks/watching.py               texts of 128 and 512 tokens
    python benchmarks/watching.py 64 1024       texts of these lengths

The models have the width of GPT-2 small, 768, 12 heads and 4 layers. Each pass is made in turn with and without
``headlight.watch``; printed is the shortest of each, and what they have between them. PyTorch fuses a whole
``nn.TransformerEncoder`` in evaluation, which is then computed a second time, step by step, to be seen: beside it
stands what both computations take together unwatched.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import headlight  # noqa: E402 - the project is not installed

LENGTHS = (128, 512)
WIDTH, N_HEADS, N_LAYERS = 768, 12, 4
TIMES = 7


class Layer(nn.Module):
    """A layer with causal attention by PyTorch's function, or written out."""

    def __init__(self, *, writes_out: bool) -> None:
        super().__init__()
        self.writes_out = writes_out
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.in_projection, self.out_projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        """(B, T, D) to (B, T, D)."""
        heads = self.in_projection(self.norm1(x)).unflatten(-1, (3, N_HEADS, -1)).transpose(1, 3)
        q, k, v = heads.unbind(2)
        context = (
            written_out(q, k, v) if self.writes_out else F.scaled_dot_product_attention(q, k, v, is_causal=True)
        )
        x = x + self.out_projection(context.transpose(1, 2).flatten(2))
        return x + self.feed_forward(self.norm2(x))


def written_out(q, k, v):
    """Causal attention, (B, H, T, Dh)."""
    later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
    return ((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf)).softmax(-1) @ v


def main() -> None:
    torch.set_num_threads(1)
    lengths = [int(length) for length in sys.argv[1:]] or LENGTHS
    encoder_layer = nn.TransformerEncoderLayer(WIDTH, N_HEADS, 4 * WIDTH, batch_first=True)
    models = {
        "F.scaled_dot_product_attention": nn.Sequential(*(Layer(writes_out=False) for _ in range(N_LAYERS))),
        "softmax written out": nn.Sequential(*(Layer(writes_out=True) for _ in range(N_LAYERS))),
        "nn.TransformerEncoder": nn.TransformerEncoder(encoder_layer, N_LAYERS),
    }
    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}, one thread, {N_LAYERS} layers of {WIDTH}")
    for n_tokens in lengths:
        for name, model in models.items():
            report(name, model, n_tokens)


def report(name: str, model: nn.Module, n_tokens: int) -> None:
    """Print the times of one model at one length, in evaluation and in training."""
    x = torch.randn(1, n_tokens, WIDTH)

    def watched() -> None:
        with headlight.watch(model):
            model(x)

    def step_by_step() -> None:
        torch.backends.mha.set_fastpath_enabled(False)
        model(x)
        torch.backends.mha.set_fastpath_enabled(True)

    for mode in ("evaluation", "training"):
        model.train(mode == "training")
        is_fused = mode == "evaluation" and isinstance(model, nn.TransformerEncoder)
        with torch.set_grad_enabled(mode == "training"):
            plain, beside, *apart = shortest(lambda: model(x), watched, *([step_by_step] if is_fused else []))
        print(
            f"T={n_tokens:4}  {name:30}  {mode:10}  plain {1e3 * plain:6.1f} ms  watched {1e3 * beside:6.1f} ms  "
            f"ratio {beside / plain:.2f}"
            + "".join(
                f"  step by step {1e3 * other:6.1f} ms  ratio to both {beside / (plain + other):.2f}"
                for other in apart
            )
        )


def shortest(*works: Callable[[], object]) -> tuple[float, ...]:
    """The shortest time of each work in seconds, done in turn."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(TIMES):
        for work, of_work in zip(works, times, strict=True):
            start = time.process_time()
            work()
            of_work.append(time.process_time() - start)
    return tuple(min(of_work) for of_work in times)


if __name__ == "__main__":
    main()
