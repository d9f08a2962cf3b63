"""The messages of elements to the browser, and what they refuse."""

import json
import struct

import numpy as np
import pytest

from visualizer import colors
from visualizer.components.attention_heads import element as attention_heads
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid import element as tensor_grid

ROWS = Axis("query", ("a", "b"), "source")
COLUMNS = Axis("key", ("a", "b", "c"), "source")


def test_a_panel_refuses_what_does_not_fit():
    matrix = np.zeros((2, 3))
    with pytest.raises(ValueError, match="labels"):
        tensor_grid.Panel("scores", "scores", matrix.T, ROWS, COLUMNS)
    with pytest.raises(ValueError, match="blocked"):
        tensor_grid.Panel("scores", "scores", matrix, ROWS, COLUMNS, blocked=np.zeros((3, 2), np.uint8))
    with pytest.raises(ValueError, match="rows and columns"):
        tensor_grid.Panel("scores", "scores", np.zeros((0, 3)), Axis("query", ()), COLUMNS)


@pytest.mark.parametrize(
    ("numbers", "palette", "bounds"),
    [
        ([0.0, 0.5, np.nan], "sequential", (0.0, 0.5)),
        ([-1.0, 3.0, -np.inf], "diverging", (-3.0, 3.0)),
        ([0.0, 0.0, 0.0], "sequential", (0.0, 1.0)),
        ([np.nan, np.inf, -np.inf], "diverging", (-1.0, 1.0)),
    ],
)
def test_natural_bounds_come_from_the_finite_numbers(numbers, palette, bounds):
    panel = tensor_grid.Panel("x", "x", np.array([numbers, numbers]), ROWS, COLUMNS, palette=palette)
    assert tensor_grid.natural_bounds(panel) == bounds


def described_panels(*panels):
    """Return the description of panels that the browser receives, without their numbers."""
    packed = tensor_grid.packed_panels(panels)
    (length,) = struct.unpack_from("<I", packed)
    return json.loads(packed[4 : 4 + length])["panels"]


@pytest.mark.parametrize(
    ("role", "palette", "scale"),
    [
        ("weights", "sequential", "sequential"),
        ("neutral", "sequential", "sequential_neutral"),
        ("residual", "sequential", "sequential_neutral"),
        ("weights", "diverging", "diverging"),
        ("neutral", "diverging", "diverging"),
    ],
)
def test_only_attention_weights_are_purple(role, palette, scale):
    panel = tensor_grid.Panel("x", "x", np.ones((2, 3)), ROWS, COLUMNS, role=role, palette=palette)
    assert described_panels(panel)[0]["palette"] == scale
    assert scale in colors.as_json()["themes"]["light"]


def test_a_panel_says_what_a_click_does():
    panel = tensor_grid.Panel("scores", "scores", np.ones((2, 3)), ROWS, COLUMNS, hint="click: go to scores")
    assert described_panels(panel)[0]["hint"] == "click: go to scores"


def heads_payload(weights, **changes):
    arguments = {"rows": ROWS, "columns": COLUMNS, "head_names": [["", ""]], "header": {}} | changes
    return attention_heads.payload({"weights": weights}, {"blocked": None}, **arguments)


def test_heads_refuse_what_does_not_fit():
    weights = np.zeros((1, 2, 2, 3), np.float32)
    assert isinstance(heads_payload(weights), bytes)
    with pytest.raises(ValueError, match="shape"):
        heads_payload(weights[0])
    with pytest.raises(ValueError, match="labels"):
        heads_payload(weights, rows=COLUMNS)
    with pytest.raises(ValueError, match="head_names"):
        heads_payload(weights, head_names=[["only one"]])


def test_a_comparison_refuses_a_mask_of_another_shape():
    weights = np.zeros((1, 2, 2, 3), np.float32)
    masks = {"blocked_a": np.zeros((3, 3), np.uint8), "blocked_b": None}
    with pytest.raises(ValueError, match="blocked_a must have shape"):
        attention_heads.payload(
            {"a": weights, "b": weights}, masks, rows=ROWS, columns=COLUMNS, head_names=[["", ""]], header={}
        )
