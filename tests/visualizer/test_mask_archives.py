"""Files with several arrays come back by name and type; nothing of them is run, what is too large is refused."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save

from visualizer.views.lab.mask_files import uploaded

CAUSAL = torch.ones(5, 5).tril().bool()
ADDED = torch.zeros(5, 5, dtype=torch.bfloat16).masked_fill(~CAUSAL, torch.finfo(torch.bfloat16).min)
HEADS = torch.stack([CAUSAL, CAUSAL.T])
TENSORS = {"mask": CAUSAL, "added": ADDED, "heads": HEADS, "row": CAUSAL[2].to(torch.uint8)}


def pt(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def changed(data: bytes, part: str, *, old: bytes = b"", new: bytes = b"", whole: bytes | None = None) -> bytes:
    """A zip file with one of its parts changed."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(file, "w") as after:
        for info in before.infolist():
            content = before.read(info)
            if info.filename.endswith(part):
                assert whole is not None or old in content
                content = content.replace(old, new) if whole is None else whole
            after.writestr(info.filename, content)
    return file.getvalue()


@pytest.mark.parametrize(("name", "write"), [("mask.pt", pt), ("mask.pth", pt), ("mask.safetensors", save)])
def test_tensors_come_back_by_name_and_type(name, write):
    read = uploaded(name, write(TENSORS))
    assert read.keys() == TENSORS.keys()
    for key, tensor in TENSORS.items():
        assert read[key].dtype is tensor.dtype
        assert torch.equal(read[key], tensor)


def test_npz_comes_back():
    read = uploaded("mask.npz", npz(mask=CAUSAL.numpy(), heads=HEADS.float().numpy(), names=np.array(["a"])))
    assert torch.equal(read["mask"], CAUSAL)
    assert torch.equal(read["heads"], HEADS.float())
    assert read.keys() == {"mask", "heads"}  # what is no mask is left out


@pytest.mark.parametrize("value", [CAUSAL, [CAUSAL], torch.nn.Parameter(ADDED.float()), CAUSAL.T, CAUSAL[1:, :3]])
def test_pt_of_one_tensor_comes_back(value):
    (read,) = uploaded("mask.pt", pt(value)).values()
    assert torch.equal(read, value[0] if isinstance(value, list) else value.detach())


class Trap:
    """Says so if it is ever unpickled."""

    def __reduce__(self):
        return spring, ()


SPRUNG = []


def spring() -> None:
    SPRUNG.append("sprung")


ZEROS = b"\0" * 2**26
WRONG = {
    "code": ("mask.pt", pt({"mask": CAUSAL, "trap": Trap()}), "holds more than tensors: it names"),
    "a bare pickle": ("mask.pt", pickle.dumps(Trap()), "this .pt file cannot be read"),
    "an old .pt": ("mask.pt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "this .pt file cannot be read"),
    "a storage that says more": (
        "mask.pt",
        changed(pt(CAUSAL), "data.pkl", old=b"cpuq\x04K\x19", new=b"cpuq\x04K\xff"),
        "cannot be read: 'record size",
    ),
    "a tensor that says more": (
        "mask.pt",
        changed(pt(CAUSAL), "data.pkl", old=b"K\x05K\x05\x86", new=b"K\x05K\xff\x86"),
        "cannot be read: 'Trying to resize",
    ),
    "a pickle that makes bytes": (
        "mask.pt",
        changed(pt(CAUSAL), "data.pkl", whole=b"\x80\x02c__builtin__\nbytearray\nM\xff\xff\x85R."),
        "holds more than tensors: it names",
    ),
    "a long pickle": (
        "mask.pt",
        changed(pt(CAUSAL), "data.pkl", whole=b"\x80\x02" + b"]0" * 2**16 + b"]."),
        "holds more than tensors",
    ),
    "a pickle of many storages": (
        "mask.pt",
        changed(pt(CAUSAL), "data.pkl", old=b"Q", new=b"Q" * 99),
        "holds more than tensors",
    ),
    "a damaged pickle": ("mask.pt", changed(pt(CAUSAL), "data.pkl", whole=b"\xff"), "cannot be read"),
    "a damaged part": ("mask.npz", npz(mask=CAUSAL.numpy()).replace(b"PK\x05", b"PK\x09"), "cannot be read"),
    "no pickle": ("mask.pt", npz(mask=CAUSAL.numpy()), "this is not a .pt file of torch.save"),
    "no tensor": ("mask.pt", pt({"n": 3}), "there is no array in the file"),
    "a strange type": ("mask.pt", pt(torch.zeros(2, 2, dtype=torch.complex64)), "more than tensors|complex64"),
    "too large": ("mask.npz", npz(mask=np.zeros((2049, 2))), "'mask': the array has more than 2,048 rows"),
    "a bomb": ("mask.npz", npz(mask=np.frombuffer(ZEROS, dtype=np.uint8)), "unpacks to more than 32 MiB"),
    "many parts": ("mask.npz", npz(**{f"a{i}": np.zeros(1) for i in range(65)}), "holds 65 parts"),
    "objects": ("mask.npz", npz(mask=np.array([[Trap()]], dtype=object)), "Object arrays cannot be loaded"),
    "nothing": ("mask.npz", npz(), "there is no array in the file"),
    "no safetensors": ("mask.safetensors", b"\xff" * 99, "this .safetensors file cannot be read"),
    "a cut safetensors": ("mask.safetensors", save({"mask": CAUSAL})[:-1], "this .safetensors file cannot be read"),
    "many tensors": ("mask.safetensors", save({f"a{i}": CAUSAL.clone() for i in range(66)}), "more than 64 arrays"),
    "a long header": ("mask.safetensors", save({"a": CAUSAL}, {"b": "c" * 2**16}), "the header of the file has"),
    "a scalar": ("mask.safetensors", save({"a": torch.tensor(1.0)}), "'a': this is a single number"),
}


@pytest.mark.parametrize(("name", "data", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_archive_is_refused_with_the_reason(name, data, message):
    with pytest.raises(ValueError, match=message):
        uploaded(name, data)
    assert not SPRUNG


def test_a_view_of_one_number_takes_no_memory():
    huge = torch.zeros(1, dtype=torch.bool).expand(10**6, 10**6)
    file = io.BytesIO()
    torch.save(huge, file)
    with pytest.raises(ValueError, match="more than 2,048 rows"):
        uploaded("mask.pt", file.getvalue())
