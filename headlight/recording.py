"""A trace as a file: arrays in the safetensors format, and what they are in its header, as JSON. Nothing is run.

The header holds under one key the version of the layout, the versions of what wrote it, the tokens, every attention
and every stage, each with the numbers of its arrays. Everything is checked when it is read.
"""

from __future__ import annotations

import io
import json
import math
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import torch
from torch import Tensor

from headlight.attentions import Attention, Role
from headlight.call import Kind
from headlight.expressions import from_json, is_sound, to_json
from headlight.inputs import Inputs
from headlight.remarks import REMARKS
from headlight.roles import with_named_roles
from headlight.stages import Stage
from model.safetensors_header import read_header

VERSION = 1
"""The version of the layout that is written, and the latest that is read."""

MOST_BYTES = 4 * 2**30
"""A longer file is refused unread, unless the reader says otherwise."""

_KEY = "headlight"
_NEW = {"sinks", "role"}
"""Fields that the attentions of earlier files do not have."""
_STACKS = ("encoder", "decoder")
_DAMAGED = "the file is damaged or no recording: choose one that trace.save wrote"
_ARRAYS = ("allowed", "bias", "weights", "context", "query", "key", "value")
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16)
}
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Texts:
    """The text of every token, one tuple for each sequence of the batch; empty where nobody knows it.

    Attributes:
        encoder: of the only stack, or of the encoder.
        decoder: of the decoder, where there are both.
    """

    encoder: tuple[tuple[str, ...], ...] = ()
    decoder: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a file: all of a ``Trace``, under the same names."""

    attentions: Sequence[Attention]
    stages: Sequence[Stage]
    notes: Sequence[str]
    tokens: Sequence[str]
    parameters: Mapping[str, Tensor]
    texts: Texts
    inputs: Inputs


def write(content: Content, path: str | Path) -> None:
    """Write a file."""
    save_file = _safetensors().torch.save_file
    arrays, about = _described(content)
    with Path(path).open("wb") as file:  # a new file gets the usual mode here, and keeps it
        mode = os.fstat(file.fileno()).st_mode
    save_file(arrays, str(path), about)
    Path(path).chmod(stat.S_IMODE(mode))


def to_bytes(content: Content) -> bytes:
    """Return the bytes that ``write`` would write."""
    saved: bytes = _safetensors().torch.save(*_described(content))
    return saved


def _safetensors() -> Any:  # noqa: ANN401 - a module
    """The package that reads and writes the arrays, which a bare installation has not.

    Raises:
        ImportError: it is not installed; the sentence says how it is.
    """
    try:
        import safetensors.torch
    except ImportError as error:
        raise ImportError('recordings need one package more: pip install "headlight[app]"') from error
    return safetensors


def _described(content: Content) -> tuple[dict[str, Tensor], dict[str, str]]:
    arrays = _Arrays()
    about = {
        "version": VERSION,
        "torch": torch.__version__,
        "tokens": list(content.tokens),
        "texts": {name: [list(text) for text in getattr(content.texts, name)] for name in _STACKS},
        "notes": list(content.notes),
        "attentions": [_attention_to_json(attention, arrays) for attention in content.attentions],
        "stages": [_stage_to_json(stage, arrays) for stage in content.stages],
        "parameters": {name: arrays.add(value) for name, value in content.parameters.items()},
        "model": content.inputs.model,
        "inputs": {name: arrays.add(value) for name, value in content.inputs.named.items()},
    }
    return arrays.by_name, {_KEY: json.dumps(about, ensure_ascii=False)}


def read(file: str | Path | bytes, *, most_bytes: int = MOST_BYTES) -> Content:
    """Read a file.

    Args:
        file: its path, or what it holds.
        most_bytes: the longest file that is read.

    Raises:
        ValueError: it is too long, no recording, of a later version, or what it says of its arrays does not hold;
            one sentence says which.
        OSError: it cannot be opened.
    """
    safetensors = _safetensors()
    size = len(file) if isinstance(file, bytes) else Path(file).stat().st_size
    if size > most_bytes:
        raise ValueError(
            f"the file has {size:,} bytes; at most {most_bytes:,} are read unless most_bytes says more"
        )
    about = _about(file)
    version = _field(about, "version", int)
    if version > VERSION:
        raise ValueError(
            f"the file is of version {version}: this Headlight reads up to {VERSION}, so take a later one"
        )
    try:
        is_open = isinstance(file, bytes)
        arrays = safetensors.torch.load(file) if is_open else safetensors.torch.load_file(str(file))
    except (safetensors.SafetensorError, KeyError, RuntimeError, TypeError, OverflowError) as error:
        raise ValueError(_DAMAGED) from error
    parameters, tensors = (_named_arrays(about, name, arrays) for name in ("parameters", "inputs"))
    inputs = Inputs(_field(about, "model", str) if "model" in about else "", tensors)
    stages = _stages_from_json(_list(about, "stages", dict), arrays, parameters)
    if len({stage.path for stage in stages}) < len(stages):
        raise ValueError("two stages in the file have one path")
    entries = _list(about, "attentions", dict)
    attentions = [_attention_from_json(entry, arrays) for entry in entries]
    if any("role" not in entry for entry in entries):
        attentions = with_named_roles(attentions)
    if len({attention.path for attention in attentions}) < len(attentions):
        raise ValueError("two attentions in the file have one path")
    notes, tokens = _list(about, "notes", str), _list(about, "tokens", str)
    return Content(attentions, stages, notes, tokens, parameters, _texts(about), inputs)


class _Arrays:
    """The arrays of a file, each once, under its number."""

    def __init__(self) -> None:
        self.by_name: dict[str, Tensor] = {}
        self._seen: dict[tuple[object, ...], tuple[str, Tensor]] = {}

    def add(self, tensor: Tensor | None) -> str | None:
        """The number of an array."""
        if tensor is None:
            return None
        place = (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.shape, tensor.stride())
        if place not in self._seen:
            name = str(len(self.by_name))
            self.by_name[name] = tensor.detach().to("cpu", copy=True).contiguous()
            self._seen[place] = (name, tensor)  # the tensor too, so that its place is not used again
        return self._seen[place][0]


def _attention_to_json(attention: Attention, arrays: _Arrays) -> dict[str, object]:
    _check_arrays(attention)  # nothing is written that could not be read
    entry = {each.name: getattr(attention, each.name) for each in fields(attention)}
    entry["dtype"] = str(attention.dtype).removeprefix("torch.")
    for name in _ARRAYS:
        entry[name] = arrays.add(entry[name])
    return {name: _number_to_json(value) for name, value in entry.items()}


def _number_to_json(value: object) -> object:
    """JSON has no infinity: such a number is written as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _stage_to_json(stage: Stage, arrays: _Arrays) -> dict[str, object]:
    return {
        "path": stage.path,
        "module": stage.module,
        "operation": stage.operation,
        "inputs": stage.inputs,
        "folded": stage.folded,
        "value": arrays.add(stage.value),
        "expression": to_json(stage.node, arrays.add),
    }


