"""The blocks that the Mask lab shows are those of the mask in force on the head that is looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from headlight.masks.blocks import EMPTY, FULL, blocks_of_cells
from tests.visualizer.sample_runs import BASE
from visualizer.runs.compute import compute_run
from visualizer.settings.painted_mask import encode_cells
from visualizer.settings.settings import Selection
from visualizer.views.lab.blocks import blocks_of, expression_of, summary
from visualizer.views.lab.case import case_of

IRREGULAR = torch.rand(64, 64, generator=torch.Generator().manual_seed(0)) < 0.5
LONG = replace(BASE, n_layers=1, text="a cat " * 31, pad=2)


@pytest.mark.parametrize(
    "settings",
    [
        replace(LONG, mask=("causal", "padding")),
        replace(LONG, mask=("strided", "custom"), custom="h == 1 or k <= q"),
        replace(LONG, mask=("custom",), custom=encode_cells(IRREGULAR.numpy())),
        replace(LONG, mask=()),
    ],
    ids=["two masks", "of the head", "cell by cell", "none"],
)
def test_the_blocks_are_those_of_the_cells_that_the_head_may_see(settings):
    run = compute_run(settings)
    for head in range(2):
        case = case_of(run, Selection(head=head))
        found = blocks_of(case, expression_of(case), None, 8)
        assert torch.equal(found.kinds, blocks_of_cells(case.allowed, 8).kinds)


def test_a_longer_text_stretches_the_padding():
    case = case_of(compute_run(replace(LONG, mask=("padding",))), Selection())
    found = blocks_of(case, expression_of(case), 8192, 128)
    assert (found.count(EMPTY), found.count(FULL)) == (64 * 2, 64 * 62)
    assert summary(found).startswith("128 empty · 0 partial · 3,968 full of 4,096 blocks: **3.1%**")
