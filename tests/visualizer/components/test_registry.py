"""How elements are put together, and what their mount functions refuse."""

import json
import re
import struct

import numpy as np
import pytest

from visualizer import colors
from visualizer.components import registry
from visualizer.components.attention_heads import element as attention_heads
from visualizer.components.axis import Axis
from visualizer.components.compare_grids import element as compare_grids
from visualizer.components.tensor_grid import element as tensor_grid

GRID = tuple(f"shared/{part}.js" for part in ("matrix_pixels", "tooltip", "legend", "grid_layout", "grid"))
ELEMENTS = {
    "tensor_grid": (*GRID, "tensor_grid/layout.js", "tensor_grid/element.js"),
    "attention_heads": (
        *GRID,
        "shared/controls.js",
        "attention_heads/overview.js",
        "attention_heads/lines.js",
        "attention_heads/element.js",
    ),
    "compare_grids": (*GRID, "shared/controls.js", "compare_grids/element.js"),
}
ROWS = Axis("query", ("a", "b"), "source")
COLUMNS = Axis("key", ("a", "b", "c"), "source")


@pytest.mark.parametrize("scripts", ELEMENTS.values(), ids=ELEMENTS)
def test_scripts_form_one_module(scripts):
    source = registry.module_source(scripts)
    assert source.startswith("const COLORS = {")
    assert source.count("export default function") == 1
    assert "\nimport " not in source
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", source, re.MULTILINE)
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("scripts", ELEMENTS.values(), ids=ELEMENTS)
def test_no_script_writes_markup(scripts):
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", registry.module_source(scripts))


def test_the_style_sheets_beside_the_scripts_are_included():
    sheet = registry.style_sheet(("tensor_grid/element.js",))
    assert ".headlight .tensors" in sheet
    assert ".headlight .token" in sheet


def test_a_script_that_does_not_exist_is_an_error():
    with pytest.raises(FileNotFoundError):
        registry.register("missing", "tensor_grid/no_such_file.js")


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
    """What the browser receives of panels, without their numbers."""
    packed = tensor_grid.payload(panels, "key", None, "row")
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
    return attention_heads.payload(weights, {"blocked": None}, **arguments)


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
        compare_grids.payload(
            {"a": weights, "b": weights}, masks, rows=ROWS, columns=COLUMNS, head_names=[["", ""]], header={}
        )
