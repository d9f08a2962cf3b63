"""A mask that is painted in a cell of a notebook: strokes become an array, and an array what is drawn."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headlight
from tests.visualizer.unpacking import unpacked


def painted_in(widget):
    """The cells that the browser draws as painted."""
    header, arrays = unpacked(widget.data)
    size = (len(header["rows"]["labels"]), len(header["columns"]["labels"]))
    return np.unpackbits(arrays["painted"].astype(np.uint8))[: size[0] * size[1]].reshape(size).astype(bool)


def stroke(blocked, seq=1):
    bits = base64.b64encode(np.packbits(blocked).tobytes()).decode()
    sizes = dict(zip(("n_queries", "n_keys"), blocked.shape, strict=True))
    return {"name": "paint", "value": {"blocked": bits, **sizes, "seq": seq}}


@given(st.integers(1, 12), st.integers(1, 12), st.randoms(use_true_random=False))
def test_a_stroke_is_read_as_an_array_and_confirmed(n_queries, n_keys, random):
    blocked = np.array([[random.random() < 0.5 for _ in range(n_keys)] for _ in range(n_queries)])
    widget = headlight.paint(n_queries, keys=n_keys)
    assert widget.mask.all()
    widget.event = stroke(blocked, seq=3)
    np.testing.assert_array_equal(widget.mask, ~blocked)
    np.testing.assert_array_equal(painted_in(widget), blocked)
    assert unpacked(widget.data)[0]["seq"] == 3


def test_a_mask_that_is_given_is_drawn():
    causal = np.tril(np.ones((3, 3), dtype=bool))
    widget = headlight.paint(["the", "<b>cat", "sat"], mask=causal)
    np.testing.assert_array_equal(painted_in(widget), ~causal)
    widget.mask = ~causal
    np.testing.assert_array_equal(painted_in(widget), causal)
    assert unpacked(widget.data)[0]["rows"]["labels"] == ["the", "<b>cat", "sat"]


@pytest.mark.parametrize(
    "event",
    [{}, {"name": "paint"}, {"value": 7}, {"value": {"blocked": "AA==", "n_queries": 9, "n_keys": 9, "seq": 1}}],
)
def test_a_browser_can_send_anything(event):
    widget = headlight.paint(3)
    widget.event = event
    assert widget.mask.all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"tokens": 0}, "A mask is painted over 1 to 512 tokens, and these are 0."),
        ({"tokens": 513}, "these are 513"),
        ({"tokens": 2, "mask": np.ones((3, 3), dtype=bool)}, "and this one is bool, of shape (3, 3)"),
        ({"tokens": 2, "mask": np.ones((2, 2))}, "and this one is float64"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        headlight.paint(**arguments)
