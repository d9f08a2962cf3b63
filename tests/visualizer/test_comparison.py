from dataclasses import replace

import pytest
import torch

from tests.visualizer.runs import BASE, FIRST_CELL
from visualizer.comparison import downstream, predictions, shift
from visualizer.painting import encode_cells
from visualizer.run import compute_run

PLAIN = replace(BASE, mask=(), pad=0)
A = compute_run(PLAIN)
B = compute_run(replace(PLAIN, mask=("causal",)))
MODULE = "encoder.layers.0.self_attention"


def test_freed_weight_is_what_the_blocked_keys_had():
    before = A.trace[f"{MODULE}.weights"].value[0, 1, 2]
    moved = shift(A, B, MODULE, batch=0, head=1, query=2)
    assert moved.blocked_keys == 2
    assert moved.freed == pytest.approx(before[3:].sum().item())
    assert moved.has_key


def test_what_was_freed_is_gained_by_the_keys_that_are_left():
    moved = shift(A, B, MODULE, batch=0, head=1, query=2, top=5)
    assert sum(gain for _, gain in moved.gains) == pytest.approx(moved.freed, abs=1e-5)
    assert all(key <= 2 for key, _ in moved.gains)
    assert [gain for _, gain in moved.gains] == sorted((gain for _, gain in moved.gains), reverse=True)


def test_a_query_without_a_key_is_told():
    none_left = compute_run(replace(PLAIN, mask=("causal", "custom"), custom=encode_cells(FIRST_CELL)))
    assert not shift(A, none_left, MODULE, batch=0, head=0, query=0).has_key


def test_downstream_starts_at_zero_and_spreads():
    found = downstream(A, B, batch=0, prefix="encoder")
    assert found.paths[0] == "encoder.inputs.embedded"
    assert found.paths[-1] == "logits"
    assert found.norms[0].max() == 0
    logits = (B.trace["logits"].value - A.trace["logits"].value)[0].norm(dim=-1)
    torch.testing.assert_close(torch.from_numpy(found.norms[-1]), logits)


def test_the_same_run_has_not_changed():
    assert downstream(A, A, batch=0, prefix="encoder").norms.max() == 0
    assert not any(prediction.changed for prediction in predictions(A, A, batch=0))


def test_predictions_are_the_largest_probabilities():
    first = predictions(A, B, batch=0, top=2)[0]
    probabilities = A.trace["probabilities"].value[0, 0]
    assert first.before[0][0] == probabilities.argmax().item()
    assert first.before[0][1] == pytest.approx(probabilities.max().item())
