"""Files that hold several arrays by name: .npz, .safetensors and .pt.

What they will take is known before anything is loaded. A .pt is read by PyTorch's weights-only loader, which runs
no code of the file, and only where the file asks for nothing but tensors and names no more entries than it holds.
"""

from __future__ import annotations

import io
import math
import pickletools
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from model.safetensors_header import read_header
from model.texts import texts_of
from visualizer.views.lab.mask_files.entries import check_shape, quoted
from visualizer.views.lab.mask_files.npy import read_npy

say = texts_of(__name__)
_MAX_UNPACKED = 2**25
_MAX_MEMBERS = 64
_MAX_PICKLE = _MAX_HEADER = 2**16

Arrays = Mapping[str, Tensor]


def read_npz(data: bytes) -> Arrays:
    """The arrays of a .npz file.

    Raises:
        ValueError: it is none, or holds no mask.
    """
    members = _members(data, ".npz")
    names = [name for name in members if name.endswith(".npy")]
    return _masks({name.removesuffix(".npy"): partial(_from_npy, members[name]) for name in names})


def _from_npy(data: bytes) -> Tensor:
    return torch.from_numpy(read_npy(data))


def read_safetensors(data: bytes) -> Arrays:
    """The tensors of a .safetensors file.

    Raises:
        ValueError: it is none, or holds no mask.
    """
    damaged = say("no_archive", ending=".safetensors")
    read_header(io.BytesIO(data), damaged=damaged, most_bytes=_MAX_HEADER, most_tensors=_MAX_MEMBERS)
    try:
        tensors = load(data)
    except (SafetensorError, KeyError, RuntimeError, TypeError, OverflowError):
        raise ValueError(damaged) from None
    return _masks({name: partial(_as_is, tensor) for name, tensor in tensors.items()})


def read_pt(data: bytes) -> Arrays:
    """The tensors that ``torch.save`` wrote: one, or those of a dictionary or a list.

    Raises:
        ValueError: it is none, asks for more than tensors, or holds no mask.
    """
    members = _members(data, ".pt")
    pickled = next((name for name in members if name.rpartition("/")[2] == "data.pkl"), None)
    if pickled is None:
        raise ValueError(say("old_pt"))
    _check_pickle(members, pickled)
    try:
        loaded = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can fail in many ways
        raise ValueError(say("bad_pt")) from error
    return _masks({name: partial(_as_is, tensor) for name, tensor in _tensors(loaded)})


def _as_is(tensor: Tensor) -> Tensor:
    return tensor


ARCHIVES: Mapping[str, Callable[[bytes], Arrays]] = {
    ".npz": read_npz,
    ".safetensors": read_safetensors,
    ".pt": read_pt,
}
"""The readers by the ending of the file's name."""


def _members(data: bytes, ending: str) -> dict[str, bytes]:
    """Return the members of a zip file, by name."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if len({info.filename for info in infos}) < len(infos):
                raise ValueError(say("same_names", ending=ending))
            if len(infos) > _MAX_MEMBERS:
                raise ValueError(say("many_parts", ending=ending, n_parts=len(infos), most=_MAX_MEMBERS))
            if sum(info.file_size for info in infos) > _MAX_UNPACKED:
                raise ValueError(say("too_large", ending=ending, most=_MAX_UNPACKED // 2**20))
            return {info.filename: _unpacked(archive, info, ending) for info in infos}
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        OSError,
        zipfile.LargeZipFile,
    ) as error:
        raise ValueError(say("no_archive", ending=ending)) from error


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, ending: str) -> bytes:
    with archive.open(info) as member:
        found = member.read(info.file_size + 1)
    if len(found) != info.file_size:
        raise ValueError(say("other_size", ending=ending))
    return found


def _masks(readers: Mapping[str, Callable[[], Tensor]]) -> Arrays:
    """Those arrays that can be masks; why not, where none can."""
    found, refused = {}, ""
    for name, read in readers.items():
        try:
            found[name] = _checked(read())
        except ValueError as error:
            refused = refused or f"{quoted(name)}: {error}"
    if not found:
        raise ValueError(refused or say("no_array"))
    return found


def _checked(tensor: Tensor) -> Tensor:
    check_shape(tensor.shape)
    is_plain = tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_meta
    if not is_plain or tensor.is_complex() or tensor.dtype not in _TYPES:
        raise ValueError(say("no_mask", dtype=str(tensor.dtype).removeprefix("torch.")))
    return tensor.detach().contiguous()


_TYPES = frozenset(
    getattr(torch, name)
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
)


def _tensors(loaded: object) -> Iterator[tuple[str, Tensor]]:
    if isinstance(loaded, Tensor):
        yield "tensor", loaded
    elif isinstance(loaded, Mapping):
        yield from ((str(name), value) for name, value in loaded.items() if isinstance(value, Tensor))
    elif isinstance(loaded, list | tuple):
        yield from ((str(index), value) for index, value in enumerate(loaded) if isinstance(value, Tensor))


_KNOWN = {
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
    "collections OrderedDict",
}
_WIDTHS = {
    "BoolStorage": 1,
    "ByteStorage": 1,
    "CharStorage": 1,
    "ShortStorage": 2,
    "HalfStorage": 2,
    "BFloat16Storage": 2,
    "IntStorage": 4,
    "FloatStorage": 4,
    "LongStorage": 8,
    "DoubleStorage": 8,
}
"""The storages of a .pt file, and the bytes of one of their entries."""


class _MoreThanTensorsError(ValueError):
    """A .pt file asks for something that is no tensor."""


def _check_pickle(members: Mapping[str, bytes], pickled: str) -> None:
    """Refuse a file that names anything but tensors, or storages that are not as long as they say.

    Only the names of the operations are read here; nothing is carried out.
    """
    if len(members[pickled]) > _MAX_PICKLE:
        raise _MoreThanTensorsError(say("more_than_tensors"))
    folder = pickled.rpartition("/")[0]
    pushed: list[object] = []
    memo: dict[int, object] = {}
    try:
        for operation, given, _ in pickletools.genops(members[pickled]):
            name = operation.name
            if name in ("STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID"):
                raise _MoreThanTensorsError(say("more_than_tensors"))
            if name == "GLOBAL":
                _check_global(str(given))
            if name == "BINPERSID":
                _check_storage(members, folder, pushed[-5:])
            elif name in ("BINPUT", "LONG_BINPUT"):
                memo[int(given or 0)] = pushed[-1] if pushed else None
            elif name in ("BINGET", "LONG_BINGET"):
                pushed.append(memo.get(int(given or 0)))
            elif name in ("GLOBAL", "BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"):
                pushed.append(given)
    except (ValueError, IndexError) as error:
        raise ValueError(str(error) if isinstance(error, _MoreThanTensorsError) else say("damaged_pt")) from None


def _check_global(name: str) -> None:
    module, _, kind = name.partition(" ")
    if name not in _KNOWN and not (module == "torch" and kind in _WIDTHS):
        raise _MoreThanTensorsError(say("names_more", name=quoted(name)))


def _check_storage(members: Mapping[str, bytes], folder: str, described: list[object]) -> None:
    """Check the record of a storage: "storage", its type, the file's part, the device, its entries."""
    if len(described) != 5 or described[0] != "storage":
        raise ValueError("a storage is not described")
    kind, part, count = str(described[1]).partition(" ")[2], str(described[2]), described[4]
    held = members.get(f"{folder}/data/{part}")
    if held is None or not isinstance(count, int) or count * _WIDTHS.get(kind, math.inf) != len(held):
        raise ValueError("a storage is not as long as it says")
