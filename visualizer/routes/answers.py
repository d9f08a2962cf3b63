"""Addresses to bytes: the run that an address asks for, computed or kept, and its numbers written."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor

from model import Stage, Trace
from model.texts import texts_of
from model.tracing import TraceError
from visualizer.components.packing import in_precision, pack
from visualizer.pictures.compare import ComparePicture, compared_settings
from visualizer.pictures.heads import HeadsPicture, attention_of, heads_picture
from visualizer.pictures.step import (
    MapPicture,
    Place,
    StepPicture,
    equation,
    every_head,
    every_part,
    map_of,
    place_in,
)
from visualizer.pictures.token_way import Taken, stack_of, taken_at
from visualizer.routes.address import OF_RUN, Address, Format, link_to_stage
from visualizer.runs.operations_run import OperationStage
from visualizer.runs.paths import attention_modules, of_every_layer, without_layer
from visualizer.runs.recorded import run_of, under
from visualizer.runs.run import Run
from visualizer.runs.saved import as_file
from visualizer.settings.settings import Selection, Settings
from visualizer.stages.scripts import Library, as_notebook, numbers_of, script
from visualizer.work.cache import cached_run
from visualizer.work.cached_operations import cached_operations

say = texts_of(__name__)

MOST_IN_CSV = 1_000_000
"""The most numbers that are written as text."""

Dims = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Answer:
    """The answer that is sent back.

    Attributes:
        body: the bytes.
        axes: the symbols of the axes of an array, one for each; empty for a picture.
    """

    body: bytes
    axes: str = ""


def answer_stage(address: Address) -> Answer:
    """The numbers of a stage, written as asked for.

    Raises:
        ValueError: one sentence on what is wrong with the address, or on why nothing was computed.
    """
    run = _run_of(address)
    if address.format in OF_RUN or address.format in _SCRIPTS:
        return Answer(_file(run, address))
    run = _holding(run, address.name, address.selection)
    values, dims, layers = _found(run.trace, address.name, address.part.layers)
    values, dims = _at(values, dims, address.part.places)
    axes = " ".join(symbol for symbol, _ in dims)
    if address.format == "npy":
        return Answer(_as_npy(values), axes)
    if address.format == "csv":
        return Answer(_as_csv(values, dims), axes)
    header = {"stage": address.name, "layers": list(layers), "dims": [list(axis) for axis in dims]}
    shares = values.astype(np.uint8) if values.dtype == np.bool_ else in_precision(values, address.part.precision)
    return Answer(pack(header, {"values": shares}), axes)


def _file(run: Run, address: Address) -> bytes:
    """All stages of a sequence as a file, or a script that computes one of them."""
    if address.format == "headlight":
        return as_file(run if run.attentions else _seen(run, address.selection)).getvalue()
    if run.attentions:
        raise ValueError(say("of_checkpoint"))
    seen = _seen(run, address.selection)
    if address.format in OF_RUN:
        numbers = numbers_of(seen)
        if address.format == "npz":
            return _as_npz({name: value.contiguous() for name, value in numbers.items()})
        return save({name: value.clone(memory_format=torch.contiguous_format) for name, value in numbers.items()})
    if address.name not in seen.trace:
        raise ValueError(say("script_of_one", name=address.name))
    link = link_to_stage(address.settings, address.name, address.selection.batch)
    code = script(seen, address.name, _SCRIPTS[address.format], link)
    return (json.dumps(as_notebook(code), indent=1) if address.format == "ipynb" else code).encode()


_SCRIPTS: Mapping[Format, Library] = {"numpy": "numpy", "torch": "torch", "ipynb": "numpy"}


def _as_npz(numbers: Mapping[str, Tensor]) -> bytes:
    file = io.BytesIO()
    arrays: dict[str, Any] = {name: value.numpy() for name, value in numbers.items()}
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def answer_picture(address: Address) -> Answer:
    """Return the packed numbers of a view's picture; of heads, one cell alone where it is asked for.

    Raises:
        ValueError: one sentence on what is wrong with the address, or on why nothing was computed.
    """
    picture = _PICTURES[address.name](address)
    if address.part.at and isinstance(picture, (HeadsPicture, ComparePicture)):
        return Answer(pack({}, picture.exact_at(address.part.places)))
    return Answer(picture.packed(address.part.precision))


def _heads(address: Address) -> HeadsPicture:
    return _of_attention(_run_of(address), address)


def _compare(address: Address) -> ComparePicture:
    if address.part.recorded:
        a = _run_of(address)
        b = under(a, address.selection.compare.mask_b)
        return ComparePicture(_of_attention(a, address), _of_attention(b, address))
    settings_a, settings_b = compared_settings(address.settings, address.selection)
    b = _run_with(settings_b)  # first, since the page begins with A and each waits for what the other computes
    a = _run_with(settings_a)
    return ComparePicture(_of_attention(a, address), _of_attention(b, address))


def _way(address: Address) -> Taken:
    run = _with_operations(address)
    stack = stack_of(run, address.selection.stage)
    if stack is None:
        raise ValueError(say("no_stream"))
    return taken_at(run, stack, address.selection.query)


def _map(address: Address) -> MapPicture:
    return map_of(_with_operations(address))


def _with_operations(address: Address) -> Run:
    """The sequence that is looked at, for a picture of all layers; of a checkpoint every operation."""
    if address.part.layers or address.part.at:
        raise ValueError(say("of_all"))
    run = _run_of(address)
    if run.seen is None:
        run = _seen(run, address.selection)
    return cached_operations(run) if run.attentions else run


def _of_stage(draw: Callable[[Run, Place], StepPicture]) -> Callable[[Address], StepPicture]:
    """Return a function that draws the stage that an address names."""

    def answer(address: Address) -> StepPicture:
        if address.part.layers:
            raise ValueError(say("stage_in_one_layer"))
        run, at = _run_of(address), address.part.places
        run = _holding(run, address.selection.stage, address.selection)
        seen = run if run.seen is not None else _seen(run, address.selection)
        if at and (seen.seen is None or len(at) != 2):
            raise ValueError(say("cell"))
        place = place_in(seen, address.selection)
        picture = draw(seen, replace(place, cell=(at[0], at[1])) if at else place)
        if not picture.panels:
            raise ValueError(say("nothing_to_draw", stage=address.selection.stage))
        return picture

    return answer


_PICTURES: Mapping[str, Callable[[Address], HeadsPicture | ComparePicture | StepPicture | MapPicture | Taken]] = {
    "heads": _heads,
    "compare": _compare,
    "step": _of_stage(equation),
    "step_heads": _of_stage(every_head),
    "step_parts": _of_stage(every_part),
    "way": _way,
    "map": _map,
}


def _holding(run: Run, name: str, selection: Selection) -> Run:
    """The run, or that of all operations of a checkpoint's pass where a stage is none of the attentions'."""
    is_there = not run.attentions or any(name in (path, without_layer(path)) for path in run.trace)
    return run if is_there else cached_operations(_seen(run, selection))


def _seen(run: Run, selection: Selection) -> Run:
    """The sequence that is looked at, as the only one of its batch."""
    if selection.batch >= run.n_batch_items:
        raise ValueError(say("no_sequence", sequence=selection.batch, n_sequences=run.n_batch_items))
    return run.at(selection.batch).alone()


def _of_attention(run: Run, address: Address) -> HeadsPicture:
    """The heads of the attention that the stage of an address belongs to, in the sequence that is looked at."""
    selection = address.selection
    seen = _seen(run, selection)
    modules = attention_modules(run.trace)
    if not modules:
        raise ValueError(say("no_attention"))
    return heads_picture(seen, attention_of(modules, selection.stage), selection, address.part.layers)


def _run_of(address: Address) -> Run:
    """The run that an address is of."""
    if not address.part.recorded:
        return _run_with(address.settings)
    if (run := run_of(address.part.recorded)) is None:
        raise ValueError(say("not_open"))
    return run


def _run_with(settings: Settings) -> Run:
    """The run of all settings: no part of them is left out, as the page would with a remark."""
    run = cached_run(settings, is_passing=True)
    if run.complaints:
        raise ValueError(run.complaints[0])
    return run


def _found(trace: Trace, name: str, layers: Sequence[int]) -> tuple[NDArray[np.generic], Dims, tuple[int, ...]]:
    """A stage by its path; or one that stands in several layers, by its path without them, in a first axis L."""
    if name in trace:
        if layers:
            raise ValueError(say("in_one_layer", name=name))
        return *_array_of(trace[name]), ()
    alike = of_every_layer(trace, name)
    if not alike:
        try:
            trace[name]
        except TraceError as error:
            near = say("no_stage_but_near", problem=error)
            raise ValueError(near if near.endswith("?") else say("no_stage", problem=error)) from None
    if missing := [layer for layer in layers if layer >= len(alike)]:
        raise ValueError(say("no_layer", layer=missing[0], name=name, n_layers=len(alike)))
    chosen = tuple(layers) or tuple(range(len(alike)))
    values = np.stack([_array_of(alike[layer])[0] for layer in chosen])
    return values, (("L", len(chosen)), *alike[0].dims), chosen


def _array_of(stage: Stage) -> tuple[NDArray[np.generic], Dims]:
    """The numbers of a stage as the model has them, and its axes."""
    value, dims = stage.value, stage.dims
    if isinstance(stage, OperationStage) and stage.operation.value is not None:
        value, dims = stage.operation.value, stage.own_dims
    numbers: NDArray[np.generic] = (value.float() if value.dtype is torch.bfloat16 else value).detach().numpy()
    return numbers, dims


def _at(values: NDArray[np.generic], dims: Dims, places: tuple[int, ...]) -> tuple[NDArray[np.generic], Dims]:
    """Return the numbers at the first places of an array."""
    if len(places) > len(dims):
        raise ValueError(say("too_many_places", n_places=len(places), n_axes=len(dims)))
    for place, (symbol, size) in zip(places, dims, strict=False):
        if place >= size:
            raise ValueError(say("no_place", symbol=symbol, place=place, size=size))
    return np.asarray(values[places]), dims[len(places) :]


def _as_npy(values: NDArray[np.generic]) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()


def _as_csv(values: NDArray[np.generic], dims: Dims) -> bytes:
    """One line for each row, with its place in the axes before the last; a lone number by itself."""
    if values.size > MOST_IN_CSV:
        raise ValueError(say("too_many_numbers", n_numbers=values.size, most=MOST_IN_CSV))
    return "".join(_lines(values, dims)).encode()


def _lines(values: NDArray[np.generic], dims: Dims) -> Iterator[str]:
    shown = values.astype(np.uint8) if values.dtype == np.bool_ else values
    if not dims:
        yield f"{shown}\n"
        return
    (*outer, (symbol, size)) = dims
    yield ",".join([*(name for name, _ in outer), *(f"{symbol} {i}" for i in range(size))]) + "\n"
    for place in np.ndindex(*shown.shape[:-1]):
        yield ",".join([*map(str, place), *shown[place].astype(str)]) + "\n"
