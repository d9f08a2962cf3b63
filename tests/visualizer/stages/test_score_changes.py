"""Changed scores are described for any expression: formula, line of NumPy, derivation, and what follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headlight.masks.language import parse_score
from headlight.masks.language.score_code import numpy_lines
from headlight.masks.language.scores import bias_table
from tests.headlight.masks.language.test_scores import CODES, H, T, drawn
from tests.visualizer.sample_runs import BASE
from visualizer.glossary import entries_of_formula
from visualizer.runs.compute import compute_run
from visualizer.stages.derivations import Cell
from visualizer.stages.registry import checks, derive, formula_of

PATH = "encoder.layers.0.self_attention"


@pytest.mark.parametrize("text", CODES)
def test_the_lines_of_numpy_give_what_the_model_computes(text):
    change, scores = parse_score(text), drawn(1, H, T, T).double()
    *before, value = numpy_lines(change, H, T)
    names = {"np": np, "score": scores.numpy(), "bias": bias_table(H).numpy()}
    exec("\n".join([*before, f"changed = {value}"]), names)
    np.testing.assert_allclose(
        np.broadcast_to(names["changed"], scores.shape), change(scores), rtol=1e-9, atol=1e-9
    )


def test_any_expression_has_a_formula_a_derivation_and_checks_that_hold():
    last = "score / 2 if not (q == k and q < 3) else -abs(score) ** 2 // n_queries + slope(h)"
    for text in [*CODES[::3], last]:
        run = compute_run(replace(BASE, n_layers=1, score=parse_score(text).text))
        assert entries_of_formula(formula_of(run, f"{PATH}.modified_scores"))
        for name in ("modified_scores", "masked_scores", "weights"):
            assert all(check.holds is not False for check in checks(run, f"{PATH}.{name}"))
            cell = Cell(f"{PATH}.{name}", 0, 1, 4, 2)
            assert all(found.agrees for found in derive(run, cell))


def test_a_mask_bug_works_on_the_changed_scores():
    run = compute_run(replace(BASE, n_layers=1, score="score + 5", fault="before_softmax"))
    changed, mask = (run.trace[f"{PATH}.{name}"].value for name in ("modified_scores", "mask"))
    assert run.trace[f"{PATH}.masked_scores"].value.equal(changed * mask)


def test_a_change_that_cannot_be_read_is_left_out_and_said():
    run = compute_run(replace(BASE, n_layers=1, score="score + elephant"))
    assert f"{PATH}.modified_scores" not in run.trace
    assert any("elephant" in complaint for complaint in run.complaints)
