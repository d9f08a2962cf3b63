"""The tokens of a recording stand where they are read, whatever the modules of its two stacks are called."""

import pytest
import torch

import headlight
from tests.headlight.test_roles import N_SOURCE, Reader, ids
from visualizer.runs.operations_run import run_of_operations
from visualizer.runs.watched import WatchedRun

SOURCE, TARGET = tuple("abcdef"), tuple("uvwxyz")


@pytest.fixture
def reading():
    model = Reader().eval()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(ids(N_SOURCE), ids(N_SOURCE))
    return WatchedRun(headlight.load(trace.to_bytes(tokens=SOURCE, target=TARGET)), "mine")


def test_each_attention_has_the_tokens_that_it_reads(reading):
    labels = [reading.labels(attention, 0) for attention in reading.trace[1:4]]
    assert labels == [(SOURCE, SOURCE), (TARGET, TARGET), (TARGET, SOURCE)]


@pytest.mark.parametrize(("stage", "tokens"), [
    ("words.embedding", SOURCE), ("words.embedding_2", TARGET), ("add_3", SOURCE),
    ("right.0.mha1.query.linear", TARGET), ("right.1.add_2", TARGET),
])  # fmt: skip
def test_each_operation_has_the_tokens_of_its_stack(reading, stage, tokens):
    run = run_of_operations(reading)
    assert run.axes(stage)[0].labels == tokens


def test_tokens_alone_are_those_of_the_encoder(reading):
    alone = headlight.load(reading.trace[:].to_bytes())
    alone.tokens, alone.texts = SOURCE, type(alone.texts)()
    labels = [WatchedRun(alone, "").labels(attention, 0) for attention in alone[1:4]]
    assert labels == [(SOURCE, SOURCE), ((), ()), ((), SOURCE)]
