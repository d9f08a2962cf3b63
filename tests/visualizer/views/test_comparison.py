import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.visualizer.sample_runs import BASE, FIRST_CELL, run_of
from visualizer.runs.compute import compute_run
from visualizer.settings.painted_mask import encode_cells
from visualizer.views.comparison import downstream, predictions, same_mask_note, shift
from visualizer.views.what_changed import account_of

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


WINDOW_2 = replace(PLAIN, mask=("sliding_window",), window=2)


@pytest.mark.parametrize(
    ("a", "b", "query", "newly_blocked"),
    [
        (
            replace(PLAIN, mask=("causal",)),
            replace(PLAIN, mask=("causal", "sliding_window"), window=2),
            4,
            [0, 1, 2],
        ),
        (WINDOW_2, replace(PLAIN, mask=("causal",)), 2, [3]),
        (WINDOW_2, replace(PLAIN, mask=("causal",)), 4, []),
        (replace(PLAIN, mask=("causal",)), WINDOW_2, 3, [0, 1]),
        (replace(PLAIN, mask=("causal",)), PLAIN, 1, []),
    ],
)
def test_a_key_that_a_blocks_already_is_not_counted_as_freed_by_b(a, b, query, newly_blocked):
    first, second = compute_run(a), compute_run(b)
    before = first.trace[f"{MODULE}.weights"].value[0, 0, query]
    moved = shift(first, second, MODULE, batch=0, head=0, query=query)
    assert moved.blocked_keys == len(newly_blocked)
    assert moved.freed == pytest.approx(before[newly_blocked].sum().item())
    assert (moved.freed > 0) == bool(newly_blocked)


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


def test_beside_a_decoder_the_way_through_the_encoder_ends_before_the_logits_of_other_tokens():
    run = compute_run(replace(PLAIN, architecture="encoder-decoder", text="a b c", target="d e f g h"))
    found = downstream(run, run, batch=0, prefix="encoder")
    assert found.paths[-1] == "encoder.layers.1.norm2"
    assert found.norms.shape == (len(found.paths), 3)
    assert downstream(run, run, batch=0, prefix="decoder").paths[-1] == "logits"


def test_the_same_run_has_not_changed():
    assert downstream(A, A, batch=0, prefix="encoder").norms.max() == 0
    assert not any(prediction.changed for prediction in predictions(A, A, batch=0))


def test_predictions_are_the_largest_probabilities():
    first = predictions(A, B, batch=0)[0]
    probabilities = A.trace["probabilities"].value[0, 0]
    assert first.before[0][0] == A.vocabulary[probabilities.argmax().item()]
    assert first.before[0][1] == pytest.approx(probabilities.max().item())


def note(architecture, mask_a, mask_b, module):
    """Return the note on an attention that has the same masks in A and B."""
    a, b = (compute_run(replace(BASE, architecture=architecture, mask=mask)) for mask in (mask_a, mask_b))
    return same_mask_note(a, b, module, "the masks")


def test_of_the_same_masks_as_many_attentions_are_spoken_of_as_there_are():
    causal = ("causal",)
    assert "so nothing differs. Choose" in note("encoder", causal, causal, "encoder.layers.0.self_attention")
    assert "in all 2 attentions" in note("encoder", causal, causal, "encoder.layers.0.self_attention")
    crossing = "decoder.layers.{}.cross_attention"
    assert "the 1 attention before it whose masks differ" in note("encoder-decoder", (), causal, crossing.format(0))
    assert "the 2 attentions before it whose masks differ" in note(
        "encoder-decoder", (), causal, crossing.format(1)
    )
    of_encoder = note("encoder-decoder", (), causal, "encoder.layers.1.self_attention")
    assert "nothing differs here" in of_encoder
    assert "Beside a decoder" in of_encoder


def test_of_one_attention_no_others_are_spoken_of():
    a, b = run_of("two_causal_heads"), run_of("two_causal_heads")
    said = same_mask_note(a, b, "attention", "causal")
    assert said == "A and B have the same masks (causal), so nothing differs. Choose other masks."


KEYLESS = replace(PLAIN, mask=("custom",), custom=encode_cells(np.ones((5, 5), dtype=bool)))
"""A run in which no query has a key."""


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (
            KEYLESS,
            PLAIN,
            r"B blocks no key of this query that A leaves open. It gave more to key \d “\w+” \(\+0.\d\d\), ",
        ),
        (PLAIN, KEYLESS, "B leaves this query no key at all: its weights are all zero"),
        (
            PLAIN,
            replace(KEYLESS, fault="before_softmax"),
            "Blocking these 5 keys removed 0.25 of its weight; it went to key",
        ),
        (
            replace(PLAIN, mask=("causal",), fault="after_softmax"),
            replace(PLAIN, mask=("padding",), fault="after_softmax"),
            r"B blocks no key of this query that A leaves open. It gave more to key",
        ),
    ],
    ids=["none before", "none left", "none left before the softmax", "rows that do not sum to one"],
)
def test_what_is_said_of_a_row_follows_from_its_weights_also_where_they_do_not_sum_to_one(a, b, said):
    first, second = compute_run(a), compute_run(b)
    account = account_of(first, second, MODULE, (0, 1), 0)
    assert re.search(said, account)
    change = second.trace[f"{MODULE}.weights"].value[0, 0, 1] - first.trace[f"{MODULE}.weights"].value[0, 0, 1]
    gains = sum(float(gain) for gain in re.findall(r"\+(\d\.\d\d)", account))
    if "no key at all" not in account:
        assert gains == pytest.approx(change.clamp_min(0).sum().item(), abs=0.015)
