"""What the mask painter sends to the browser and accepts from it."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from visualizer.components.mask_painter import parse_mask
from visualizer.components.mask_painter.element import payload

squares = st.integers(1, 20).flatmap(lambda n: arrays(np.bool_, (n, n)))


def event(blocked, seq=1):
    """The event as the browser makes it: the first cell is the highest bit of the first byte."""
    bits = "".join("1" if cell else "0" for cell in blocked.ravel())
    padded = bits.ljust(-(-len(bits) // 8) * 8, "0")
    data = bytes(int(padded[start : start + 8], 2) for start in range(0, len(padded), 8))
    return {"blocked": base64.b64encode(data).decode(), "seq": seq}


@given(squares)
def test_what_was_painted_arrives(blocked):
    parsed = parse_mask(event(blocked), len(blocked))
    assert parsed is not None
    assert parsed.dtype == np.bool_
    np.testing.assert_array_equal(parsed, blocked)


def test_the_largest_mask_arrives():
    blocked = np.triu(np.ones((512, 512), dtype=bool), 1)
    np.testing.assert_array_equal(parse_mask(event(blocked), 512), blocked)


@given(squares, st.integers(1, 20))
def test_a_stroke_on_another_number_of_tokens_is_none(blocked, n_tokens):
    same_bytes = (len(blocked) ** 2 + 7) // 8 == (n_tokens**2 + 7) // 8
    if not same_bytes:
        assert parse_mask(event(blocked), n_tokens) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        "gAA=",
        ["gAA="],
        {},
        {"seq": 1},
        {"blocked": None},
        {"blocked": 7},
        {"blocked": b"gAA="},
        {"blocked": ""},
        {"blocked": "gA=="},
        {"blocked": "gAAA"},
        {"blocked": "gAA"},
        {"blocked": "gAA=gAA="},
        {"blocked": "g A="},
        {"blocked": "g-_="},
        {"blocked": "ééé="},
        {"blocked": "===="},
        {"blocked": "gP8="},
        {"blocked": "A" * 10_000_000},
    ],
)
def test_anything_else_from_the_browser_is_none(value):
    assert parse_mask(value, 3) is None


@given(st.one_of(st.text(), st.dictionaries(st.sampled_from(["blocked", "seq"]), st.text())))
def test_any_text_is_read_without_an_error(value):
    parsed = parse_mask(value, 2)
    assert parsed is None or parsed.shape == (2, 2)


def test_the_browser_receives_both_axes_and_one_bit_per_cell():
    blocked = np.array([[False, True, False], [False, False, True], [True, True, True]])
    data = payload(blocked, ("the", "cat", "sat"), "target", 4, "painter")
    data_start = 4 + int.from_bytes(data[:4], "little")
    header = json.loads(data[4:data_start])
    assert (header["key"], header["seq"]) == ("painter", 4)
    assert header["rows"] == {"name": "query", "labels": ["the", "cat", "sat"], "sequence": "target"}
    assert header["columns"] == {"name": "key", "labels": ["the", "cat", "sat"], "sequence": "target"}
    assert header["arrays"]["blocked"]["shape"] == [2]
    assert data[data_start : data_start + 2] == bytes([0b01000111, 0b10000000])


@pytest.mark.parametrize(("shape", "labels"), [((2, 3), ("a", "b")), ((3, 3), ("a", "b")), ((0, 0), ())])
def test_a_mask_needs_one_row_and_one_column_per_label(shape, labels):
    with pytest.raises(ValueError, match="labels"):
        payload(np.zeros(shape, dtype=bool), labels, "source", 0, "painter")
