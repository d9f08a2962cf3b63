from dataclasses import replace
from types import MappingProxyType

import pytest
import torch

from model import record, seed_dropout
from tests.visualizer.sample_runs import BASE, EDITED, VARIANTS, run_of
from visualizer.runs.compute import compute_run
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.stages.checks import attention_agreement, equals_published, summarize
from visualizer.stages.derivations import Cell
from visualizer.stages.registry import checks, derive, explanation


@pytest.mark.parametrize("name", [*VARIANTS, *WORKED_EXAMPLES])
def test_everything_that_must_hold_holds(name):
    run = run_of(name)
    for path in run.trace:
        found = checks(run, path)
        for check in found:
            assert check.holds is not False, (path, check.text)
        assert any("published" in check.text for check in found) == (path in run.published)


@pytest.mark.parametrize("name", EDITED)
def test_beside_an_edit_nothing_is_called_wrong_and_only_what_agrees_is_derived(name):
    run = compute_run(replace(BASE, **EDITED[name]))
    found = {path: checks(run, path) for path in run.trace}
    assert all(check.holds is not False for each in found.values() for check in each)
    assert any(check.holds is None for each in found.values() for check in each)
    for path, stage in run.trace.items():
        assert explanation(run, path, "plain")
        for row in range(stage.value.shape[-2]):
            cell = Cell(path, 0, (run.n_heads(path) or 1) - 1, row, min(1, stage.value.shape[-1] - 1))
            assert all(derivation.agrees for derivation in derive(run, cell)), (path, row)


def edited(run, path, edit):
    """The trace of a run with one stage replaced."""
    ids = torch.tensor([run.tokens["source"].ids])
    seed_dropout(run.model, run.settings.seed)
    with torch.no_grad(), record(run.model, MappingProxyType({path: edit})) as trace:
        run.model(ids, source_mask=run.masks["encoder.layers.0.self_attention"].allowed)
    return trace


def more(value):
    return value * 1.01 + 0.01


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        *((f"inputs.{name}", more) for name in ("scaled_embedding", "positional_encoding", "embedded")),
        *((f"layers.0.self_attention.{name}", more) for name in ("q_proj", "k_proj", "v_proj", "q", "k", "v")),
        *((f"layers.0.self_attention.{name}", more) for name in ("scores", "scaled_scores", "weights")),
        ("layers.0.self_attention.mask", torch.logical_not),
        ("layers.0.self_attention.masked_scores", lambda value: value.nan_to_num(neginf=-1e9)),
        *((f"layers.0.self_attention.{name}", more) for name in ("context", "concat", "output")),
        *((f"layers.0.feed_forward.{name}", more) for name in ("hidden", "activation", "output")),
        *((f"layers.0.{name}", more) for name in ("residual1", "norm1", "residual2", "norm2")),
    ],
)
def test_what_does_not_hold_is_seen(path, broken):
    run, path = run_of("encoder"), f"encoder.{path}"
    trace = edited(run, path, broken)
    found = checks(replace(run, trace=trace), path)
    assert any(check.holds is False for check in found)


@pytest.mark.parametrize("name", ["qkv", "q_proj", "k_proj", "v_proj"])
def test_what_does_not_hold_of_a_fused_projection_is_seen(name):
    run, path = run_of("fused q, k, v"), f"encoder.layers.1.self_attention.{name}"
    assert all(check.holds is not False for check in checks(run, path))
    assert any(check.holds is False for check in checks(replace(run, trace=edited(run, path, more)), path))


@pytest.mark.parametrize("name", ["hidden", "activation", "output"])
def test_one_token_alone_gives_the_same_row_of_the_feed_forward_network(name):
    run, path = run_of("gelu"), f"encoder.layers.0.feed_forward.{name}"
    said = "position-wise: each token sent through alone gives the same row, max |difference| ="
    assert [check.holds for check in checks(run, path) if said in check.text] == [True]
    trace = edited(run, path, lambda value: value + value.mean(-2, keepdim=True))  # what mixes the tokens is seen
    assert [check.holds for check in checks(replace(run, trace=trace), path) if said in check.text] == [False]
    assert not [check for check in checks(run_of("dropout"), path) if said in check.text]


