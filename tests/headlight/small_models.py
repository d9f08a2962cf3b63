"""Small models that write their attention in different ways, each with the inputs of one call."""

import math

import torch
from torch import nn
from torch.nn import functional as F

N_HEADS = 4
WIDTH = 16


def seeded(make):
    """A module made under seed 0, in evaluation mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().eval()


def vectors(batch=2, n_tokens=6, seed=1):
    """(B, T, D)."""
    return torch.randn(batch, n_tokens, WIDTH, generator=torch.Generator().manual_seed(seed))


def split(x):
    """(B, T, D) to (B, H, T, Dh)."""
    return x.unflatten(-1, (N_HEADS, -1)).transpose(1, 2)


class Attention(nn.Module):
    """Projections around ``attend(q, k, v)``, which is given; a residual, so that layers can be stacked."""

    def __init__(self, attend, key_heads=N_HEADS):
        super().__init__()
        self.attend = attend
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH * key_heads // N_HEADS)
        self.value = nn.Linear(WIDTH, WIDTH * key_heads // N_HEADS)
        self.key_heads = key_heads

    def heads(self, x):
        """(B, H, T, Dh), (B, Hk, T, Dh) and (B, Hk, T, Dh)."""
        shared = [f(x).unflatten(-1, (self.key_heads, -1)).transpose(1, 2) for f in (self.key, self.value)]
        return split(self.query(x)), *shared

    def forward(self, x):
        return x + self.attend(*self.heads(x)).transpose(1, 2).flatten(2)


class OneSequence(nn.Module):
    """Attention of (T, D), without an axis for sequences, as in many notebooks."""

    def __init__(self, attend):
        super().__init__()
        self.projections, self.attend = nn.Linear(WIDTH, 3 * WIDTH), attend

    def forward(self, x):
        q, k, v = self.projections(x).view(len(x), 3, N_HEADS, -1).permute(1, 2, 0, 3)
        return self.attend(q, k, v).transpose(0, 1).reshape(len(x), WIDTH)


def stacked(attend, n_layers=2, **options):
    """``n_layers`` of one attention."""
    return seeded(lambda: nn.Sequential(*(Attention(attend, **options) for _ in range(n_layers))))


def causal(n_tokens):
    """(T, T), True = may attend."""
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()


def written_out(mask=lambda scores: scores.masked_fill(~causal(scores.shape[-1]), -math.inf)):
    """Product, softmax, product, with whatever masks the scores."""

    def attend(q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return F.dropout(torch.softmax(mask(scores), dim=-1), 0.1, training=False) @ v

    return attend


class TokenModel(nn.Module):
    """Token ids (B, T) through an embedding and whatever reads vectors, to logits (B, T, 20)."""

    def __init__(self, body, n_ids=20):
        super().__init__()
        self.embedding = nn.Embedding(n_ids, WIDTH)
        self.body = body
        self.head = nn.Linear(WIDTH, n_ids)

    def forward(self, input_ids, **options):
        return self.head(self.body(self.embedding(input_ids), **options))
