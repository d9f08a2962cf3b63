"""Separate heads, concatenated, are the fused attention."""

from __future__ import annotations

import pytest
import torch

from model import MultiHeadAttention, record
from model.analysis.separate_heads import SeparateHeads
from tests.model.builders import random_mask, random_tensor, randomized


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("output_projection", [True, False])
@pytest.mark.parametrize("scale_scores", [True, False])
def test_separate_heads_are_one_fused_matrix(bias, output_projection, scale_scores):
    fused = MultiHeadAttention(
        12, 3, bias=bias, output_projection=output_projection, scale_scores=scale_scores
    ).double()
    randomized(fused)
    query, memory = (random_tensor(2, length, 12, seed=length, dtype=torch.float64) for length in (4, 5))
    mask = random_mask(2, 3, 4, 5)
    separate = SeparateHeads(fused).eval()
    with torch.no_grad(), record(fused) as trace:
        expected = fused(query, memory, memory, mask)
    with torch.no_grad(), record(separate) as parts:
        found = separate(query, memory, memory, mask)
    assert torch.allclose(found, expected, rtol=0.0, atol=1e-12)
    for name in ("q", "k", "v", "scores", "weights", "context"):
        together = torch.cat([parts[f"heads.{head}.{name}"].value for head in range(3)], 1)
        assert torch.allclose(together, trace[name].value, rtol=0.0, atol=1e-12)


def test_every_head_has_matrices_of_its_own():
    fused = randomized(MultiHeadAttention(6, 2))
    separate = SeparateHeads(fused)
    assert [tuple(head.w_q.weight.shape) for head in separate.heads] == [(3, 6), (3, 6)]
    with torch.no_grad():
        separate.heads[1].w_k.weight.zero_()
    assert fused.w_k.weight[3:].abs().min() > 0
