from types import MappingProxyType

import pytest
import torch

from model import record
from tests.visualizer.runs import VARIANTS, run_of
from visualizer.checks import checks, summarize
from visualizer.settings import WORKED_EXAMPLES


@pytest.mark.parametrize("name", [*VARIANTS, *WORKED_EXAMPLES])
def test_everything_that_must_hold_holds(name):
    run = run_of(name)
    for path, stage in run.trace.items():
        for check in checks(run.trace, run.model, path, run.mask_of(stage.module_path)):
            assert check.holds is not False, (path, check.text)


@pytest.mark.parametrize(
    ("stage", "broken"),
    [
        ("scores", lambda value: value + 0.1),
        ("scaled_scores", lambda value: value * 1.01),
        ("weights", lambda value: value + 0.1),
        ("masked_scores", lambda value: value.nan_to_num(neginf=-1e9)),
        ("context", lambda value: value * 2 + 5),
    ],
)
def test_what_does_not_hold_is_seen(stage, broken):
    run = run_of("encoder")
    path = f"encoder.layers.0.self_attention.{stage}"
    ids = torch.tensor([run.tokens["source"].ids])
    mask = run.masks["encoder.self_attention"].allowed
    with torch.no_grad(), record(run.model, MappingProxyType({path: broken})) as trace:
        run.model(ids, source_mask=mask)
    assert any(check.holds is False for check in checks(trace, run.model, path))


@pytest.mark.parametrize("stage", ["scores", "weights", "context"])
def test_each_attention_is_held_against_pytorch(stage):
    run = run_of("encoder")
    texts = [check.text for check in checks(run.trace, run.model, f"encoder.layers.0.self_attention.{stage}")]
    assert any("matches PyTorch's F.scaled_dot_product_attention" in text for text in texts)


def test_every_mask_is_counted():
    run = run_of("encoder")  # five words and two padding tokens, causal and padding
    path = "encoder.layers.0.self_attention.mask"
    texts = [check.text for check in checks(run.trace, run.model, path, run.masks["encoder.self_attention"])]
    assert texts[0] == "24 of 49 cells are blocked: 21 by causal, 14 by padding, 11 of them by both"


def test_dropped_rows_are_said_not_to_sum_to_one():
    run = run_of("dropout")
    texts = [c.text for c in checks(run.trace, run.model, "encoder.layers.0.self_attention.dropped_weights")]
    assert any("do not sum to one" in text for text in texts)


def test_a_summary_leaves_out_what_is_not_finite():
    summary = summarize(torch.tensor([1.0, 3.0, -torch.inf]))
    assert (summary.least, summary.greatest, summary.mean) == (1.0, 3.0, 2.0)
