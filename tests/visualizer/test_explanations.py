import ast

import pytest

from tests.visualizer.runs import VARIANTS, run_of
from visualizer.explanations import code_line, explain
from visualizer.settings import WORKED_EXAMPLES


@pytest.mark.parametrize("name", [*VARIANTS, *WORKED_EXAMPLES])
def test_every_stage_is_explained(name):
    trace = run_of(name).trace
    for path, stage in trace.items():
        explanation = explain(trace, path)
        assert explanation.text.endswith(".")
        code = code_line(stage).code
        ast.parse(code)
        assert code.startswith(f"{stage.name} = ")


def test_the_code_is_the_line_that_ran():
    trace = run_of("pre-norm").trace
    assert code_line(trace["encoder.layers.0.self_attention.scores"]).code == "scores = q @ k.mT"
    residual = code_line(trace["encoder.layers.0.residual1"])
    assert residual.code == "residual1 = x + dropout(attention(y, y, y, mask))"
    assert residual.place.startswith("model/layers.py, line ")
