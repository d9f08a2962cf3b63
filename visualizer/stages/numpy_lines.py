"""The line of NumPy that computes a stage, to read beside the line of PyTorch that did.

Nothing here is executed by the app; the tests execute every line on the recorded inputs of its stage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from model.texts import listed, texts_of

say = texts_of(__name__)


@dataclass(frozen=True)
class NumpyLine:
    """The lines of NumPy that compute one stage.

    Attributes:
        code: one or a few lines; the last assigns the stage's name.
        reads: the variables in it that are stages or parameters, with their paths.
        from_outside: the variables in it that come from outside, such as ``ids`` or ``mask``.
    """

    code: str
    reads: Mapping[str, str] = field(default_factory=dict)
    from_outside: tuple[str, ...] = ()


def notes(line: NumpyLine) -> str:
    """Return the notes on the variables of a line; empty where none needs one."""
    matrices = [name for name in line.reads if re.search(rf"\b{name}(\[.*?\])?\.T", line.code)]
    found = [say("stored", matrices=listed(matrices))] if matrices else []
    found += [_FROM_OUTSIDE[name] for name in line.from_outside if name in _FROM_OUTSIDE]
    return "; ".join(found)


_FROM_OUTSIDE = {
    "keep": say("keep"),
    "ids": say("ids"),
    "mask": say("mask"),
    "bias": say("bias"),
    "positions": say("positions"),
}
"""The meanings of variables from outside, by name."""


def variable(source: str, path: str) -> str:
    """Name a stage or a parameter as the line of the stage at ``path`` does: ``w_q``, ``b_q``, ``norm1``."""
    *owner, name = source.split(".")
    if name == "weight":
        return owner[-1]
    if name == "bias":
        return owner[-1].replace("w_", "b_") if owner[-1].startswith("w_") else f"{owner[-1]}_bias"
    is_of_another = ".".join(owner) != path.rpartition(".")[0]
    return f"{owner[-1]}_output" if name == "output" and is_of_another else name
