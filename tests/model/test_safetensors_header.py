"""A header is refused before it is parsed where it is too long or names too many tensors."""

from __future__ import annotations

import io
import json

import pytest
import torch
from safetensors.torch import save

from model import safetensors_header
from model.safetensors_header import read_header


def opened(content: bytes) -> io.BytesIO:
    return io.BytesIO(len(content).to_bytes(8, "little") + content)


def with_tensors(count: int, **about: str) -> bytes:
    tensor = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    return json.dumps({"__metadata__": about} | {f"{{{i}": tensor for i in range(count)}, indent=1).encode()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the list of all texts that are parsed as JSON from now on."""
    given: list[bytes] = []
    loads = json.loads
    monkeypatch.setattr(safetensors_header.json, "loads", lambda text: given.append(text) or loads(text))
    return given


def test_the_header_is_what_was_saved():
    file = io.BytesIO(save({"a": torch.zeros(2, 3)}, {"about": "é"}))
    assert read_header(file, damaged="no") == {
        "__metadata__": {"about": "é"},
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    }


def test_as_many_tensors_as_may_be_are_read_whatever_the_metadata_hold():
    about = {"of": json.dumps({"many": [{"objects": i} for i in range(99)]})}
    assert len(read_header(opened(with_tensors(5, **about)), damaged="no", most_tensors=5)) == 6


def test_more_tensors_are_refused_unparsed(parsed):
    with pytest.raises(ValueError, match=r"^the file holds more than 5 arrays, the limit$"):
        read_header(opened(with_tensors(6, of="a person")), damaged="no", most_tensors=5)
    assert not parsed


def test_a_longer_header_is_refused_unparsed(parsed):
    with pytest.raises(ValueError, match=r"^the header of the file has \d+ bytes; the limit is 99$"):
        read_header(opened(b"{" + b" " * 99 + b"}"), damaged="no", most_bytes=99)
    assert not parsed


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 7, (10**9).to_bytes(8, "little") + b"{}", opened(b"[]").read(), opened(b"{x").read()]
)
def test_what_has_no_header_is_called_damaged(content):
    with pytest.raises(ValueError, match=r"^it is damaged$"):
        read_header(io.BytesIO(content), damaged="it is damaged")


def test_a_deep_header_is_called_damaged():
    with pytest.raises(ValueError, match=r"^it is damaged$"):
        read_header(opened(b"[" * 100_000), damaged="it is damaged")
