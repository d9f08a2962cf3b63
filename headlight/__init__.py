"""Headlight for your own models: see every attention of any PyTorch model, and check its masks.

import headlight

with headlight.watch(model) as trace:
    model(**batch)
headlight.check(model, **batch)
headlight.assert_causal(model, input_ids)
trace.save("run.headlight")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headlight.attention import Attention
    from headlight.checking import check
    from headlight.proving import Proof, assert_causal, assert_padding_ignored, assert_sequences_do_not_mix
    from headlight.report import Report
    from headlight.trace import Trace, load
    from headlight.watching import memory, watch

__all__ = [
    "Attention",
    "Proof",
    "Report",
    "Trace",
    "assert_causal",
    "assert_padding_ignored",
    "assert_sequences_do_not_mix",
    "check",
    "load",
    "memory",
    "watch",
]

_MODULES = {
    "Attention": "attention",
    "Proof": "proving",
    "Report": "report",
    "Trace": "trace",
    "assert_causal": "proving",
    "assert_padding_ignored": "proving",
    "assert_sequences_do_not_mix": "proving",
    "check": "checking",
    "load": "trace",
    "memory": "watching",
    "watch": "watching",
}


def __getattr__(name: str) -> object:
    """The module of a public name, and with it PyTorch, is imported when the name is first asked for (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
