import base64
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from visualizer.settings.painted_mask import (
    EVERYWHERE,
    Scope,
    decode_cells,
    encode_cells,
    is_cells,
    read_planes,
    source_at,
    write_planes,
)

squares = st.integers(1, 20).flatmap(lambda n: arrays(np.bool_, (n, n)))
oblongs = st.tuples(st.integers(1, 20), st.integers(1, 20)).flatmap(lambda size: arrays(np.bool_, size))
places = st.none() | st.integers(0, 15)
sources = st.sampled_from(["", "k <= q", "q - k < 4 and not is_pad(k)"]) | squares.map(encode_cells)
paintings = st.dictionaries(st.builds(Scope, places, places), sources, max_size=6)


@given(oblongs)
def test_cells_survive_the_link(blocked):
    np.testing.assert_array_equal(decode_cells(encode_cells(blocked), *blocked.shape), blocked)


@given(oblongs, st.integers(1, 25), st.integers(1, 25))
def test_another_length_keeps_the_cells_that_both_have(blocked, n_queries, n_keys):
    decoded = decode_cells(encode_cells(blocked), n_queries, n_keys)
    assert decoded.shape == (n_queries, n_keys)
    rows, columns = min(len(blocked), n_queries), min(blocked.shape[1], n_keys)
    np.testing.assert_array_equal(decoded[:rows, :columns], blocked[:rows, :columns])
    assert decoded.sum() == blocked[:rows, :columns].sum()


def test_a_square_is_written_as_before_there_were_other_sizes():
    assert encode_cells(np.eye(4, dtype=bool)) == "~AASEIQ"


@given(paintings)
def test_a_painting_survives_the_link(planes):
    text = write_planes(planes)
    read = read_planes(text)
    assert write_planes(read) == text
    for layer in range(16):
        assert source_at(read, layer, 3) == source_at(planes, layer, 3)


@given(st.text())
def test_any_text_is_read_or_refused_in_words(text):
    with suppress(ValueError):
        planes = read_planes(text)
        assert all(decode_cells(source, 5, 6).shape == (5, 6) for source in planes.values() if is_cells(source))


def test_nothing_painted_is_no_text():
    assert encode_cells(np.zeros((4, 4), dtype=bool)) == ""
    assert write_planes({}) == write_planes({EVERYWHERE: ""}) == ""
    assert write_planes({Scope(1, None): "", Scope(None, 2): ""}) == ""


def test_the_narrowest_plane_holds():
    planes = {EVERYWHERE: "a", Scope(None, 1): "b", Scope(0, None): "c", Scope(0, 1): "d"}
    assert [source_at(planes, layer, head) for layer in (0, 1) for head in (0, 1)] == ["c", "d", "a", "b"]


def test_one_head_can_be_left_open():
    assert read_planes("k <= q;*.1:") == {EVERYWHERE: "k <= q", Scope(None, 1): ""}


def test_the_form_of_a_link():
    planes = {Scope(None, 2): "k == q", EVERYWHERE: "k <= q", Scope(1, 0): "q == k"}
    assert write_planes(planes) == "k <= q;*.2:k == q;1.0:q == k"


def test_64_by_64_random_cells_fit_a_link():
    blocked = np.random.default_rng(0).random((64, 64)) < 0.5
    assert len(encode_cells(blocked)) < 700


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("~a", "is not base64url"),
        ("~AAI", "does not hold one bit per cell"),
        ("~AAAA", "does not hold one bit per cell"),
        ("~QAIAAA", "does not hold one bit per cell"),
        ("k ≤ q", "holds characters that no expression has"),
        ("k <= q;k < q", "paints the same heads twice"),
        ("99.0:k;99.0:q", "paints the same heads twice"),
    ],
)
def test_other_texts_are_refused(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        read_planes(text)


def test_a_text_that_inflates_without_end_is_refused():
    bomb = zlib.compress(bytes(10_000_000), 9, wbits=-15)
    packed = base64.urlsafe_b64encode((512 | 1 << 15).to_bytes(2, "big") + bomb).decode().rstrip("=")
    with pytest.raises(ValueError, match="one bit per cell"):
        decode_cells(f"~{packed}", 4, 4)
