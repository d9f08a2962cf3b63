"""The formula of every stage says what was computed in the run at hand."""

import pytest

from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.stages.registry import formula_of


@pytest.mark.parametrize("name", [*VARIANTS, *WORKED_EXAMPLES])
def test_every_stage_has_a_formula(name):
    run = run_of(name)
    for path in run.trace:
        formula = formula_of(run, path)
        assert " = " in formula or r" \in " in formula or "&=" in formula, path


@pytest.mark.parametrize("name", ["encoder-decoder", "pre-norm encoder-decoder", "dropout"])
def test_formulas_say_what_was_computed_in_this_pass(name):
    run = run_of(name)
    drops, stack = name == "dropout", "encoder" if name == "dropout" else "decoder"
    layer = f"{stack}.layers.1"
    sublayers = ("SelfAttention", "FeedForward") if drops else ("SelfAttention", "CrossAttention", "FeedForward")
    for number, sublayer in enumerate(sublayers, start=1):
        formula = formula_of(run, f"{layer}.residual{number}")
        assert rf"\operatorname{{{sublayer}}}(" in formula
        assert ("norm" in formula) == name.startswith("pre-norm")
        assert ("dropout" in formula) == drops
    assert ("dropout" in formula_of(run, f"{stack}.inputs.embedded")) == drops
    assert (r"\tilde A" in formula_of(run, f"{layer}.self_attention.context")) == drops
    assert (r"\tilde a" in formula_of(run, f"{layer}.feed_forward.output")) == drops


def test_a_bias_is_in_the_formula_where_it_is_added():
    path = "encoder.layers.0.self_attention.q_proj"
    assert formula_of(run_of("encoder"), path) == "Q = X_q W^{Q} + b^{Q}"
    assert formula_of(run_of("no bias of q, k, v"), path) == "Q = X_q W^{Q}"
