import numpy as np
import pytest
import torch

from tests.visualizer.sample_runs import run_of
from visualizer.stages.panels import to_array
from visualizer.views.separate_heads import apart, attention_with_heads, both_ways, same_both_ways

MULTI_HEADED = ("three_heads", "two_causal_heads", "saturated_causal", "causal_with_bias", "cross_attention")


@pytest.mark.parametrize("name", MULTI_HEADED)
def test_heads_apart_are_the_fused_matrix(name):
    run = run_of(name)
    check = same_both_ways(run, "attention", apart(run, "attention"))
    assert check.holds
    assert "in all 13 stages" in check.text


def test_a_head_that_differs_is_seen():
    run = run_of("three_heads")
    found = dict(apart(run, "attention"))
    weights = found["weights"]
    found["weights"] = (weights[0], weights[1] + torch.tensor(2e-12, dtype=torch.float64), weights[2])
    check = same_both_ways(run, "attention", found)
    assert check.holds is False
    assert "2.0e-12" in check.text


@pytest.mark.parametrize(("stage", "n_panels"), [("q_proj", 4), ("weights", 6), ("concat", 4), ("output", 2)])
def test_both_ways_stand_side_by_side(stage, n_panels):
    run = run_of("three_heads")
    panels = both_ways(run, f"attention.{stage}", apart(run, "attention")[stage], batch=0)
    assert len(panels) == n_panels
    assert [panel.operator for panel in panels].count("=") == 1
    equals = next(i for i, panel in enumerate(panels) if panel.operator == "=")
    before, after = (np.concatenate([p.array for p in part], -1) for part in (panels[:equals], panels[equals:]))
    assert np.allclose(before, after, rtol=0, atol=1e-6)
    if stage == "q_proj":
        assert np.array_equal(after, to_array(run.trace["attention.q_proj"].value[0]))


@pytest.mark.parametrize("name", ["one_head", "encoder"])
def test_one_head_and_a_model_are_not_taken_apart(name):
    run = run_of(name)
    module = next(stage.module_path for stage in run.trace.values() if stage.name == "weights")
    assert attention_with_heads(run, module) is None
