"""The pictures hold the model's own numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model.decoding import GREEDY, Sampling
from model.tracing import record
from tests.visualizer.runs.test_writer import TRAINED
from tests.visualizer.sample_runs import run_of
from visualizer.components.generation.element import StepsPicture, steps_payload
from visualizer.runs.compute import compute_run
from visualizer.runs.continuation import Beam, OneByOne, search, write
from visualizer.runs.run import Run
from visualizer.runs.writer import writer_of
from visualizer.views.generate.pictures import N_BARS, steps_picture, tree_picture


def picture_of(run: Run, how: OneByOne) -> StepsPicture:
    writer = writer_of(run)
    return steps_picture(run, writer, how, write(writer, how))


def test_a_step_shows_the_row_of_the_attention_that_chose_it():
    run = compute_run(TRAINED["reverse"])
    writer = writer_of(run)
    picture = picture_of(run, OneByOne(GREEDY, 20))
    target = torch.tensor([(*writer.prompt, *writer.answer)])
    with torch.inference_mode(), record(run.model) as trace:
        run.model(torch.tensor([writer.source]), target, target_mask=torch.ones(10, 10).tril().bool())
    whole = trace["decoder.layers.0.cross_attention.weights"].value[0]
    assert picture.weights.shape == (10, 1, 4, 10)
    for step in range(10):
        np.testing.assert_allclose(picture.weights[step, 0], whole[:, step], atol=1e-5)
    probabilities = trace["probabilities"].value[0]
    for step, drawn in enumerate(picture.steps):
        assert drawn.bars[0].probability == pytest.approx(float(probabilities[step].max()), abs=1e-5)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=3.0, top_k=4, seed=2)])
def test_the_bars_and_the_tail_are_everything(sampling):
    picture = picture_of(compute_run(TRAINED["reverse"]), OneByOne(sampling, 12))
    for step in picture.steps:
        bars = step.bars
        assert len(bars) == N_BARS
        assert sum(bar.probability for bar in bars) + step.tail.probability == pytest.approx(1)
        assert sum(bar.share for bar in bars) + step.tail.share == pytest.approx(1)
        assert len(bars) + step.tail.count == 29
        assert [bar.probability for bar in bars] == sorted((bar.probability for bar in bars), reverse=True)
        assert [bar.chosen for bar in bars].count(True) == 1
        if sampling is not GREEDY:
            assert sum(bar.share > 0 for bar in bars) == 4


def test_a_chosen_token_from_the_tail_has_a_bar_with_its_rank():
    run = compute_run(TRAINED["reverse"])
    writer = writer_of(run)
    how = OneByOne(Sampling(temperature=100.0, seed=1), 12)
    written = write(writer, how)
    picture = steps_picture(run, writer, how, written)
    ranks = [next(bar.rank for bar in step.bars if bar.chosen) for step in picture.steps]
    expected = [1 + int((step.logits > step.logits[step.token]).sum()) for step in written.steps]
    assert ranks == expected
    assert max(ranks) > N_BARS
    assert all(len(step.bars) == N_BARS for step in picture.steps)


def test_a_decoder_shows_its_self_attention_over_the_tokens_so_far():
    run = run_of("decoder")
    picture = picture_of(run, OneByOne(GREEDY, 4))
    n_prompt = picture.n_prompt
    assert picture.own
    assert picture.weights.shape == (4, 2, 4, n_prompt + 3)
    for step in range(4):
        np.testing.assert_allclose(picture.weights[step, ..., : n_prompt + step].sum(-1), 1, atol=1e-5)
        assert not picture.weights[step, ..., n_prompt + step :].any()
    assert picture.blocked_by == ("causal",)
    assert np.array_equal(picture.blocked, np.triu(np.ones((n_prompt + 3, n_prompt + 3)), 1))


def test_the_rows_computed_with_and_without_a_cache():
    run = run_of("encoder-decoder")
    n_source = len(run.tokens["source"])
    plain = picture_of(run, OneByOne(GREEDY, 5)).steps
    assert [step.computed for step in plain] == [1, 2, 3, 4, 5]
    assert [step.source_computed for step in plain] == [n_source] * 5
    cached = picture_of(run, OneByOne(GREEDY, 5, cached=True)).steps
    assert [step.computed for step in cached] == [1] * 5
    assert [step.source_computed for step in cached] == [n_source, 0, 0, 0, 0]
    decoder = run_of("decoder")
    n_prompt = len(writer_of(decoder).prompt)
    assert [s.computed for s in picture_of(decoder, OneByOne(GREEDY, 3, cached=True)).steps] == [n_prompt, 1, 1]


def test_padding_of_the_source_is_hatched():
    run = run_of("encoder-decoder")
    picture = picture_of(run, OneByOne(GREEDY, 2))
    assert picture.keys_blocked.tolist() == [int(pads) for pads in run.tokens["source"].is_padding]
    assert not picture.weights[..., picture.keys_blocked.astype(bool)].any()


def test_a_tree_knows_its_results_and_its_numbers():
    run = compute_run(TRAINED["reverse"])
    writer = writer_of(run)
    tree = search(writer, Beam(3, 0.6, 20))
    nodes, best = tree_picture(run, writer, tree)
    assert "".join(nodes[best[0]].text) == "thgildaeh<eos>"
    assert [nodes[index].score for index in best] == sorted((nodes[index].score for index in best), reverse=True)
    for node in nodes[1:]:
        assert node.parent is not None
        parent = nodes[node.parent]
        assert node.text == (*parent.text, node.label)
        assert node.depth == parent.depth + 1
        assert node.total == pytest.approx(parent.total + np.log(node.probability))
        assert parent.kept
    assert nodes[0].text == ()


def test_what_does_not_fit_is_refused():
    picture = picture_of(run_of("decoder"), OneByOne(GREEDY, 2))
    assert isinstance(steps_payload(picture, {}), bytes)
    with pytest.raises(ValueError, match="labels"):
        StepsPicture(**{**vars(picture), "labels": picture.labels[:-1]})
    with pytest.raises(ValueError, match="weights"):
        StepsPicture(**{**vars(picture), "weights": picture.weights[:1]})


def test_what_is_never_written_keeps_its_probability_and_is_passed_over():
    run = run_of("decoder")
    writer = writer_of(run)
    greedy = write(writer, OneByOne(GREEDY, 12))
    picture = steps_picture(run, writer, OneByOne(GREEDY, 12), greedy)
    over = [step for step in greedy.steps if step.logits.argmax() in writer.never]
    assert over, "these weights put <pad> or <s> first somewhere"
    for step, drawn in zip(greedy.steps, picture.steps, strict=True):
        assert step.token not in writer.never
        allowed = [token for token in range(len(step.logits)) if token not in writer.never]
        assert step.logits[step.token] == step.logits[allowed].max()
        probabilities = step.logits.double().softmax(0)
        assert {bar.label for bar in drawn.bars if bar.never} == {"<pad>", "<s>"}
        for bar in drawn.bars:
            assert bar.probability == pytest.approx(float(probabilities[run.vocabulary.index(bar.label)]))
        assert ("never written" in drawn.sentence) == any(step is each for each in over)

    how = OneByOne(Sampling(temperature=3.0, seed=1), 12)
    for drawn in steps_picture(run, writer, how, write(writer, how)).steps:
        assert all(bar.share == 0 for bar in drawn.bars if bar.never)
        assert sum(bar.share for bar in drawn.bars) + drawn.tail.share == pytest.approx(1)
    tree = search(writer, Beam(3, 0.6, 4))
    assert not {node.token for node in tree.nodes[1:]} & set(writer.never)