@pytest.mark.parametrize("path", ["logits", "probabilities"])
def test_what_does_not_hold_of_the_output_is_seen(path):
    run = run_of("encoder")
    assert any(check.holds is False for check in checks(replace(run, trace=edited(run, path, more)), path))


@pytest.mark.parametrize(
    "path",
    [
        "inputs.embedded",
        "layers.0.self_attention.dropped_weights",
        "layers.0.feed_forward.dropped_activation",
        "layers.0.residual1",
    ],
)
def test_what_dropout_would_not_do_is_seen(path):
    run, path = run_of("dropout"), f"encoder.{path}"
    assert all(check.holds is not False for check in checks(run, path))
    assert any(check.holds is False for check in checks(replace(run, trace=edited(run, path, more)), path))


def test_a_number_that_is_not_the_published_one_is_seen():
    published = torch.tensor([[1.0, -torch.inf]], dtype=torch.float64)
    assert equals_published(published.clone(), published).holds
    assert equals_published(published + 1e-10, published).holds
    assert not equals_published(published + 2e-9, published).holds
    assert not equals_published(torch.tensor([[1.0, -1e9]], dtype=torch.float64), published).holds
    assert not equals_published(published.flip(1), published).holds
    assert not equals_published(torch.full((1, 2), torch.nan, dtype=torch.float64), published).holds


def test_scores_are_divided_by_the_root_of_the_width():
    path = "encoder.layers.0.self_attention.scaled_scores"
    found = {name: checks(run_of(name), path)[0] for name in ("encoder", "unscaled")}
    assert found["encoder"].text == "every score was divided by √d_k = √4 = 2"
    assert found["unscaled"].text == "scaling is off: equal to the scores"


def test_of_a_long_text_some_rows_are_checked():
    run = compute_run(replace(BASE, text="a b c d " * 25))
    texts = [check.text for check in checks(run, "encoder.layers.0.self_attention.scores")]
    assert texts[0].startswith("Q Kᵀ recomputed in float64 on 64 of 102 rows")


@pytest.mark.parametrize("stage", ["scores", "mask", "weights", "context", "concat", "output"])
def test_each_attention_is_held_against_pytorch(stage):
    run = run_of("encoder")
    texts = [check.text for check in checks(run, f"encoder.layers.0.self_attention.{stage}")]
    assert any("matches PyTorch's F.scaled_dot_product_attention" in text for text in texts)


def test_an_attention_that_was_tampered_with_does_not_match_pytorchs():
    module = "encoder.layers.0.self_attention"
    run = run_of("encoder")
    assert attention_agreement(run.trace, module).holds
    assert not attention_agreement(edited(run, f"{module}.context", more), module).holds


def test_with_dropout_the_weights_before_it_are_compared():
    check = attention_agreement(run_of("dropout").trace, "encoder.layers.0.self_attention")
    assert check.holds
    assert "with the weights before dropout" in check.text


def test_every_mask_is_counted():
    run = run_of("encoder")  # five words and two padding tokens, causal and padding
    path = "encoder.layers.0.self_attention.mask"
    texts = [check.text for check in checks(run, path)]
    assert texts[0] == "24 of 49 cells are blocked: 21 by causal, 14 by padding, 11 of them by both"


def test_dropped_rows_are_said_not_to_sum_to_one():
    run = run_of("dropout")
    texts = [c.text for c in checks(run, "encoder.layers.0.self_attention.dropped_weights")]
    assert any("do not sum to one" in text for text in texts)


def test_a_summary_leaves_out_what_is_not_finite():
    assert str(summarize(torch.tensor([-2.0, -0.0])).greatest) == "0.0"
    summary = summarize(torch.tensor([1.0, 3.0, -torch.inf]))
    assert (summary.least, summary.greatest, summary.mean) == (1.0, 3.0, 2.0)
