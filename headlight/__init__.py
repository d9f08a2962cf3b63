"""Headlight for your own models: see every attention of any PyTorch model, and check its masks.

import headlight

with headlight.watch(model) as trace:
    model(**batch)
headlight.check(model, **batch)
headlight.assert_causal(model, input_ids)
trace.save("run.headlight")
"""

from headlight.attention import Attention
from headlight.checking import Report, check
from headlight.proving import Proof, assert_causal, assert_padding_ignored
from headlight.trace import Trace, load
from headlight.watching import memory, watch

__all__ = [
    "Attention",
    "Proof",
    "Report",
    "Trace",
    "assert_causal",
    "assert_padding_ignored",
    "check",
    "load",
    "memory",
    "watch",
]
