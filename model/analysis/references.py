"""The same computation by PyTorch's own functions, to set beside what the model computed."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from model.tracing import Trace


def sdpa_difference(trace: Trace, attention_path: str) -> float:
    """Largest |difference| between one recorded attention and ``F.scaled_dot_product_attention``.

    PyTorch is given the recorded q, k, v and mask, what a change of the scores added to them, and a scale of one
    where the run did not scale its scores. A query whose keys are all blocked must come out as zero: PyTorch gives
    that too. While dropout is on, the two would draw different weights, so that the recorded weights from before
    dropout are compared.

    Args:
        trace: a finished recording.
        attention_path: path of the attention, such as ``encoder.layers.0.self_attention``; empty for a recorded
            root that is itself an attention.

    Returns:
        Maximum over (B, H, Tq, Dh); NaN if either side has one.

    Raises:
        TraceError: there is no attention under that path.
    """
    prefix = f"{attention_path}." if attention_path else ""
    q, k, v = (trace[f"{prefix}{name}"].value for name in ("q", "k", "v"))
    mask = trace[f"{prefix}mask"].value if f"{prefix}mask" in trace else None
    unscaled = torch.equal(trace[f"{prefix}scores"].value, trace[f"{prefix}scaled_scores"].value)
    context = trace[f"{prefix}context"].value
    if f"{prefix}modified_scores" in trace:
        change = trace[f"{prefix}modified_scores"].value - trace[f"{prefix}scaled_scores"].value
        mask = change if mask is None else change.masked_fill(~mask, -torch.inf)
    with torch.no_grad():
        if f"{prefix}dropped_weights" in trace:
            context = trace[f"{prefix}weights"].value @ v
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0 if unscaled else None)
        return (context - expected).abs().max().item()
