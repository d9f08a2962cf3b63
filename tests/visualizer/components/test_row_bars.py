"""The messages of the table of bar charts to the browser, and what it refuses."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest

from visualizer.components.axis import Axis
from visualizer.components.row_bars import BarCell, BarRow, Remark
from visualizer.components.row_bars.element import payload

KEYS = Axis("key", ("the", "cat", "sat"), "source")
COLUMNS = ("float32", "float16")
BLOCKED = np.array([False, False, True])


def cell(*weights, leak="leak 0", outcome="NaN"):
    return BarCell(
        np.array(weights, np.float64),
        (Remark(leak, leak != "leak 0"),),
        np.full(3, np.nan, np.float32),
        Remark(outcome, True),
    )


ROWS = (
    BarRow("−∞", "scores.softmax(-1)", "A note.", (cell(0.25, 0.75, 0.0), cell(0.5, 0.5, 0.0))),
    BarRow("−1e4", "code", "Another.", (cell(0.2, 0.3, 0.5, leak="leak 0.5"), cell(np.nan, np.nan, np.nan))),
)
REFERENCE = np.array([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]])


def sent(rows=ROWS, **changes):
    """The header and the arrays that the browser receives."""
    arguments = {
        "columns": COLUMNS,
        "keys": KEYS,
        "blocked": BLOCKED,
        "reference": REFERENCE,
        "key": "bars",
    } | changes
    packed = payload(rows, **arguments)
    (length,) = struct.unpack_from("<I", packed)
    header = json.loads(packed[4 : 4 + length])
    arrays = {}
    for name, entry in header.pop("arrays").items():
        dtype = {"f4": "<f4", "u1": "u1"}[entry["dtype"]]
        count = int(np.prod(entry["shape"]))
        arrays[name] = np.frombuffer(packed, dtype, count, 4 + length + entry["offset"]).reshape(entry["shape"])
    return header, arrays


def test_every_number_arrives_in_its_place():
    _, arrays = sent()
    assert arrays["weights"].shape == arrays["fully_blocked"].shape == (2, 2, 3)
    for row, line in enumerate(ROWS):
        for column, one in enumerate(line.cells):
            np.testing.assert_array_equal(arrays["weights"][row, column], one.weights.astype(np.float32))
            np.testing.assert_array_equal(arrays["fully_blocked"][row, column], one.fully_blocked)
    np.testing.assert_array_equal(arrays["blocked"], [0, 0, 1])
    np.testing.assert_array_equal(arrays["reference"], REFERENCE)


def test_the_words_arrive_with_what_is_a_warning():
    header, _ = sent()
    assert (header["key"], header["columns"]) == ("bars", ["float32", "float16"])
    assert header["keys"] == {"name": "key", "labels": ["the", "cat", "sat"], "sequence": "source"}
    assert [(row["title"], row["code"], row["note"]) for row in header["rows"]] == [
        ("−∞", "scores.softmax(-1)", "A note."),
        ("−1e4", "code", "Another."),
    ]
    assert header["rows"][1]["cells"][0] == {
        "remarks": [{"text": "leak 0.5", "warning": True}],
        "outcome": {"text": "NaN", "warning": True},
    }
    assert header["rows"][0]["cells"][1]["remarks"] == [{"text": "leak 0", "warning": False}]


def test_the_smallest_leak_of_a_type_is_not_lost():
    tiny = np.array([1.0, 0.0, np.finfo(np.float32).smallest_subnormal])
    rows = (replace(ROWS[0], cells=(replace(ROWS[0].cells[0], weights=tiny), ROWS[0].cells[1])),)
    assert sent(rows)[1]["weights"][0, 0, 2] > 0


def test_without_a_reference_none_is_sent():
    assert "reference" not in sent(reference=None)[1]


@pytest.mark.parametrize(
    ("rows", "changes", "match"),
    [
        ((), {}, "0 rows, 2 columns and 3 keys: there must be at least one of each"),
        (ROWS, {"columns": ()}, "0 columns"),
        (ROWS, {"keys": Axis("key", ())}, "0 keys"),
        (ROWS, {"columns": ("float32",)}, r"row '−∞' has 2 cells for 1 columns"),
        ((replace(ROWS[1], cells=ROWS[1].cells[:1]),), {}, r"row '−1e4' has 1 cells for 2 columns"),
        (ROWS, {"keys": Axis("key", ("a", "b"))}, r"weights in row '−∞' has shape \(3,\): it must be \(2,\)"),
        (
            (replace(ROWS[0], cells=(replace(ROWS[0].cells[0], fully_blocked=np.zeros(4)), ROWS[0].cells[1])),),
            {},
            r"fully_blocked in row '−∞' has shape \(4,\)",
        ),
        (ROWS, {"blocked": np.zeros((1, 3), bool)}, r"blocked has shape \(1, 3\): it must be \(3,\)"),
        (ROWS, {"reference": REFERENCE[0]}, r"reference has shape \(3,\): it must be \(2, 3\)"),
    ],
)
def test_what_does_not_fit_is_refused(rows, changes, match):
    with pytest.raises(ValueError, match=match):
        sent(rows, **changes)
