"""Operations that are one known step: what it reads, its formula, and how a number came to be."""

from types import SimpleNamespace

import pytest
import torch

import headlight
from model.dataflow import inputs_of
from tests.headlight.test_transformers_models import IDS, built
from visualizer.runs.watched import WatchedRun
from visualizer.stages import watched


@pytest.fixture(scope="module", params=["gpt2", "gptj", "llama"])
def run(request):
    model = built(request.param, attn_implementation="eager")
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(IDS)
    return WatchedRun(trace, request.param)


def test_every_number_of_a_step_is_followed_to_what_the_step_reads(run):
    for folded in run.trace.patterns.values():
        stage = run.trace.stages[folded.stages[-1]]
        places = [tuple(size - 1 - back for size in stage.value.shape) for back in (0, 1)]
        for index in (tuple(max(place, 0) for place in at) for at in places):
            found = watched.derivation(run, stage, index, folded)
            assert found.agrees, folded.path
            assert found.result == pytest.approx(float(stage.value[index]), rel=1e-4, abs=1e-6)
            leaves = {leaf for node in folded.inputs.values() for leaf in inputs_of(node)}
            names = {(getattr(leaf, "path", "") or leaf.name).rpartition(".")[2] for leaf in leaves}
            read = {
                step.text.partition("[")[0].rpartition(".")[2] for step in found.steps if step.text.endswith("]")
            }
            assert read <= names, folded.path
            assert read or folded.pattern.name == "gated_feed_forward", folded.path


def test_a_step_shows_what_it_reads_as_its_formula_sees_it(run):
    for folded in run.trace.patterns.values():
        read = watched.read_by_step(run, folded, item=0, head=1)
        assert [each.panel.title.partition(" = ")[0] for each in read] == list(folded.inputs)
        assert watched.check_of_step(folded).holds
        if folded.pattern.name.startswith("rotary"):
            value = run.trace.stages[folded.stages[-1]].value
            assert read[0].panel.array.shape == value.shape[-2:]
            assert not read[0].same_places


def test_what_a_mask_blocks_is_hatched_and_not_a_number_among_others(run):
    folded = next(folded for folded in run.trace.patterns.values() if folded.pattern.name == "masked_softmax")
    stage = run.trace.stages[folded.stages[-1]]
    mask = watched.read_by_step(run, folded, item=0, head=0)[1].panel
    assert mask.blocked.tolist() == torch.ones(7, 7).triu(1).tolist()
    assert mask.bounds == (0.0, 1.0)
    assert watched.derivation(run, stage, (0, 0, 4, 2), folded).blocked == (False,) * 5 + (True,) * 2


def test_numbers_and_names_of_steps():
    pattern = SimpleNamespace(name="rms_norm", title="RMSNorm")
    numbers = {"epsilon": 1e-6, "c": 0.125}
    folded = SimpleNamespace(path="a.rms_norm_2", module="a", pattern=pattern, numbers=numbers)
    assert watched.label_of_step(folded) == "RMSNorm 2"
    assert watched.numbers_of_step(folded) == r"\epsilon = 1 \cdot 10^{-6},\quad c = 0.125"
