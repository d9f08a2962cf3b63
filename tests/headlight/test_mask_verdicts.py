"""Masks that are right raise no alarm, and each bug is named by its own name and by no other."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

import headlight
from tests.headlight.mask_cases import BUGS, CORRECT, T, by_logsumexp, by_sum, causal, exponentials, of, plus_one
from visualizer.runs.watched import WatchedRun

CONSEQUENCES = {"Weights are NaN", "A query has no key left"}
"""Findings that stand beside the name of the bug that leads to them."""


def alarms(report):
    return [finding.title for _, finding in report.findings if finding.severity != "note"]


@pytest.mark.parametrize("name", CORRECT)
def test_a_mask_that_is_right_raises_no_alarm_and_changes_nothing(name):
    case = CORRECT[name]
    with torch.no_grad():
        torch.manual_seed(0)
        plain = case.model(*case.args, **case.kwargs)
        torch.manual_seed(0)
        with headlight.watch(case.model) as trace:
            assert torch.equal(case.model(*case.args, **case.kwargs), plain)
    assert trace.paths
    report = headlight.check(case.model, *case.args, **case.kwargs, **case.told)
    assert not alarms(report)
    assert "not read" not in str(report)
    assert headlight.load(trace.to_bytes()).paths == trace.paths


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_named_by_its_own_name(name):
    case = BUGS[name]
    report = headlight.check(case.model, *case.args, **case.kwargs, **case.told)
    assert case.title in str(report)
    assert set(alarms(report)) <= {case.title} | CONSEQUENCES


WORDS = {
    "a sink at the end": "6 queries, 6 keys and a sink  causal",
    "a sink in front": "6 queries, 6 keys and a sink  causal",
    "heads last": "4 heads  6 queries, 6 keys   causal",
    "heads first": "4 heads  6 queries, 6 keys   bidirectional, padding ignored on the right",
    "heads first, by the function": "4 heads  6 queries, 6 keys   bidirectional, padding ignored on the right",
    "queries in chunks": "This is a part of an attention",
    "two kinds of keys": "6 queries, 9 keys every query sees every key",
    "slots of memory": "causal, 4 keys before query 0",
    "one query for all": "keys where k < 4",
    "blocks": "bidirectional, within blocks of 2",
    "prefixes of other lengths": "item 0: a prefix of 3, then causal; item 1: causal",
    "masked, then soft-clamped": "causal",
    "documents": "causal, documents isolated",
    "softmax plus one": "The weights of a row do not sum to 1",
    "talking heads": "The weights are changed once more after the softmax",
    "experts that are weighted": "Each query has keys of its own",
    "tokens that are pooled": "Each query has keys of its own",
    "source padding": "bidirectional, padding ignored on the right",
}


@pytest.mark.parametrize("name", WORDS)
def test_what_is_known_is_said_and_no_more(name):
    case = CORRECT[name]
    said = str(headlight.check(case.model, *case.args, **case.kwargs))
    assert " ".join(WORDS[name].split()) in " ".join(said.split())


WAYS = {
    "by the sum": (by_sum, torch.softmax),
    "by logsumexp": (by_logsumexp, torch.softmax),
    "by log_softmax": (lambda scores: scores.log_softmax(-1).exp(), torch.softmax),
    "plus one": (plus_one, lambda scores, axis: scores.exp() / (1 + scores.exp().sum(axis, keepdim=True))),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_softmax_that_is_written_out_gives_its_own_weights(way):
    written, expected = WAYS[way]
    case = of(exponentials(written))
    with torch.no_grad(), headlight.watch(case.model) as trace:
        case.model(*case.args)
    q, k, _ = case.model.layers[0].heads(*case.args)
    scores = (q @ k.mT / 2).masked_fill(~causal(T), -torch.inf)
    torch.testing.assert_close(trace[0].weights, expected(scores, -1).detach())


def with_item(raised):
    raised[..., ~causal(T)] = 0.0
    return raised


@pytest.mark.parametrize(
    "masked",
    [
        torch.tril,
        lambda raised: raised.tril_(),
        lambda raised: raised.masked_fill(~causal(T), 0),
        lambda raised: torch.where(causal(T), raised, torch.zeros_like(raised)),
        with_item,
    ],
    ids=["tril", "tril_", "masked_fill", "where", "setitem"],
)
def test_exponentials_that_become_zero_are_blocked(masked):
    def attend(q, k, v):
        raised = masked((q @ k.mT / 2).exp())
        return raised / (raised.sum(-1, keepdim=True) + 1e-9) @ v

    case = of(attend)
    (row,) = headlight.check(case.model, *case.args, causal=True).rows
    assert (row.descriptions[0][1].words, row.findings) == ("causal", ())
    q, k, _ = case.model.layers[0].heads(*case.args)
    scores = (q @ k.mT / 2).masked_fill(~causal(T), -torch.inf)
    torch.testing.assert_close(row.attention.weights, scores.softmax(-1).detach())


@pytest.mark.parametrize("name", ["a sink at the end", "a sink in front"])
def test_a_sink_is_the_last_key_and_takes_what_is_left(name):
    case = CORRECT[name]
    with torch.no_grad(), headlight.watch(case.model) as trace:
        case.model(*case.args)
    (seen,) = trace
    assert (seen.sinks, seen.shape) == (1, (2, 4, T, T + 1))
    q, k, _ = case.model.layers[0].heads(*case.args)
    scores = (q @ k.mT / 2).masked_fill(~causal(T), -torch.inf)
    sink = torch.linspace(-1, 1, 4)[:, None, None].expand(2, -1, T, 1)
    torch.testing.assert_close(seen.weights, torch.cat([scores, sink], -1).softmax(-1).detach())


@pytest.mark.parametrize("name", [*CORRECT, *BUGS])
def test_a_recording_is_judged_as_the_pass_was(name):
    case = {**CORRECT, **BUGS}[name]
    if case.told or name == "dropped weights":
        return
    with torch.no_grad(), headlight.watch(case.model) as trace:
        case.model(*case.args, **case.kwargs)
    report = headlight.check(case.model, *case.args, **case.kwargs)
    run = WatchedRun(headlight.load(trace.to_bytes()), "")
    assert [(path, found.title) for path, found in run.findings] == [
        (path, found.title) for path, found in report.findings
    ]


def test_every_difference_from_what_was_expected_is_counted_and_the_first_are_named():
    case = BUGS["a window off by one"]
    report = headlight.check(case.model, *case.args, expected="0 <= q - k < 3")
    (error,) = report.errors
    n = 2 * 4 * 3  # sequences, heads, and queries that see a fourth key
    assert f"{n} cells are open that should be blocked: query 3 sees key 0, query 4 sees key 1" in error
    both = headlight.check(case.model, *case.args, expected=causal(T).T)
    assert "cells are blocked that should be open" in both.errors[0]
    assert not headlight.check(case.model, *case.args, expected="0 <= q - k < 4").findings
    assert not headlight.check(
        case.model, *case.args, expected={"layers.*": lambda b, h, q, k: (k <= q) & (q - k < 4)}
    ).findings
    assert "no attention has such a path" in str(
        headlight.check(case.model, *case.args, expected={"other": "True"})
    )
    wrong = headlight.check(case.model, *case.args, expected=torch.ones(3, 5, dtype=torch.bool))
    assert "The expected mask was not compared" in wrong.errors[0]


def test_a_block_mask_may_be_expected():
    case = CORRECT["causal by a flag"]
    right, wrong = (
        create_block_mask(mask_mod, None, None, T, T, device="cpu")
        for mask_mod in (lambda b, h, q, k: k <= q, lambda b, h, q, k: k < q)
    )
    assert not headlight.check(case.model, *case.args, expected=right).findings
    assert "query 0 sees key 0" in headlight.check(case.model, *case.args, expected=wrong).errors[0]


def test_an_expected_mask_of_each_sequence_and_head_names_both():
    allowed = causal(T).expand(2, 4, -1, -1).clone()
    allowed[1, 2, 0, 3] = True
    case = CORRECT["causal by a flag"]
    (error,) = headlight.check(case.model, *case.args, expected=allowed).errors
    assert "1 cell is blocked that should be open: in sequence 1, head 2, query 0 does not see key 3." in error


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        ("k <<< q", "A value is missing between"),
        ("k <= q and", "A value is missing after"),
        (lambda b, h, q, k: 1 / 0, "ZeroDiv"),
        (torch.ones(T, T), "Expected is"),
    ],
)
def test_an_expected_mask_that_is_none_is_said_and_raises_nothing(expected, why):
    case = CORRECT["causal by a flag"]
    report = headlight.check(case.model, *case.args, expected=expected)
    assert f"The expected mask was not compared. {why}" in report.errors[0]
    assert report.rows[0].descriptions[0][1].words == "causal"


def test_padding_that_is_none_is_said_and_raises_nothing():
    case = CORRECT["causal by a flag"]
    report = headlight.check(case.model, *case.args, padding=torch.ones(2, T))
    assert report.notes[0].startswith("The padding was not taken: padding is torch.float32 (2, 6)")
