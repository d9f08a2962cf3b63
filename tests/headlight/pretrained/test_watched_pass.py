"""A text through the model's own tokenizer, and the numbers of a pass against those that transformers reports."""

import threading

import pytest
import torch
import transformers

from headlight.pretrained.checkpoint import load
from headlight.pretrained.reader import Reader
from headlight.pretrained.tokenized import Words, byte_of_character, readable_bytes, tokenized
from headlight.pretrained.watched_pass import memory_of_run, run, with_mask
from tests.headlight.pretrained.kept_masks import attentions_of, holds
from tests.headlight.pretrained.tiny_checkpoints import FAMILIES, SIZES, T5

TEXT, SECOND = "the cat, the", "un the"


def given_to(checkpoint, words, most=64):
    return tokenized(checkpoint, words, most)


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_and_hidden_states_are_those_that_transformers_reports(checkpoint_of, family):
    _, checkpoint = checkpoint_of(family)
    given = given_to(checkpoint, Words(TEXT, SECOND if checkpoint.part != "decoder" else ""))
    with torch.no_grad():
        reported = checkpoint.model(**given.inputs, output_attentions=True, output_hidden_states=True)
    seen = run(checkpoint, given, keep="all")
    names = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    expected = [weights for name in names for weights in getattr(reported, name, None) or ()]
    assert len(seen.trace) == len(expected)
    order = [*range(len(expected))] if len(expected) == 2 else [0, 1, 2, 4, 3, 5]  # computed layer by layer
    for place, weights in zip(order, expected, strict=True):
        torch.testing.assert_close(seen.trace[place].weights, weights, atol=1e-5, rtol=0)
    states = [
        state
        for name in ("hidden_states", "encoder_hidden_states", "decoder_hidden_states")
        for state in getattr(reported, name, None) or ()
    ]
    values = [stage.value for stage in seen.trace.stages.values() if stage.value is not None]
    for state in states:
        assert any(value.shape == state.shape and (value - state).abs().max() <= 1e-5 for value in values)
    torch.testing.assert_close(
        seen.output, reported[0] if not seen.has_logits else reported.logits, atol=1e-5, rtol=0
    )


def test_the_memory_of_a_pass_is_known_before(checkpoint_of):
    _, checkpoint = checkpoint_of("llama")
    given = given_to(checkpoint, Words(TEXT))
    for keep in ("weights", "all"):
        kept = run(checkpoint, given, keep=keep).trace.nbytes
        assert kept * 0.8 <= memory_of_run(checkpoint, given, keep) <= kept * 1.6


@pytest.mark.parametrize("family", ["t5", "bart"])
@pytest.mark.parametrize("where", ["encoder", "decoder", "cross"])
def test_each_kind_of_attention_of_an_encoder_decoder_takes_a_mask_of_its_own(checkpoint_of, family, where):
    _, checkpoint = checkpoint_of(family)
    given = given_to(checkpoint, Words("the cat", "sat on"))
    own = run(checkpoint, given)
    n_queries, n_keys = attentions_of(own.trace, where)[0].shape[2:]
    allowed = (torch.arange(n_keys) + torch.arange(n_queries)[:, None]) % 2 == 0
    seen = run(checkpoint, with_mask(checkpoint, given, allowed[None], where))
    assert seen.trace.paths == own.trace.paths
    for kind in ("encoder", "decoder", "cross"):
        for before, after in zip(attentions_of(own.trace, kind), attentions_of(seen.trace, kind), strict=True):
            if kind == where:
                assert holds([after], allowed[None])
                assert not holds([before], allowed[None])
            else:
                assert torch.equal(cells_of(before), cells_of(after))


def cells_of(attention):
    everything = torch.ones(attention.shape[2:], dtype=torch.bool)
    return everything if attention.allowed is None else everything & attention.allowed[0, 0]


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_another_mask_is_really_applied_in_every_head(checkpoint_of, family):
    _, checkpoint = checkpoint_of(family)
    given = given_to(checkpoint, Words("the cat sat."))
    n_tokens = len(given.pieces)
    window = torch.ones(1, n_tokens, n_tokens, dtype=torch.bool).tril().triu(-1)
    of_heads = window.repeat(4, 1, 1)
    of_heads[2] = torch.eye(n_tokens, dtype=torch.bool)
    for allowed in (window, of_heads):
        seen = run(checkpoint, with_mask(checkpoint, given, allowed))
        assert holds(seen.trace, allowed)
        torch.testing.assert_close(seen.trace[1].weights.sum(-1), torch.ones(1, 4, n_tokens))
    assert not holds(run(checkpoint, given).trace, window)
    own = run(checkpoint, given).trace[0].allowed
    if own is not None:  # the model's own mask, given in this way, changes nothing
        again = run(checkpoint, with_mask(checkpoint, given, own.expand(1, 1, n_tokens, n_tokens)[0]))
        torch.testing.assert_close(again.output, run(checkpoint, given).output, atol=1e-5, rtol=0)


