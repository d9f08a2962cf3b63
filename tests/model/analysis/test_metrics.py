"""Measures of heads against hand-made patterns and loops over their definitions."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import TransformerConfig, record
from model.analysis.metrics import METRICS, Attention
from model.sources.weights import build_model, head_names

seeds = st.integers(0, 10_000)
sizes = st.integers(1, 6)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def attention_of(rows, tokens, *, keys=None, expected=None):
    """One head over one unpadded sequence; ``keys`` are the tokens of another one."""
    weights = torch.as_tensor(rows, dtype=torch.float64)[None, None]
    n_queries, n_keys = weights.shape[-2:]
    return Attention(
        weights,
        query_ids=torch.tensor([tokens]),
        key_ids=torch.tensor([tokens if keys is None else keys]),
        query_is_padding=torch.zeros(1, n_queries, dtype=torch.bool),
        key_is_padding=torch.zeros(1, n_keys, dtype=torch.bool),
        is_self_attention=keys is None,
        expected_keys=None if expected is None else torch.tensor([expected]),
    )


def measure(name, attention):
    return METRICS[name].compute(attention).tolist()


def one_hot(*keys, n_keys):
    return torch.nn.functional.one_hot(torch.tensor(keys), n_keys).double()


UNIFORM = [[0.25] * 4] * 4
CAUSAL = [[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4] * 4]
PREVIOUS = one_hot(0, 0, 1, 2, n_keys=4)
FIRST = one_hot(0, 0, 0, 0, n_keys=4)
ITSELF = one_hot(0, 1, 2, 3, n_keys=4)


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("entropy", UNIFORM, 2.0),
        ("entropy", CAUSAL, (0 + 1 + math.log2(3) + 2) / 4),
        ("entropy", FIRST, 0.0),
        ("mean_distance", ITSELF, 0.0),
        ("mean_distance", FIRST, (0 + 1 + 2 + 3) / 4),
        ("mean_distance", UNIFORM, (6 + 4 + 4 + 6) / 16),
        ("previous_token", PREVIOUS, 1.0),
        ("previous_token", CAUSAL, (1 / 2 + 1 / 3 + 1 / 4) / 3),
        ("previous_token", ITSELF, 0.0),
        ("own_position", ITSELF, 1.0),
        ("own_position", PREVIOUS, 1 / 4),
        ("first_token", FIRST, 1.0),
        ("first_token", UNIFORM, 0.25),
        ("first_token", CAUSAL, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4),
        ("same_token", UNIFORM, (2 + 2 + 1 + 1) / 16),
        ("same_token", one_hot(1, 0, 2, 3, n_keys=4), 1.0),
    ],
)
def test_hand_made_patterns(name, rows, expected):
    assert measure(name, attention_of(rows, [7, 7, 8, 9])) == pytest.approx([expected])


def test_an_induction_head_scores_one():
    """At the second a it looks at what followed the first a, and so on; at the first ones at what it likes."""
    rows = one_hot(0, 0, 0, 1, 2, 3, n_keys=6)
    assert measure("induction", attention_of(rows, [5, 6, 7, 5, 6, 7])) == [1.0]


def test_a_head_on_the_earlier_occurrence_itself_is_no_induction_head():
    rows = one_hot(0, 1, 2, 0, 1, 2, n_keys=6)
    assert measure("induction", attention_of(rows, [5, 6, 7, 5, 6, 7])) == [0.0]


def test_a_copying_head_of_cross_attention_scores_one():
    """The token just written is found in the source, and the one after it looked at."""
    rows = one_hot(0, 1, 2, n_keys=3)
    assert measure("induction", attention_of(rows, [9, 5, 6], keys=[5, 6, 7])) == [1.0]


def test_expected_token():
    rows = [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.0, 0.0, 1.0]]
    assert measure("expected_token", attention_of(rows, [3, 4, 5], expected=[2, 0, -1])) == pytest.approx([0.6])
    assert math.isnan(measure("expected_token", attention_of(rows, [3, 4, 5]))[0])
    assert math.isnan(measure("expected_token", attention_of(rows, [3, 4, 5], expected=[-1, -1, -1]))[0])


def test_a_single_token_has_no_previous_one_and_nothing_to_repeat():
    attention = attention_of([[1.0]], [3])
    assert math.isnan(measure("previous_token", attention)[0])
    assert math.isnan(measure("induction", attention)[0])
    assert measure("entropy", attention) == [0.0]


# Against loops.


def some_attention(seed, n_batch, n_heads, n_queries, n_keys, is_self):
    """Random weights, a few keys blocked, some rows without any, few different tokens, padding on both sides."""
    source = generator(seed)
    n_keys = n_queries if is_self else n_keys
    key_is_padding = torch.rand(n_batch, n_keys, generator=source) < 0.25
    query_is_padding = key_is_padding if is_self else torch.rand(n_batch, n_queries, generator=source) < 0.25
    key_ids = torch.randint(3, (n_batch, n_keys), generator=source)
    query_ids = key_ids if is_self else torch.randint(3, (n_batch, n_queries), generator=source)
    scores = torch.randn(n_batch, n_heads, n_queries, n_keys, generator=source, dtype=torch.float64)
    blocked = (torch.rand(scores.shape, generator=source) < 0.3) | key_is_padding[:, None, None, :]
    weights = scores.masked_fill(blocked, -math.inf).softmax(-1).nan_to_num(0.0)
    expected = torch.randint(-1, n_keys, (n_batch, n_queries), generator=source)
    return Attention(weights, query_ids, key_ids, query_is_padding, key_is_padding, is_self, expected)


def entropy_of(attention, row, b, q):
    return -sum(weight * math.log2(weight) for weight in row if weight > 0)


def distance_of(attention, row, b, q):
    return sum(weight * abs(q - k) for k, weight in enumerate(row))


def weight_where(is_wanted):
    """Sums the weight of the wanted keys; None where there is none."""

    def of(attention, row, b, q):
        real = [k for k in range(len(row)) if not attention.key_is_padding[b, k]]
        wanted = [k for k in real if is_wanted(attention, real, b, q, k)]
        return sum(row[k] for k in wanted) if wanted else None

    return of


def follows_the_token(attention, real, b, q, k):
    earlier = k <= q or not attention.is_self_attention
    return k - 1 in real and earlier and attention.key_ids[b, k - 1] == attention.query_ids[b, q]


BY_LOOPS = {
    "entropy": entropy_of,
    "mean_distance": distance_of,
    "previous_token": weight_where(lambda attention, real, b, q, k: k == q - 1),
    "own_position": weight_where(lambda attention, real, b, q, k: k == q),
    "same_token": weight_where(
        lambda attention, real, b, q, k: attention.key_ids[b, k] == attention.query_ids[b, q]
    ),
    "first_token": weight_where(lambda attention, real, b, q, k: k == real[0]),
    "expected_token": weight_where(lambda attention, real, b, q, k: k == attention.expected_keys[b, q]),
    "induction": weight_where(follows_the_token),
}


def mean_by_loops(attention, head, of):
    found = []
    n_batch, _, n_queries, _ = attention.weights.shape
    for b in range(n_batch):
        for q in range(n_queries):
            row = attention.weights[b, head, q].tolist()
            if not attention.query_is_padding[b, q] and sum(row) > 0:
                found.append(of(attention, row, b, q))
    found = [value for value in found if value is not None]
    return sum(found) / len(found) if found else math.nan


def test_every_metric_is_checked_by_loops():
    assert BY_LOOPS.keys() == METRICS.keys()


@pytest.mark.parametrize("name", METRICS)
@given(seeds, sizes, sizes, st.booleans())
def test_against_loops(name, seed, n_queries, n_keys, is_self):
    attention = some_attention(seed, 2, 3, n_queries, n_keys, is_self)
    expected = [mean_by_loops(attention, head, BY_LOOPS[name]) for head in range(3)]
    assert measure(name, attention) == pytest.approx(expected, abs=1e-12, nan_ok=True)


# What must hold.


@pytest.mark.parametrize("name", METRICS)
def test_padding_to_the_right_changes_nothing(name):
    short = some_attention(3, 2, 2, 5, 5, is_self=True)
    n_more = 3

    def widened(value, fill):
        return torch.nn.functional.pad(value, (0, n_more), value=fill)

    padded = Attention(
        torch.nn.functional.pad(short.weights, (0, n_more, 0, n_more), value=0.0).index_fill(
            2, torch.tensor([5, 6, 7]), 0.125
        ),
        widened(short.query_ids, 0),
        widened(short.key_ids, 0),
        widened(short.query_is_padding, True),
        widened(short.key_is_padding, True),
        True,
        widened(short.expected_keys, 0),
    )
    assert measure(name, padded) == pytest.approx(measure(name, short), abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_inputs_are_left_as_they_are(name):
    attention = some_attention(1, 2, 2, 4, 4, is_self=True)
    before = attention.weights.clone()
    METRICS[name].compute(attention)
    assert torch.equal(attention.weights, before)


def test_hand_built_heads_measure_as_what_they_are():
    config = TransformerConfig("encoder", vocab_size=20, d_model=64, n_heads=4, d_ff=32, n_layers=1)
    ids = torch.tensor([[3, 9, 4, 12, 9, 7, 5, 3]])
    model = build_model(config, "hand_built", 0)
    with torch.inference_mode(), record(model) as trace:
        model(ids)
    nothing = torch.zeros(1, 8, dtype=torch.bool)
    attention = Attention(trace["encoder.layers.0.self_attention.weights"].value, ids, ids, nothing, nothing, True)
    names = head_names(config, "hand_built")
    for head in ("previous token", "same token", "first token"):
        measured = measure(head.replace(" ", "_"), attention)
        assert measured.index(max(measured)) == names.index(head)
        assert max(measured) > 0.9


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weights": torch.zeros(2, 4, 4)}, "weights has 3 axes: it must have four"),
        (
            {"query_ids": torch.zeros(2, 3)},
            r"query_ids has shape \(2, 3\): beside these weights it must have \(2, 4\)",
        ),
        ({"key_is_padding": torch.zeros(2, 1, 1, 5)}, r"key_is_padding .* must have \(2, 5\)"),
        ({"expected_keys": torch.zeros(2, 5)}, r"expected_keys .* must have \(2, 4\)"),
    ],
)
def test_what_does_not_fit_the_weights_is_refused(changed, message):
    given_parts = vars(some_attention(0, 2, 2, 4, 5, is_self=False))
    with pytest.raises(ValueError, match=message):
        Attention(**(given_parts | changed))


def test_every_metric_says_what_it_is():
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)
    for metric in METRICS.values():
        assert metric.formula
        assert metric.compute.__doc__
