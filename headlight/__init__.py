"""Headlight for your own models: see every attention of any PyTorch model, and check its masks.

import headlight

with headlight.watch(model) as trace:
    model(**batch)
headlight.check(model, **batch)
"""

from headlight.attention import Attention
from headlight.checking import Report, check
from headlight.trace import Trace
from headlight.watching import memory, watch

__all__ = ["Attention", "Report", "Trace", "check", "memory", "watch"]
