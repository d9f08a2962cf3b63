"""A checkpoint that reads on against passes of transformers over all of it, with and without the cache."""

from __future__ import annotations

import pytest
import torch

from headlight.pretrained.reader import Reader, end_of
from headlight.pretrained.tokenized import Words, tokenized
from model.masks import causal
from tests.headlight.pretrained.tiny_checkpoints import FAMILIES

TEXT, SECOND = "the cat, the", "un the"


def begun(checkpoint):
    """The input, and the tokens that are continued."""
    given = tokenized(checkpoint, Words(TEXT, SECOND if checkpoint.part == "encoder-decoder" else ""), 64)
    return given, [piece.id for piece in given.target or given.pieces]


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "bert"])
def test_it_reads_what_a_pass_over_all_of_it_computes(checkpoint_of, family, cached):
    _, checkpoint = checkpoint_of(family)
    given, tokens = begun(checkpoint)
    reader = Reader(checkpoint, given, cached=cached)
    name, read = ("decoder_input_ids", "cross_attentions") if given.target else ("input_ids", "attentions")
    inputs = dict(given.inputs) if given.target else {"input_ids": given.inputs["input_ids"]}
    for n_new in (len(tokens), 1, 1):
        reading = reader(tokens)
        inputs[name] = torch.tensor([tokens])
        with torch.no_grad():
            output = checkpoint.model(**inputs, output_attentions=True)
        torch.testing.assert_close(reading.logits, output.logits[0, -1], atol=1e-4, rtol=0)
        attentions = [each for each in reading.trace if each.is_cross == bool(given.target)]
        for attention, weights in zip(attentions, getattr(output, read), strict=True):
            torch.testing.assert_close(attention.weights[0, :, -1], weights[0, :, -1], atol=1e-5, rtol=0)
        assert reading.n_new == (n_new if cached else len(tokens))
        tokens = [*tokens, int(reading.logits.argmax())]


@pytest.mark.parametrize("cached", [False, True])
def test_other_tokens_than_those_read_are_read_anew(checkpoint_of, cached):
    _, checkpoint = checkpoint_of("llama")
    given, tokens = begun(checkpoint)
    reader = Reader(checkpoint, given, cached=cached)
    reader([*tokens, 7])
    for other in ([*tokens, 8], tokens):
        again = reader(other)
        assert again.n_new == len(other)
        expected = Reader(checkpoint, given)(other).logits
        torch.testing.assert_close(again.logits, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "t5"])
def test_another_mask_is_kept_to_as_the_text_grows(checkpoint_of, family, cached):
    _, checkpoint = checkpoint_of(family)
    given, tokens = begun(checkpoint)
    window = causal(32, 32) & ~causal(32, 32).tril(-2)
    reader = Reader(checkpoint, given, cached=cached, allowed=window)
    for _ in range(2):
        reading = reader(tokens)
        rows = window[len(tokens) - reading.n_new : len(tokens), : len(tokens)]
        for attention in reading.trace:
            if not attention.is_cross and "encoder" not in attention.module.split("."):
                assert not (attention.weights[0] * ~rows).any()
        tokens = [*tokens, int(reading.logits.argmax())]


def test_an_encoder_writes_nothing(checkpoint_of):
    _, checkpoint = checkpoint_of("bert")
    with pytest.raises(ValueError, match="no layer that gives a probability to a next token"):
        Reader(checkpoint, begun(checkpoint)[0])


def test_the_end_token_is_the_tokenizers(checkpoint_of):
    _, checkpoint = checkpoint_of("llama")
    assert end_of(checkpoint) == checkpoint.tokenizer.eos_token_id


def test_a_cache_that_forgets_takes_no_other_mask(checkpoint_of):
    _, checkpoint = checkpoint_of("mistral")
    given, tokens = begun(checkpoint)
    reader = Reader(checkpoint, given, cached=True, allowed=causal(32, 32))
    tokens = [*tokens, int(reader(tokens).logits.argmax())]
    with pytest.raises(ValueError, match="takes no other mask beside its cache"):
        reader(tokens)


def test_a_mask_that_the_code_passes_over_beside_its_cache_is_refused(checkpoint_of):
    _, checkpoint = checkpoint_of("led")
    given, tokens = begun(checkpoint)
    window = causal(32, 32) & ~causal(32, 32).tril(-2)
    reader = Reader(checkpoint, given, cached=True, allowed=window)
    tokens = [*tokens, int(reader(tokens).logits.argmax())]
    with pytest.raises(ValueError, match="takes no other mask beside its cache"):
        reader(tokens)


@pytest.mark.parametrize("family", ["xlnet", "cpmant"])
def test_a_model_that_keeps_no_cache_is_refused_in_one_sentence(checkpoint_of, family):
    _, checkpoint = checkpoint_of(family)
    given, tokens = begun(checkpoint)
    reader = Reader(checkpoint, given, cached=True)
    texts = (tokens, [*tokens, 7])
    with pytest.raises(ValueError, match="keeps no key/value cache to read on with"):
        list(map(reader, texts))
