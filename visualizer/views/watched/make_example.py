"""Makes the recording that the view offers as an example: ``python -m visualizer.views.watched.make_example``.

A small model of PyTorch's own layers that reads a sentence from left to right. The mask of its middle layer begins
one key too late, so that each token sees the next one.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import headlight
from visualizer.views.watched.recordings import EXAMPLE

TOKENS = ("The", "cat", "sat", "on", "the", "mat", "because", "it", "was", "tired")

_WIDTH = 32
_LEAKY_LAYER = 1


class LeakyReader(nn.Module):
    """Three layers that should each hide later tokens; one hides them one token too late."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(TOKENS), _WIDTH)
        self.positions = nn.Embedding(len(TOKENS), _WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(_WIDTH, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
            for _ in range(3)
        )
        self.unembedding = nn.Linear(_WIDTH, len(TOKENS))

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (B, T, V) of the next token, of ids (B, T)."""
        length = ids.shape[1]
        x = self.embedding(ids) + self.positions(torch.arange(length))
        for number, layer in enumerate(self.layers):
            first_hidden = 2 if number == _LEAKY_LAYER else 1
            hidden = torch.ones(length, length, dtype=torch.bool).triu(first_hidden)
            x = layer(x, src_mask=hidden)
        logits: Tensor = self.unembedding(x)
        return logits


def example_trace() -> headlight.Trace:
    """A pass of the model over the sentence, with every operation."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        model = LeakyReader().eval()
    with headlight.watch(model, keep="all") as trace:
        model(torch.arange(len(TOKENS))[None])
    trace.tokens = TOKENS
    return trace


if __name__ == "__main__":
    example_trace().save(EXAMPLE, parameters=True)
