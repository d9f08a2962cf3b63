"""The data of the charts of one query's row, against the runs themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.test_app import assert_healthy, open_app
from tests.visualizer.sample_runs import BASE, VARIANTS, run_of
from tests.visualizer.views.charts.test_charts import captions
from visualizer.figures.temperature_curves import softmax_at
from visualizer.runs.compute import compute_run
from visualizer.runs.paths import attention_modules
from visualizer.stages.derivations import Cell
from visualizer.views.charts.row import divisor, product_in_words, reasons, undivided_scores

EXAMPLES = ("attention_function", "attention_function_masked", "causal_with_bias", "three_heads", "cross_attention")


@pytest.mark.parametrize("variant", [*VARIANTS, *EXAMPLES])
def test_softmax_at_the_runs_temperature_gives_the_runs_weights(variant):
    run = run_of(variant)
    module = attention_modules(run.trace)[-1]
    weights = run.trace[f"{module}.weights"].value[0, 0]
    for query in range(len(weights)):
        cell = Cell(f"{module}.weights", 0, 0, query, 0)
        scores = undivided_scores(run, cell)
        allowed = np.isfinite(scores)
        if allowed.any():
            found = softmax_at(scores[allowed], np.array([divisor(run, cell)])).weights[0]
            assert weights[query][allowed].tolist() == pytest.approx(found.tolist(), abs=1e-6)


@pytest.mark.parametrize("score", ["score / 1.5", "", "score + 1"])
def test_what_the_scores_are_divided_by_counts_the_temperature_that_is_chosen(score):
    run = compute_run(replace(BASE, weights="random", score=score))
    module = attention_modules(run.trace)[-1]
    cell = Cell(f"{module}.weights", 0, 0, 5, 0)
    queries, keys = (run.trace[f"{module}.{name}"].value[0, 0].double() for name in "qk")
    of_model = queries.shape[1] ** 0.5
    expected = (queries @ keys.mT)[5]
    if score == "score + 1":  # not times the divisor: it is no temperature, and what enters the softmax is divided
        expected, of_model = expected / of_model + 1, 1
    scores, open_keys = undivided_scores(run, cell), run.mask_of(module).allowed[0, 0, 5]
    assert scores[open_keys] == pytest.approx(expected[open_keys].numpy(), abs=1e-4)
    assert divisor(run, cell) == pytest.approx(of_model * (1.5 if "/" in score else 1))


def test_every_mask_that_blocks_a_key_is_named():
    run = run_of("encoder")
    cell = Cell("encoder.layers.0.self_attention.weights", 0, 1, 3, 0)
    assert reasons(run, cell) == ["", "", "", "", "causal", "causal and padding", "causal and padding"]
    assert reasons(compute_run(replace(BASE, mask=())), cell) == [""] * 7


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (
            {"chart": "row"},
            "Hatched: the scores of blocked keys (2). A number that is larger by 1 when it enters softmax",
        ),
        ({"chart": "row"}, "has e = 2.72 times the weight"),
        (
            {"chart": "row", "fault": "after_softmax", "weights": "random"},
            "blocked keys (2), which still count",
        ),
        (
            {"chart": "row", "fault": "after_softmax", "weights": "random"},
            "These weights are not the softmax of the masked scores",
        ),
        ({"chart": "row", "mask": "custom", "custom": "k > q + 99"}, "No key is left"),
        (
            {"chart": "row", "mask": "custom", "custom": "k > q + 99"} | {"weights": "random"},
            "No key is left, so every weight is zero",
        ),
        ({"chart": "temperature", "mask": "custom", "custom": "k > q + 99"}, "no key is left"),
        (
            {"chart": "temperature"},
            "τ = √16 = 4: the weights have an entropy of 1.00 bits; equal weights on all 9",
        ),
        ({"chart": "temperature", "scale_scores": "off"}, "τ = 1, since the scores are not scaled"),
        (
            {"chart": "temperature", "score": "score - (q - k)"},
            "τ = 1, since the scores are changed before they enter",
        ),
    ],
)
def test_what_is_said_of_a_row_is_true_of_it(link, said):
    app = open_app(**link)
    assert_healthy(app)
    assert said in captions(app)
    assert len(app.get("plotly_chart")) == ("no key is left" not in said)


@pytest.mark.parametrize(
    "link",
    [{"fault": "after_softmax"}, {"edits": "encoder.layers.0.self_attention.weights-mean"}],
    ids=["a mask after the softmax", "edited weights"],
)
def test_weights_that_are_no_softmax_have_no_temperature(link):
    app = open_app(chart="temperature", weights="random", **link)
    assert_healthy(app)
    assert "These weights are not the softmax of the masked scores" in captions(app)
    assert not app.get("plotly_chart")


@pytest.mark.parametrize(
    ("divisors", "said"),
    [
        ((4.0, 1.0), "√16 = 4"),
        ((4.0, 1.5), "√16 × 1.5 = 6"),
        ((8**0.5, 1.0), "√8 = 2.828"),
        ((13.3, 1.0), "13.3"),
        ((13.3, 2.0), "13.3 × 2 = 26.6"),
        ((1.0, 1.5), "1.5"),
    ],
)
def test_what_the_scores_are_divided_by_is_a_root_only_where_it_is_one(divisors, said):
    assert product_in_words(*divisors) == said
