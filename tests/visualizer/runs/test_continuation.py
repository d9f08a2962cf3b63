"""Writing against the model itself: the same tokens and numbers, and nothing computed twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from model.decoding import GREEDY, Reader, Sampling, beam_search, decode, next_logits
from tests.visualizer.runs.test_writer import TRAINED
from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.runs.compute import compute_run
from visualizer.runs.continuation import Beam, Difference, OneByOne, Sparing, search, write
from visualizer.runs.writer import Writer, writer_of
from visualizer.views.generate.last_continuation import account_of
from visualizer.views.generate.view import cache_check

WARM = Sampling(temperature=3.0, seed=5)


def writer_for(name: str) -> Writer:
    return writer_of(compute_run(TRAINED[name]) if name in TRAINED else run_of(name))


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """The number of tokens that each pass of a model read."""
    found: list[int] = []
    run = Reader.run

    def counted(self, model, tokens, n_read):
        found.append(len(tokens))
        return run(self, model, tokens, n_read)

    monkeypatch.setattr(Reader, "run", counted)
    return found


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("sampling", [GREEDY, WARM])
@pytest.mark.parametrize("name", ["decoder", "encoder-decoder", "reverse", "repeat_block"])
def test_it_writes_what_the_model_writes(name, sampling, cached):
    writer = writer_for(name)
    written = write(writer, OneByOne(sampling, 12, cached))
    never = replace(sampling, never=writer.never)
    steps = tuple(decode(writer.reader(cached=False), writer.prompt, never, end=writer.end, limit=12))
    assert written.tokens == tuple(step.token for step in steps)
    for own, plain in zip(written.steps, steps, strict=True):
        torch.testing.assert_close(own.logits, plain.logits, rtol=1e-5, atol=1e-5)
        for path, stage in own.trace.items():
            if path.endswith("weights"):
                torch.testing.assert_close(stage.value, plain.trace[path].value[..., -1:, :])


def test_a_trained_model_answers_and_stops():
    writer = writer_for("reverse")
    written = write(writer, OneByOne(GREEDY, 20))
    assert written.tokens == (*(writer.answer or ()), writer.end)


def test_another_temperature_runs_only_what_differs(passes):
    writer = writer_for("decoder")
    greedy = write(writer, OneByOne(GREEDY, 12))
    assert len(passes) == 12
    warm = write(writer, OneByOne(WARM, 12), greedy)
    assert warm.differs_at is not None
    assert warm.n_kept == warm.differs_at + 1
    assert passes[12:] == [len(step.tokens) for step in warm.steps[warm.n_kept :]]
    assert warm.tokens == write(writer, OneByOne(WARM, 12)).tokens
    kept = [own.trace is old.trace for own, old in zip(warm.steps, greedy.steps, strict=True)]
    assert kept == [True] * warm.n_kept + [False] * (12 - warm.n_kept)


def test_the_same_choices_run_nothing_and_more_tokens_run_only_those(passes):
    writer = writer_for("decoder")
    short = write(writer, OneByOne(GREEDY, 4))
    passes.clear()
    again = write(writer, OneByOne(Sampling(temperature=1.0, top_k=1), 4), short)
    assert (again.tokens, again.n_kept, again.differs_at, passes) == (short.tokens, 4, None, [])
    longer = write(writer, OneByOne(GREEDY, 6), short)
    assert longer.tokens[:4] == short.tokens
    assert len(passes) == 2
    assert write(writer, OneByOne(GREEDY, 2), longer).tokens == short.tokens[:2]
    assert len(passes) == 2


@pytest.mark.parametrize("name", ["decoder", "encoder-decoder", "reverse"])
def test_the_cache_changes_no_number(name):
    written = write(writer_for(name), OneByOne(GREEDY, 12, cached=True))
    assert written.difference is not None
    assert written.difference.is_rounding
    assert written.difference.probabilities <= 1e-6
    assert write(writer_for(name), OneByOne(GREEDY, 12)).difference is None


def test_a_difference_that_is_no_rounding_is_seen():
    assert Difference(1e-7, 8e-6, 10.0).is_rounding
    assert not Difference(2e-5, 0.0, 10.0).is_rounding
    assert not Difference(0.0, 2e-5, 10.0).is_rounding


@pytest.mark.parametrize(
    ("score", "is_rounding"), [("", True), ("2 * tanh(score / 2)", True), ("score * n_keys", False)]
)
def test_a_difference_beyond_the_bound_is_looked_at_in_float64(score, is_rounding):
    run = compute_run(replace(VARIANTS["hand-built"], architecture="decoder", score=score, mask=("causal",)))
    found = write(replace(writer_of(run), rounding=0.0), OneByOne(GREEDY, 5, cached=True)).difference
    assert found is not None
    assert found.in_float64 is not None
    assert (found.in_float64 <= 1e-12) == is_rounding == found.is_rounding
    assert "in float64" in cache_check(found).text


def test_a_trace_keeps_little():
    writer = writer_for("decoder")
    whole = writer.reader(cached=False)(writer.prompt, None)
    spared = Sparing(writer.reader(cached=False), for_cache=False)(writer.prompt)
    assert torch.equal(next_logits(spared), next_logits(whole))
    assert {path.rpartition(".")[2] for path in spared} == {"logits", "weights"}
    assert all(stage.value.untyped_storage().nbytes() == stage.value.nbytes for stage in spared.values())
    assert all(dict(stage.dims)[symbol] == 1 for stage in spared.values() for symbol, _ in stage.dims[-2:-1])


@pytest.mark.parametrize("name", ["decoder", "reverse"])
def test_a_search_finds_what_the_model_package_finds(name):
    writer = writer_for(name)
    tree = search(writer, Beam(width=3, length_penalty=0.6, limit=6))
    read = writer.reader(cached=False)
    expected = beam_search(read, writer.prompt, 3, end=writer.end, limit=6, length_penalty=0.6, never=writer.never)
    for own, plain in zip(tree.nodes, expected.nodes, strict=True):
        assert (own.tokens, own.total, own.score, own.kept, own.finished) == (
            plain.tokens,
            plain.total,
            plain.score,
            plain.kept,
            plain.finished,
        )
        assert own.trace is None


@pytest.mark.parametrize(
    ("n_steps", "n_kept", "differs_at", "said"),
    [
        (12, 0, None, "One run of the model for each token: 12 times."),
        (4, 4, None, "each step chooses the token that it chose before: the model did not run."),
        (6, 4, None, "The tokens up to step 4 are those of before; the model ran 2 more times (underlined)."),
        (
            8,
            3,
            2,
            "At step 3 another token is chosen now, though with the same logits; from step 4 on",
        ),
        (8, 3, 2, "ran again (underlined), 5 times."),
        (3, 3, 2, "it is the last one, so the model did not run."),
    ],
)
def test_what_was_computed_in_words(n_steps, n_kept, differs_at, said):
    written = write(writer_for("decoder"), OneByOne(GREEDY, n_steps))
    assert said in account_of(replace(written, n_kept=n_kept, differs_at=differs_at))
