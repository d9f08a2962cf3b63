"""Arrays in the files of NumPy, safetensors and PyTorch, by name.

What an archive unpacks to is known before anything is loaded. A .pt is read by PyTorch's weights-only loader, which
runs no code of the file, and only where the file asks for nothing but tensors.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors.torch import load
from torch import Tensor

from model.safetensors_header import read_header
from model.texts import texts_of
from visualizer.views.lab.mask_files.bounds import check_shape, quoted

say = texts_of(__name__)

Tensors = Mapping[str, Tensor]
_Read = TypeVar("_Read")

_MAX_UNPACKED = 2**25
_MAX_MEMBERS = 64
_MAX_PICKLE = _MAX_HEADER = 2**16
_MAX_NPY_HEADER = 1024

_DTYPES = frozenset(
    getattr(torch, name)
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
)
_STORAGES = ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double")
_NAMED_BY_TENSORS = {
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
    "collections OrderedDict",
    *(f"torch {dtype}Storage" for dtype in _STORAGES),
}


def _npy(data: bytes) -> Tensors:
    """The array of a .npy file."""
    return {"": _from_npy(data)}


def _npz(data: bytes) -> Tensors:
    """The arrays of a .npz file."""
    members = _members(data, ".npz")
    arrays = {name.removesuffix(".npy"): member for name, member in members.items() if name.endswith(".npy")}
    return _masks({name: partial(_from_npy, array) for name, array in arrays.items()})


def _safetensors(data: bytes) -> Tensors:
    """The tensors of a .safetensors file."""
    damaged = say("no_safetensors")
    read_header(io.BytesIO(data), damaged=damaged, most_bytes=_MAX_HEADER, most_tensors=_MAX_MEMBERS)
    tensors = _read(lambda: load(data), ".safetensors")
    return _masks({name: partial(_checked, tensor) for name, tensor in tensors.items()})


def _pt(data: bytes) -> Tensors:
    """The tensors that ``torch.save`` wrote: one, or those of a dictionary or a list."""
    members = _members(data, ".pt")
    pickled = next((member for name, member in members.items() if name.endswith("/data.pkl")), None)
    if pickled is None:
        raise ValueError(say("old_pt"))
    _check_pickle(pickled, len(members))
    loaded = _read(lambda: torch.load(io.BytesIO(data), map_location="cpu", weights_only=True), ".pt")
    return _masks({name: partial(_checked, tensor) for name, tensor in _tensors_in(loaded)})


BINARY_READERS: Mapping[str, Callable[[bytes], Tensors]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".pt": _pt,
    ".pth": _pt,
}
"""The readers by the ending of a file's name: each raises ValueError for another file, and one without a mask."""


def _read(read: Callable[[], _Read], ending: str) -> _Read:
    """Read a file, which fails in many ways where it is damaged."""
    try:
        return read()
    except Exception as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(say("unreadable", ending=ending, reason=quoted(reason))) from error


def _members(data: bytes, ending: str) -> dict[str, bytes]:
    """The members of a zip file, by name."""
    archive = _read(lambda: zipfile.ZipFile(io.BytesIO(data)), ending)
    infos = archive.infolist()
    if len(infos) > _MAX_MEMBERS:
        raise ValueError(say("many_members", ending=ending, n_members=len(infos), most=_MAX_MEMBERS))
    if sum(info.file_size for info in infos) > _MAX_UNPACKED:  # no more than that is unpacked of each
        raise ValueError(say("too_large", ending=ending, most=_MAX_UNPACKED // 2**20))
    return _read(lambda: {info.filename: archive.read(info) for info in infos}, ending)


def _check_pickle(pickled: bytes, n_members: int) -> None:
    """Refuse a .pt that names anything but tensors, or more storages than it has members.

    Only the names of the operations are read; nothing is carried out.
    """
    if len(pickled) > _MAX_PICKLE:
        raise ValueError(say("more_than_tensors"))
    operations = _read(lambda: [(step.name, argument) for step, argument, _ in pickletools.genops(pickled)], ".pt")
    for operation, name in operations:
        if operation == "GLOBAL" and name not in _NAMED_BY_TENSORS:
            raise ValueError(say("names_more", name=quoted(str(name))))
    if sum(operation == "BINPERSID" for operation, _ in operations) > n_members:
        raise ValueError(say("more_than_tensors"))


def _tensors_in(loaded: object) -> Iterator[tuple[str, Tensor]]:
    match loaded:
        case Tensor():
            yield "tensor", loaded
        case Mapping():
            yield from ((str(name), value) for name, value in loaded.items() if isinstance(value, Tensor))
        case list() | tuple():
            yield from ((str(index), value) for index, value in enumerate(loaded) if isinstance(value, Tensor))


def _masks(readers: Mapping[str, Callable[[], Tensor]]) -> Tensors:
    """Those arrays that can be masks; why not, where none can."""
    found, refused = {}, ""
    for name, read in readers.items():
        try:
            found[name] = read()
        except ValueError as error:
            refused = refused or f"{quoted(name)}: {error}"
    if not found:
        raise ValueError(refused or say("no_array"))
    return found


def _from_npy(data: bytes) -> Tensor:
    """The array of a .npy file; integers that PyTorch computes nothing with become int64, or float64 beyond it."""
    file = io.BytesIO(data)
    array: NDArray[Any] = _read(lambda: npy.read_array(file, max_header_size=_MAX_NPY_HEADER), ".npy")
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise ValueError(say("no_mask", dtype=quoted(array.dtype.str)))
    check_shape(array.shape)
    if array.dtype.kind == "b":  # a byte other than 0 and 1 is True
        return torch.from_numpy(array.view(np.uint8) != 0)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        is_beyond = array.max() > np.iinfo(np.int64).max
        array = array.astype(np.float64 if is_beyond else np.int64)
    return torch.from_numpy(array)


def _checked(tensor: Tensor) -> Tensor:
    check_shape(tensor.shape)
    is_plain = tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_meta
    if not is_plain or tensor.dtype not in _DTYPES:
        raise ValueError(say("no_mask", dtype=str(tensor.dtype).removeprefix("torch.")))
    return tensor.detach().contiguous()