def _about(file: str | Path | bytes) -> Mapping[str, Any]:
    """Read what the file says of itself, before any array."""
    with io.BytesIO(file) if isinstance(file, bytes) else Path(file).open("rb") as opened:
        header = read_header(opened, damaged=_DAMAGED)
    try:
        about = json.loads(header["__metadata__"][_KEY])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError("the file is not a recording: choose one that trace.save wrote") from error
    if not isinstance(about, dict):
        raise ValueError("the file is not a recording: choose one that trace.save wrote")
    return about


def _attention_from_json(entry: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> Attention:
    names = {each.name for each in fields(Attention)} - _NEW
    if entry.keys() - _NEW != names:
        raise ValueError(f"an attention in the file must give each of: {', '.join(sorted(names))}")
    shape = _sizes(entry, "shape")
    if len(shape) != 4:
        raise ValueError(f"shape {shape} in the file must be (B, H, Tq, Tk)")
    kind, dtype = _field(entry, "kind", str), _field(entry, "dtype", str)
    if kind not in get_args(Kind) or dtype not in _DTYPES:
        raise ValueError(f"kind ({kind!r}) or dtype ({dtype!r}) in the file is none that is known")
    remarks, role = _list(entry, "remarks", str), entry.get("role", "self")
    if role not in get_args(Role):
        raise ValueError(f"role ({role!r}) in the file must be one of: {', '.join(get_args(Role))}")
    if not set(remarks) <= REMARKS.keys():
        raise ValueError(f"remarks {remarks} in the file must be among: {', '.join(REMARKS)}")
    attention = Attention(
        path=_field(entry, "path", str),
        module=_field(entry, "module", str),
        kind=cast(Kind, kind),
        query_shape=_sizes(entry, "query_shape"),
        key_shape=_sizes(entry, "key_shape"),
        value_shape=_sizes(entry, "value_shape"),
        shape=(shape[0], shape[1], shape[2], shape[3]),
        key_heads=_field(entry, "key_heads", int),
        dtype=_DTYPES[dtype],
        scale=_number(entry, "scale") or 0.0,
        is_causal=_field(entry, "is_causal", bool),
        dropout=_number(entry, "dropout") or 0.0,
        fill=_number(entry, "fill"),
        difference=_number(entry, "difference"),
        remarks=tuple(remarks),
        sinks=_field(entry, "sinks", int) if "sinks" in entry else 0,
        role=cast(Role, role),
        **{name: _array(entry, name, arrays) for name in _ARRAYS},
    )
    _check_arrays(attention)
    return attention


def _check_arrays(attention: Attention) -> None:
    """Weights, mask and bias fit the sizes that the attention has."""
    for name in ("weights", "allowed", "bias"):
        array = getattr(attention, name)
        if array is None:
            continue
        sizes = (*(1,) * (4 - array.dim()), *array.shape)
        fits = array.dim() <= 4 and all(
            size == of_all or (axis < 2 and size <= of_all) or (size == 1 and name != "weights")
            for axis, (size, of_all) in enumerate(zip(sizes, attention.shape, strict=True))
        )
        if not fits:
            raise ValueError(
                f"{name} of {attention.path} is {tuple(array.shape)} in a recording: it must fit {attention.shape}"
            )
    if attention.allowed is not None and attention.allowed.dtype is not torch.bool:
        raise ValueError(
            f"allowed of {attention.path} is {attention.allowed.dtype} in a recording: it must be boolean"
        )


def _texts(about: Mapping[str, Any]) -> Texts:
    entry = _field(about, "texts", dict) if "texts" in about else {}
    found = {name: _list(entry, name, list) if name in entry else [] for name in _STACKS}
    if any(type(token) is not str for texts in found.values() for text in texts for token in text):
        raise ValueError("texts in the file must be lists of tokens")
    return Texts(*(tuple(map(tuple, found[name])) for name in _STACKS))


def _named_arrays(about: Mapping[str, Any], which: str, arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The arrays of the parameters, or of the inputs, by name; earlier files have none."""
    entry = _field(about, which, dict) if which in about else {}
    return {str(name): _one_of(arrays, number, which) for name, number in entry.items()}


def _stages_from_json(
    entry: Sequence[Mapping[str, Any]], arrays: Mapping[str, Tensor], parameters: Mapping[str, Tensor]
) -> list[Stage]:
    """The stages, without those expressions that do not come to what the stage has."""
    found = [_stage_from_json(each, arrays) for each in entry]
    values: dict[str, Tensor | None] = {}
    for i, stage in enumerate(found):
        node, value = stage.node, stage.value
        if node is not None and (value is None or not is_sound(node, value.shape, values, parameters)):
            found[i] = replace(stage, node=None)
        values[stage.path] = value
    return found


def _stage_from_json(entry: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> Stage:
    return Stage(
        path=_field(entry, "path", str),
        module=_field(entry, "module", str),
        operation=_field(entry, "operation", str),
        inputs=tuple(_list(entry, "inputs", str)),
        folded=tuple(_list(entry, "folded", str)),
        value=_array(entry, "value", arrays),
        node=from_json(entry.get("expression"), arrays),
    )


def _array(entry: Mapping[str, Any], name: str, arrays: Mapping[str, Tensor]) -> Tensor | None:
    number = entry.get(name)
    return None if number is None else _one_of(arrays, number, name)


def _one_of(arrays: Mapping[str, Tensor], number: object, name: str) -> Tensor:
    if not isinstance(number, str) or number not in arrays:
        raise ValueError(f"{name} ({number!r}) in the file is none of its arrays")
    return arrays[number]


def _number(entry: Mapping[str, Any], name: str) -> float | None:
    value = entry[name]
    if value is None:
        return None
    if value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} ({value!r}) in the file must be a number")
    return float(value)


def _sizes(entry: Mapping[str, Any], name: str) -> tuple[int, ...]:
    sizes = _list(entry, name, int)
    if any(size < 0 for size in sizes):
        raise ValueError(f"{name} {sizes} in the file must hold sizes")
    return tuple(sizes)


def _field(entry: Mapping[str, Any], name: str, of: type[_Read]) -> _Read:
    value = entry.get(name)
    if type(value) is not of:
        raise ValueError(f"{name} ({value!r}) in the file must be of the type {of.__name__}")
    return value


def _list(entry: Mapping[str, Any], name: str, of: type[_Read]) -> list[_Read]:
    values = entry.get(name)
    if not isinstance(values, list) or any(type(value) is not of for value in values):
        raise ValueError(f"{name} in the file must be a list of the type {of.__name__}")
    return values
