"""Headlight for your own models: see every attention of any PyTorch model, and check its masks.

import headlight

headlight.attention(weights, tokens)

with headlight.watch(model) as trace:
    model(**batch)
headlight.check(model, **batch)
headlight.assert_causal(model, input_ids)
trace.save("run.headlight")
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from model import __name__ as _model

if TYPE_CHECKING:
    from headlight.attentions import Attention
    from headlight.checking import check
    from headlight.proving import Proof, assert_causal, assert_padding_ignored, assert_sequences_do_not_mix
    from headlight.report import Report
    from headlight.trace import Trace, load
    from headlight.watching import memory, watch

    attention: Callable[..., Any]
    paint: Callable[..., Any]
    show: Callable[..., Any]

__all__ = [
    "Attention",
    "Proof",
    "Report",
    "Trace",
    "assert_causal",
    "assert_padding_ignored",
    "assert_sequences_do_not_mix",
    "attention",
    "check",
    "load",
    "memory",
    "paint",
    "show",
    "watch",
]

_NOTEBOOK = f"{_model.removesuffix('model')}visualizer.notebook"
"""The package that draws, by its name: the pictures know of this package, not it of them."""

_MODULES = {
    "Attention": "headlight.attentions",
    "Proof": "headlight.proving",
    "Report": "headlight.report",
    "Trace": "headlight.trace",
    "assert_causal": "headlight.proving",
    "assert_padding_ignored": "headlight.proving",
    "assert_sequences_do_not_mix": "headlight.proving",
    "attention": f"{_NOTEBOOK}.show",
    "check": "headlight.checking",
    "load": "headlight.trace",
    "memory": "headlight.watching",
    "paint": f"{_NOTEBOOK}.paint",
    "show": f"{_NOTEBOOK}.show",
    "watch": "headlight.watching",
}


def __getattr__(name: str) -> object:
    """The module of a public name, and with it PyTorch, is imported when the name is first asked for (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
