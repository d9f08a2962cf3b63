import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from visualizer.custom_mask import decode_mask, encode_mask

squares = st.integers(1, 20).flatmap(lambda n: arrays(np.bool_, (n, n)))


@given(squares)
def test_a_mask_survives_the_link(blocked):
    np.testing.assert_array_equal(decode_mask(encode_mask(blocked), len(blocked)), blocked)


@given(squares, st.integers(1, 25))
def test_another_length_keeps_the_cells_that_both_have(blocked, n_tokens):
    decoded = decode_mask(encode_mask(blocked), n_tokens)
    shared = min(len(blocked), n_tokens)
    np.testing.assert_array_equal(decoded[:shared, :shared], blocked[:shared, :shared])
    assert decoded.sum() == blocked[:shared, :shared].sum()


@given(st.text())
def test_any_text_is_read_without_an_error(text):
    assert decode_mask(text, 5).shape == (5, 5)


def test_nothing_painted_is_no_text():
    assert encode_mask(np.zeros((4, 4), dtype=bool)) == ""
