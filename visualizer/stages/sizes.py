"""The sizes in this run of what the glossary explains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from torch import nn

from model import Dropout
from visualizer.runs.run import Run


def sizes_of(run: Run) -> dict[str, str]:
    """The sizes of a run by the ``size`` of the entries, such as ``{"T": "6 (source), 7 (target)"}``."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for place, symbol, size in dict.fromkeys(_axes(run)):
        found.setdefault(symbol, {}).setdefault(str(size), {})[place] = None
    sizes = {symbol: _said(by_size) for symbol, by_size in found.items()}
    if "Dk" not in sizes and "Dh" in sizes:
        sizes["Dk"] = sizes["Dh"]
    return sizes | dict(_numbers(run))


def _axes(run: Run) -> Iterator[tuple[str, str, int]]:
    """Every axis of every stage with one symbol: the place of the stage, symbol, size."""
    has_parts = "target" in run.batches
    for path, stage in run.trace.items():
        place = _place(path) if has_parts else ""
        for symbol, size in stage.dims:
            if "*" not in symbol:
                yield place, symbol, size


def _place(path: str) -> str:
    """Return the part that a stage belongs to, of a model with more than one."""
    if "cross_attention" in path:
        return "cross-attention"
    return "source" if path.startswith("encoder.") else "target"


def _said(by_size: Mapping[str, Iterable[str]]) -> str:
    if len(by_size) == 1:
        return next(iter(by_size))
    return ", ".join(f"{size} ({', '.join(places)})" for size, places in by_size.items())


def _numbers(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the numbers that are not the size of a stage's axis."""
    norm = next((module for module in run.model.modules() if isinstance(module, nn.LayerNorm)), None)
    if norm is not None:
        yield "epsilon", f"{norm.eps:g}"
    if run.example is not None:
        return
    settings, stacks = run.settings, _layers(run)
    yield (
        "layers",
        _said(
            {
                str(len(layers)): [stack for stack in stacks if len(stacks[stack]) == len(layers)]
                for layers in stacks.values()
            }
        ),
    )
    if "target" in run.tokens:
        yield "S", str(len(run.tokens["source"].labels))
    rates = {module.p for module in run.model.modules() if isinstance(module, Dropout) and module.active}
    yield "dropout", f"{max(rates):g}" if rates else "off"
    for mask, size in (("sliding_window", "window"), ("prefix", "prefix"), ("strided", "stride")):
        if any(mask in masks.names for masks in run.masks.values()):
            yield size, str(getattr(settings, size))


def _layers(run: Run) -> dict[str, set[str]]:
    """The numbers of the layers of the encoder and of the decoder."""
    stacks: dict[str, set[str]] = {}
    for path in run.trace:
        stack, layers, rest = path.partition(".layers.")
        if layers:
            stacks.setdefault(stack, set()).add(rest.partition(".")[0])
    return stacks
