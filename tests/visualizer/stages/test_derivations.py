import re
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.components.derivation.element import Terms, describe_derivation, format_number
from visualizer.runs.compute import compute_run
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.settings import Settings
from visualizer.stages.derivations import Cell, dot
from visualizer.stages.registry import derive


def corners(n_rows, n_columns):
    return {(0, 0), (0, n_columns - 1), (n_rows - 1, 0), (n_rows // 2, n_columns // 3), (n_rows - 1, n_columns - 1)}


@pytest.mark.parametrize("name", [*VARIANTS, *WORKED_EXAMPLES])
def test_every_number_of_every_stage_is_derived(name):
    run = run_of(name)
    for path, stage in run.trace.items():
        batch, head = run.batch_size(path) - 1, (run.n_heads(path) or 1) - 1
        for row, column in corners(*stage.value.shape[-2:]):
            derivations = derive(run, Cell(path, batch, head, row, column))
            assert derivations
            for derivation in derivations:
                assert derivation.agrees, (path, row, column, derivation.title, derivation.difference)


def test_a_weight_is_followed_from_query_and_key_to_its_share():
    run = run_of("encoder")
    path = "encoder.layers.0.self_attention.weights"
    score, share = derive(run, Cell(path, 0, 1, 4, 2))
    assert [terms.role for terms in score.rows] == ["query", "key", "weights"]
    assert [step.text.split()[0] for step in score.steps] == ["sum", "÷", "mask:"]
    assert share.result == pytest.approx(run.trace[path].value[0, 1, 4, 2].item(), abs=1e-6)
    assert share.columns == run.axes(path)[1].labels
    assert share.sequence == "source"


def test_a_blocked_weight_says_by_what():
    run = run_of("encoder")
    score, share = derive(run, Cell("encoder.layers.0.self_attention.weights", 0, 0, 1, 5))
    assert score.steps[-1].text == "mask: blocked by causal, padding"
    assert share.result == 0.0


def test_without_a_mask_nothing_is_said_of_one():
    run = run_of("no mask")
    module = "encoder.layers.0.self_attention"
    (score,) = derive(run, Cell(f"{module}.masked_scores", 0, 0, 1, 5))
    assert score.steps[-1].text == "no mask: a copy of the scaled score"
    score, _ = derive(run, Cell(f"{module}.weights", 0, 0, 1, 5))
    assert not [step.text for step in score.steps if "mask" in step.text]
    assert score.formula == "s = q · k / √d_k"


def test_the_epsilon_of_a_layer_norm_is_named():
    (norm,) = derive(run_of("large epsilon"), Cell("encoder.layers.1.norm2", 0, 0, 2, 3))
    assert "ε = 0.1" in norm.steps[-2].text
    assert norm.agrees


def test_a_part_of_a_fused_projection_says_where_it_lies():
    run = run_of("fused q, k, v")
    (moved,) = derive(run, Cell("encoder.layers.0.self_attention.v_proj", 0, 0, 1, 3))
    assert moved.formula == "column 35 of qkv: part 2 × 16 + 3"
    assert moved.agrees
    (product,) = derive(
        run_of("fused q, k, v beside an encoder"), Cell("decoder.layers.0.cross_attention.kv", 0, 0, 1, 20)
    )
    assert product.agrees


def test_without_scaling_nothing_is_divided():
    (score,) = derive(run_of("unscaled"), Cell("encoder.layers.0.self_attention.scaled_scores", 0, 0, 1, 1))
    assert score.steps[-1].text == "scaling is off: the same number"
    assert score.formula == "s = q · k"


def test_dropout_is_followed_before_a_residual_addition():
    run = run_of("dropout")
    path = "encoder.layers.0.dropped_output1"
    texts = [step.text for column in range(16) for step in derive(run, Cell(path, 0, 0, 0, column))[0].steps]
    assert "dropped at random" in texts
    assert "kept: ÷ (1 - 0.3)" in texts


def test_a_worked_example_has_no_dropout_whatever_the_settings():
    run = compute_run(Settings(weights="encoder_layer", dropout=0.3))
    (addition,) = derive(run, Cell("encoder_layer.residual1", 0, 0, 0, 0))
    assert addition.agrees
    assert addition.formula == "x + attention output"


def test_a_query_with_no_key_left_says_so():
    run = run_of("every mask")
    module = "encoder.layers.0.self_attention"
    keyless = (~run.trace[f"{module}.mask"].value[0, 0].any(-1)).nonzero().flatten().tolist()
    assert keyless, "the masks of this variant leave some query without a key"
    _, share = derive(run, Cell(f"{module}.weights", 0, 0, keyless[0], 0))
    assert "no key left" in share.title
    assert share.agrees


def as_read(text):
    return Decimal(text.replace("−", "-").replace("∞", "Infinity"))


@pytest.mark.parametrize("name", ["encoder", "encoder-decoder"])
def test_what_is_added_adds_up_by_hand(name):
    """The products, the exponentials and the bias, as they are written, come to the sum as it is written."""
    run, n_sums = run_of(name), 0
    for path, stage in run.trace.items():
        for row, column in corners(*stage.value.shape[-2:]):
            for derivation in derive(run, Cell(path, 0, 0, row, column)):
                shown = describe_derivation(derivation, "key")
                steps = {step["text"].partition(" (")[0]: as_read(step["value"]) for step in shown["steps"]}
                total = steps.get("sum of the products", steps.get("sum over the row"))
                for texts in (terms["texts"] for terms in shown["rows"] if terms["texts"]):
                    assert sum(map(as_read, texts)).quantize(total) == total, (path, row, column)
                    n_sums += 1
                for before, step in pairwise(shown["steps"]):
                    if added := re.fullmatch(r"\+ .* \((-?[\d.]+)\)", step["text"]):
                        found = as_read(before["value"]) + Decimal(added[1])
                        assert found.quantize(as_read(step["value"])) == as_read(step["value"]), (path, row, column)
                        n_sums += 1
                    if divided := re.fullmatch(r"÷ √\d+ \((.*)\)", step["text"]):
                        assert format_number(float(as_read(before["value"]) / Decimal(divided[1]))) == step["value"]
                    if step["text"] == "exp ÷ sum" and as_read(step["value"]) > 0.01:
                        assert format_number(float(steps["exp(s - max)"] / total)) == step["value"]
    assert n_sums > 100


def test_a_small_sum_of_large_products_has_the_digits_that_it_takes():
    left, right = (np.array(row) for row in ([12.641, -4.2437, 7.5512], [-12.633, -4.2437, 18.766]))
    found = dot(Terms("a", "query", left), Terms("b", "key", right), bias=0.125)
    (total, result), texts = found.steps, found.rows[-1].texts
    assert sum(map(Decimal, texts)).quantize(Decimal(total.number_shown)) == Decimal(total.number_shown)
    assert Decimal(total.number_shown) + Decimal("0.125") == Decimal(result.number_shown)
    assert dot(found.rows[0], Terms("b", "key", np.zeros(3))).rows[-1].texts == ("0", "0", "0")