def test_two_sessions_in_one_model_do_not_disturb_each_other(checkpoint_of):
    _, checkpoint = checkpoint_of("gpt2")
    texts = ("the the", "cat and the")
    alone = [run(checkpoint, given_to(checkpoint, Words(text))) for text in texts]
    found = {}

    def session(place):
        found[place] = [run(checkpoint, given_to(checkpoint, Words(texts[place]))) for _ in range(4)]

    threads = [threading.Thread(target=session, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, expected in enumerate(alone):
        for seen in found[place]:
            assert len(seen.trace) == 2
            assert torch.equal(seen.trace[1].weights, expected.trace[1].weights)


def test_pieces_are_readable_and_know_their_place_in_the_text(checkpoint_of):
    text = "the Ġ café\n🎉"
    pieces = given_to(checkpoint_of("gpt2")[1], Words(text)).pieces
    assert [piece.text for piece in pieces[:2]] == ["the", " "]
    assert pieces[-1].text == "<89>"
    whole = bytes(byte_of_character()[character] for piece in pieces for character in piece.raw)
    assert whole.decode() == text
    assert {text[piece.start : piece.end] for piece in pieces} >= {"the", " ", "é", "\n", "🎉"}


def test_bytes_that_are_no_whole_character_are_shown_as_bytes():
    written = {byte: character for character, byte in byte_of_character().items()}
    raw = "".join(written[byte] for byte in "é ✓".encode()[:-1])
    assert readable_bytes(raw) == "é <E2 9C>"
    assert readable_bytes("<|日|>") == "<|日|>"


@pytest.mark.parametrize(
    ("tokenizer", "model", "pieces"),
    [
        ("ByT5Tokenizer", "T5EncoderModel", ["n", "<C3>", "<A9>", "</s>"]),
        ("CanineTokenizer", "CanineModel", ["\ue000", "n", "é", "\ue001"]),
    ],
)
def test_without_a_vocabulary_tokens_are_bytes_or_characters(tokenizer, model, pieces, tmp_path):
    tokenizer, kind = getattr(transformers, tokenizer)(), getattr(transformers, model)
    sizes = {"T5EncoderModel": {**T5, "vocab_size": len(tokenizer)}, "CanineModel": SIZES}[model]
    kind(kind.config_class(**sizes)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    given = given_to(load("characters", tmp_path), Words("né"))
    assert [piece.text for piece in given.pieces] == pieces


def test_a_decoder_is_one_without_its_output_layer_too(checkpoint_of, tmp_path):
    _, whole = checkpoint_of("gpt2")
    whole.model.base_model.save_pretrained(tmp_path)
    whole.tokenizer.save_pretrained(tmp_path)
    checkpoint = load("headless", tmp_path)
    assert (type(checkpoint.model).__name__, checkpoint.part) == ("GPT2Model", "decoder")
    with pytest.raises(ValueError, match="no layer that gives a probability to a next token"):
        Reader(checkpoint, given_to(checkpoint, Words("the cat")))


def test_a_pair_and_a_target_have_their_parts_and_special_tokens(checkpoint_of):
    pair = given_to(checkpoint_of("bert")[1], Words("the cat sat", "unable."))
    assert [(piece.text, piece.part, piece.special) for piece in pair.pieces] == [
        ("[CLS]", 0, True), ("the", 0, False), ("cat", 0, False), ("sat", 0, False), ("[SEP]", 0, True),
        ("un", 1, False), ("##able", 1, False), (".", 1, False), ("[SEP]", 1, True),
    ]  # fmt: skip
    assert pair.inputs["token_type_ids"].tolist() == [[0] * 5 + [1] * 4]
    both = given_to(checkpoint_of("bart")[1], Words("the cat", "the"))
    assert [piece.text for piece in both.target] == ["</s>", "the"]
    assert both.inputs["decoder_input_ids"].tolist() == [[2, both.target[1].id]]
    alone = given_to(checkpoint_of("bart")[1], Words("the cat"))
    assert [piece.special for piece in alone.target] == [True]


def test_a_chat_template_is_laid_around_the_text(checkpoint_of):
    _, checkpoint = checkpoint_of("qwen3")
    assert given_to(checkpoint, Words("the", chat=True)).text == "the"
    checkpoint.tokenizer.chat_template = "{{ messages[0].role }}: {{ messages[0].content }}</s>"
    try:
        said = given_to(checkpoint, Words("the", chat=True))
        assert said.text == "user: the</s>"
        assert [piece.text for piece in said.pieces][-3:] == [" ", "the", "</s>"] or said.pieces[-1].special
        assert given_to(checkpoint, Words("the")).text == "the"
        checkpoint.tokenizer.chat_template = "{{ raise_exception('no') }}"
        with pytest.raises(ValueError, match="does not take this: no"):
            given_to(checkpoint, Words("the", chat=True))
    finally:
        checkpoint.tokenizer.chat_template = None


@pytest.mark.parametrize(
    ("text", "most", "sentence"),
    [("", 64, "has no token"), ("a b " * 9, 8, "at most 8 are drawn"), ("a" * 65, 99, "has positions for 64")],
)
def test_a_text_without_tokens_or_with_too_many_is_refused(checkpoint_of, text, most, sentence):
    with pytest.raises(ValueError, match=sentence):
        given_to(checkpoint_of("gpt2")[1], Words(text), most)
