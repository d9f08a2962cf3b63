"""The Mask lab's code of a change of scores, executed on the run's own queries, keys and values."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from headlight.masks.language import READY_SCORES, parse_score
from tests.visualizer.sample_runs import BASE
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Selection
from visualizer.views.lab.case import case_of
from visualizer.views.lab.score import flex_code, plain_code

CAUSAL = replace(BASE, n_layers=1, mask=("causal",))


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("settings", [CAUSAL, replace(CAUSAL, scale_scores=False)], ids=["scaled", "unscaled"])
def test_both_pieces_of_code_give_what_the_model_computed(settings):
    for text in (READY_SCORES[0].text, READY_SCORES[5].text, "2 * tanh(score / 2) - h"):
        run = compute_run(replace(settings, score=text))
        case, change = case_of(run, Selection()), parse_score(text)
        stages = {name: run.trace[f"{case.module}.{name}"].value for name in ("q", "k", "v", "mask", "context")}
        names = dict(zip(("query", "key", "value"), (stages[name] for name in "qkv"), strict=True))
        exec(flex_code(case, change).replace("# output", "output"), names)
        torch.testing.assert_close(names["output"], stages["context"], rtol=1e-4, atol=1e-5)
        exec(plain_code(case, change), names)
        found = names["attention"](stages["q"], stages["k"], stages["v"], stages["mask"])
        torch.testing.assert_close(found, stages["context"], rtol=1e-4, atol=1e-5)
