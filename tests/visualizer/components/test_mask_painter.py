"""The mask painter's messages to the browser and from it."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.visualizer.unpacking import unpacked
from visualizer.components.axis import Axis
from visualizer.components.mask_painter.element import (
    FindingMark,
    Reason,
    parse_mask,
    parse_mend,
    parse_select,
    payload,
)

oblongs = st.tuples(st.integers(1, 20), st.integers(1, 20)).flatmap(lambda size: arrays(np.bool_, size))


def sized(n_queries, n_keys):
    return {"n_queries": n_queries, "n_keys": n_keys}


def event(blocked, seq=1):
    """The event as the browser makes it: the first cell is the highest bit of the first byte."""
    bits = "".join("1" if cell else "0" for cell in blocked.ravel())
    padded = bits.ljust(-(-len(bits) // 8) * 8, "0")
    data = bytes(int(padded[start : start + 8], 2) for start in range(0, len(padded), 8))
    return {"blocked": base64.b64encode(data).decode(), **sized(*blocked.shape), "seq": seq}


def packed(painted, labels=("the", "cat", "sat"), header=None, keys=(), **changes):
    """The payload of a painter that is given nothing else."""
    others = np.zeros(np.shape(painted), dtype=np.uint8)
    given = {"others": others, "reasons": (), "weights": None, "findings": ()}
    axes = {"rows": Axis("query", labels, "target"), "columns": Axis("key", keys or labels, "source")}
    return payload(painted, header=header or {}, **(given | axes | changes))


def finding(cells, title="Padding can be seen", severity="warning"):
    return FindingMark(title, severity, "It carries no meaning.", "Block its columns.", np.asarray(cells), True)


@given(oblongs)
def test_what_was_painted_arrives(blocked):
    parsed = parse_mask(event(blocked), *blocked.shape)
    assert parsed is not None
    assert parsed.dtype == np.bool_
    np.testing.assert_array_equal(parsed, blocked)


def test_the_largest_mask_arrives():
    blocked = np.triu(np.ones((512, 512), dtype=bool), 1)
    np.testing.assert_array_equal(parse_mask(event(blocked), 512, 512), blocked)


@given(oblongs, st.integers(1, 20), st.integers(1, 20))
def test_a_stroke_on_another_number_of_tokens_is_none(blocked, n_queries, n_keys):
    if (n_queries, n_keys) != blocked.shape:
        assert parse_mask(event(blocked), n_queries, n_keys) is None
        assert parse_mask(event(blocked) | sized(n_queries, n_keys), *blocked.shape) is None


def test_a_stroke_of_as_many_bytes_on_another_number_of_tokens_is_none():
    """Masks of 1 and of 2 tokens are both one byte long."""
    assert parse_mask(event(np.array([[False]])), 2, 2) is None
    assert parse_mask(event(np.zeros((2, 3), dtype=bool)), 3, 2) is None


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
    about_three = value | sized(3, 3) if isinstance(value, dict) else value
    assert parse_mask(about_three, 3, 3) is None


@pytest.mark.parametrize("n_tokens", [None, "3", 3.0, 2, 4, -3, True, [3]])
def test_a_stroke_must_say_how_many_tokens_it_is_about(n_tokens):
    sent = event(np.eye(3, dtype=bool))
    assert parse_mask(sent, 3, 3) is not None
    assert parse_mask(sent | {"n_queries": n_tokens}, 3, 3) is None
    assert parse_mask(sent | {"n_keys": n_tokens}, 3, 3) is None


def test_true_is_not_one_token():
    assert parse_mask(event(np.array([[True]])) | {"n_keys": True}, 1, 1) is None


@given(st.one_of(st.text(), st.dictionaries(st.sampled_from(["blocked", "seq"]), st.text())))
def test_any_text_is_read_without_an_error(value):
    about_two = value | sized(2, 2) if isinstance(value, dict) else value
    parsed = parse_mask(about_two, 2, 2)
    assert parsed is None or parsed.shape == (2, 2)


@given(st.integers(-3, 8), st.integers(-3, 8), st.integers(1, 5), st.integers(1, 5))
def test_a_selected_cell_is_one_of_the_grid(query, key, n_queries, n_keys):
    inside = 0 <= query < n_queries and 0 <= key < n_keys
    expected = (query, key) if inside else None
    assert parse_select({"query": query, "key": key, "seq": 1}, n_queries, n_keys) == expected


@given(st.integers(-3, 8), st.integers(0, 5))
def test_a_finding_to_mend_is_one_of_the_list(index, n_findings):
    assert parse_mend({"finding": index, "seq": 1}, n_findings) == (index if 0 <= index < n_findings else None)


@pytest.mark.parametrize("value", [None, 0, "0", [], {}, {"seq": 1}])
def test_an_event_without_its_facts_is_none(value):
    assert parse_select(value, 3, 3) is None
    assert parse_mend(value, 3) is None


@pytest.mark.parametrize("number", [None, "0", 0.0, True, [0], float("nan")])
def test_an_index_is_a_whole_number(number):
    assert parse_mend({"finding": number}, 3) is None
    assert parse_select({"query": number, "key": 0}, 3, 3) is None
    assert parse_select({"query": 0, "key": number}, 3, 3) is None


def test_the_browser_receives_both_axes_and_one_bit_per_cell():
    painted = np.array([[False, True], [False, False], [True, True]])
    header, found = unpacked(packed(painted, keys=("the", "dog"), header={"key": "painter", "seq": 4}))
    assert (header["key"], header["seq"]) == ("painter", 4)
    assert header["rows"] == {"name": "query", "labels": ["the", "cat", "sat"], "sequence": "target", "numbers": []}
    assert header["columns"] == {"name": "key", "labels": ["the", "dog"], "sequence": "source", "numbers": []}
    assert found["painted"].tolist() == [0b01001100]
    assert "weights" not in found
    assert "found" not in found


def test_the_browser_receives_reasons_with_the_painting_as_the_last():
    others = np.array([[0, 3], [2, 1]], dtype=np.uint8)
    reasons = (Reason("causal", "causal"), Reason("sliding_window", "window of 3"))
    data = packed(np.zeros((2, 2), dtype=bool), ("a", "b"), others=others, reasons=reasons)
    header, found = unpacked(data)
    np.testing.assert_array_equal(found["others"], others)
    assert header["reasons"] == [
        {"name": "causal", "label": "causal"},
        {"name": "sliding_window", "label": "window of 3"},
        {"name": "custom", "label": "painted"},
    ]


def test_the_browser_receives_weights_in_single_precision():
    weights = np.random.default_rng(0).random((3, 3))
    _, found = unpacked(packed(np.zeros((3, 3), dtype=bool), weights=weights))
    np.testing.assert_array_equal(found["weights"], weights.astype(np.float32))


@given(st.integers(1, 6), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_browser_receives_the_cells_of_each_finding(size, n_findings, random):
    cells = [
        np.array([[random.random() < 0.5 for _ in range(size)] for _ in range(size)]) for _ in range(n_findings)
    ]
    findings = tuple(finding(one, title=f"finding {i}") for i, one in enumerate(cells))
    header, found = unpacked(packed(np.zeros((size, size), dtype=bool), ("a",) * size, findings=findings))
    assert [one["title"] for one in header["findings"]] == [f"finding {i}" for i in range(n_findings)]
    assert header["findings"][0] == {
        "title": "finding 0",
        "severity": "warning",
        "why": "It carries no meaning.",
        "mend": "Block its columns.",
        "can_mend": True,
    }
    for one, bits in zip(cells, found["found"], strict=True):
        assert np.unpackbits(bits)[: size * size].tolist() == one.ravel().tolist()


@pytest.mark.parametrize(("shape", "labels"), [((2, 3), ("a", "b")), ((3, 3), ("a", "b")), ((0, 0), ())])
def test_a_mask_needs_one_row_and_one_column_per_label(shape, labels):
    with pytest.raises(ValueError, match="painted has shape"):
        packed(np.zeros(shape, dtype=bool), labels)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("others", {"others": np.zeros((2, 2), dtype=np.uint8)}),
        ("weights", {"weights": np.zeros((1, 3, 3), dtype=np.float32)}),
        ("cells of 'Padding can be seen'", {"findings": (finding([[True]]),)}),
    ],
)
def test_everything_has_the_shape_of_the_mask(name, changes):
    with pytest.raises(ValueError, match=f"^{name} has shape"):
        packed(np.zeros((3, 3), dtype=bool), **changes)


def test_a_bit_needs_a_reason():
    others = np.full((3, 3), 2, dtype=np.uint8)
    two = (Reason("causal", "causal"), Reason("padding", "padding"))
    packed(np.zeros((3, 3), dtype=bool), others=others, reasons=two)
    with pytest.raises(ValueError, match="others has 2 bits, so reasons must be at least 2, not 1"):
        packed(np.zeros((3, 3), dtype=bool), others=others, reasons=two[:1])


def test_a_reason_needs_a_bit_and_a_colour():
    causal = Reason("causal", "causal")
    with pytest.raises(ValueError, match="reasons are 9"):
        packed(np.zeros((3, 3), dtype=bool), reasons=(causal,) * 9)
    with pytest.raises(ValueError, match="'diagonal' has no colour: it must be one of causal, padding"):
        packed(np.zeros((3, 3), dtype=bool), reasons=(Reason("diagonal", "diagonal"),))
