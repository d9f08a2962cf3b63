"""The payload: what is written can be read, in the promised layout and precision."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from visualizer.components.packing import Scaled, fit_precision, in_precision, pack

DTYPES = {"f4": "<f4", "f2": "<f2", "u1": "u1", "u2": "<u2", "i4": "<i4"}


def read(payload):
    """The header and the arrays of a payload, read by its description alone."""
    (length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + length])
    found = {}
    for name, entry in header["arrays"].items():
        count = int(np.prod(entry["shape"]))
        values = np.frombuffer(payload, DTYPES[entry["dtype"]], count, 4 + length + entry["offset"])
        found[name] = values.reshape(entry["shape"])
    return header, found


@given(
    text=st.text(max_size=40),
    matrix=arrays.arrays(np.float32, arrays.array_shapes(max_dims=4, max_side=5), elements=st.floats(width=32)),
    mask=arrays.arrays(np.uint8, arrays.array_shapes(max_dims=2, max_side=7)),
)
def test_what_is_packed_can_be_read(text, matrix, mask):
    header, found = read(pack({"text": text}, {"mask": mask, "matrix": matrix}))
    assert header["text"] == text
    np.testing.assert_array_equal(found["matrix"], matrix)
    np.testing.assert_array_equal(found["mask"], mask)


@dataclass(frozen=True, eq=False)
class Point:
    name: str
    inner: Point | None = None
    numbers: np.ndarray | None = None


class Named(Point):
    def as_header(self):
        return {"called": self.name}


def test_dataclasses_are_objects_without_their_arrays():
    points = (Point("a", Point("b", numbers=np.zeros(3))), Named("c"))
    header, _ = read(pack({"points": points}, {}))
    assert header["points"] == [
        {"name": "a", "inner": {"name": "b", "inner": None}, "numbers": None},
        {"called": "c"},
    ]
    with pytest.raises(TypeError):
        pack({"points": {1, 2}}, {})


def test_every_array_starts_on_a_multiple_of_eight():
    for text in ("", "a", "ab", "é", "🙂"):
        payload = pack({"text": text}, {"one": np.zeros(3, np.uint8), "two": np.zeros(1, np.float32)})
        (length,) = struct.unpack_from("<I", payload)
        assert (4 + length) % 8 == 0
        assert [entry["offset"] for entry in read(payload)[0]["arrays"].values()] == [0, 8]


def test_wider_dtypes_travel_as_those_of_the_browser():
    sources = {"double": np.array([0.5]), "long": np.array([-7]), "flag": np.array([True])}
    header, found = read(pack({}, sources))
    assert {name: entry["dtype"] for name, entry in header["arrays"].items()} == {
        "double": "f4",
        "long": "i4",
        "flag": "u1",
    }
    assert [found[name].item() for name in sources] == [0.5, -7, 1]


def test_an_array_that_is_not_contiguous_keeps_its_order():
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4).T
    np.testing.assert_array_equal(read(pack({}, {"m": matrix}))[1]["m"], matrix)


def test_a_number_that_the_browser_cannot_read_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        pack({"bound": float("nan")}, {})
    with pytest.raises(ValueError, match="'x' has dtype complex128"):
        pack({}, {"x": np.array([1j])})
    with pytest.raises(ValueError, match="'x' holds an integer"):
        pack({}, {"x": np.array([2**40])})


def test_precision_follows_the_budget():
    weights = np.linspace(0, 1, 1000, dtype=np.float32)
    assert fit_precision(weights, 4000) is weights
    sixteen, eight = fit_precision(weights, 3999), fit_precision(weights, 1999)
    assert isinstance(sixteen, Scaled)
    assert isinstance(eight, Scaled)
    assert np.abs(sixteen.numbers - weights).max() <= 0.5001 / 65535
    assert np.abs(eight.numbers - weights).max() <= 1.003 / 255


def test_eight_bits_keep_small_numbers_apart():
    weights = np.array([0, 1e-5, 2e-5, 4e-5, 0.02], np.float32)  # as of 512 tokens
    steps = in_precision(weights, "8")
    assert isinstance(steps, Scaled)
    assert steps.values.dtype == np.uint8
    assert len(set(steps.values.tolist())) == len(weights)
    assert steps.numbers[[0, -1]] == pytest.approx(weights[[0, -1]])
    assert np.abs(np.sqrt(steps.numbers) - np.sqrt(weights)).max() <= 0.501 * np.sqrt(0.02) / 255


def test_signed_numbers_become_float16_only_within_its_range():
    signed = np.array([-3.0, 2.0, np.inf, np.nan], np.float32)
    half = fit_precision(signed, 8)
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half.astype(np.float32), signed)
    assert fit_precision(np.array([1e5, -1.0], np.float32), 1).dtype == np.float32


def test_numbers_that_are_not_finite_are_never_turned_into_steps():
    assert fit_precision(np.array([0.0, np.nan, 1.0], np.float32), 1).dtype == np.float16
    assert fit_precision(np.array([np.nan, np.inf], np.float32), 1).dtype == np.float16


def test_a_scale_travels_with_its_array():
    header, found = read(pack({}, {"w": Scaled(np.array([0, 255], np.uint8), 1 / 255)}))
    assert header["arrays"]["w"]["scale"] == pytest.approx(1 / 255)
    assert found["w"].tolist() == [0, 255]
