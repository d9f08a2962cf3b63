"""Headlight for your own models: see every attention of any PyTorch model, and check its masks.

import headlight

with headlight.watch(model) as trace:
    model(**batch)
"""

from headlight.attention import Attention
from headlight.trace import Trace
from headlight.watching import memory, watch

__all__ = ["Attention", "Trace", "memory", "watch"]
