"""The promises of a checkpoint's masks are measured on it, and a leak is named with the first stage."""

from dataclasses import replace

import pytest
import torch

from headlight.influence import influence
from headlight.passes import Subject, run_pass
from headlight.pretrained.dependence import depends, padding_ignored, rows_measured, where_it_begins
from headlight.pretrained.tokenized import Words, tokenized
from headlight.pretrained.watched_pass import plain, run, with_mask
from tests.headlight.pretrained.kept_masks import attentions_of, promised_by

TEXT = Words("the cat sat", "the mat")


def given_and_promised(checkpoint, allowed=None):
    given = tokenized(checkpoint, TEXT, 64)
    promised = promised_by(run(checkpoint, given).trace, given, allowed)
    return given if allowed is None else with_mask(checkpoint, given, allowed), promised


def later(n_tokens):
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "t5", "bart"])
def test_a_decoder_depends_on_no_later_token_and_on_all_others(checkpoint_of, family):
    _, checkpoint = checkpoint_of(family)
    given, promised = given_and_promised(checkpoint)
    found = depends(checkpoint, given)
    assert torch.equal(found.sizes == 0, later(len(promised)))
    assert torch.equal(~promised, later(len(promised)))


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_another_mask_is_kept_layer_upon_layer(checkpoint_of, family):
    _, checkpoint = checkpoint_of(family)
    n_tokens = len(tokenized(checkpoint, TEXT, 64).pieces)
    places = torch.arange(n_tokens)
    given, promised = given_and_promised(checkpoint, allowed=(abs(places - places[:, None]) <= 1)[None])
    found = depends(checkpoint, given)
    assert torch.equal(found.sizes == 0, ~promised)
    assert torch.equal(found.sizes == 0, abs(places - places[:, None]) > 2)  # one key further in each of two layers
    if family == "llama":
        stage = where_it_begins(checkpoint, given, later(n_tokens)[:, 1], 1)
        assert "the attention of model.layers.0.self_attn" in stage


@pytest.mark.parametrize("family", ["bert", "albert", "gpt2", "llama", "bloom", "t5", "bart"])
def test_what_a_layer_depends_on_is_measured_and_grows_by_a_key_in_each(checkpoint_of, family):
    _, checkpoint = checkpoint_of(family)
    given = tokenized(checkpoint, TEXT, 64)
    if family == "bloom":  # which takes no other mask
        attentions = run(checkpoint, given).trace
        expected = [later(len(given.pieces))] * len(attentions)
    else:
        where = "encoder" if given.target else "self"
        n_tokens = len(given.pieces)
        places = torch.arange(n_tokens)
        distance = abs(places - places[:, None])
        given = with_mask(checkpoint, given, (distance <= 1)[None], where)
        attentions = attentions_of(run(checkpoint, given).trace, where)
        expected = [distance > layer + 1 for layer in range(len(attentions))]
    assert len(attentions) == 2
    for attention, nothing in zip(attentions, expected, strict=True):
        assert torch.equal(depends(checkpoint, given, after=attention).sizes == 0, nothing)


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_a_layer_of_a_decoder_is_measured_by_its_own_tokens(checkpoint_of, family):
    _, checkpoint = checkpoint_of(family)
    given = tokenized(checkpoint, TEXT, 64)
    for attention in attentions_of(run(checkpoint, given).trace, "decoder"):
        assert torch.equal(depends(checkpoint, given, after=attention).sizes == 0, later(len(given.target)))


def test_an_attention_that_is_in_no_layer_is_not_measured(checkpoint_of):
    _, checkpoint = checkpoint_of("gpt2")
    given = tokenized(checkpoint, TEXT, 64)
    first = run(checkpoint, given).trace[0]
    with pytest.raises(
        ValueError, match=r"^The layer of attn gives no row for each token: it cannot be measured\.$"
    ):
        depends(checkpoint, given, after=replace(first, path="attn", module="attn"))


def test_what_is_nan_depends_on_nothing_that_can_be_measured(checkpoint_of, monkeypatch):
    _, checkpoint = checkpoint_of("llama")
    queries = checkpoint.model.model.layers[1].self_attn.q_proj.weight
    monkeypatch.setattr(queries, "data", torch.full_like(queries, torch.nan))
    with pytest.raises(ValueError, match=r"NaN, and so is what model.layers.1.self_attn.q_proj comes to\."):
        depends(checkpoint, tokenized(checkpoint, TEXT, 64))


def test_what_passes_in_spite_of_the_mask_is_named(checkpoint_of):
    _, checkpoint = checkpoint_of("llama")
    given, promised = given_and_promised(checkpoint)
    others = torch.ones(len(promised), dtype=torch.bool)
    others[0] = False
    assert where_it_begins(checkpoint, given, others, 0) == (
        "The first stage that does is the attention of model.layers.0.self_attn, whose mask is: causal"
    )


def test_the_size_of_an_influence_is_the_jacobian_in_one_direction(checkpoint_of):
    _, checkpoint = checkpoint_of("gpt2")
    given = tokenized(checkpoint, TEXT, 64)
    subject = Subject(checkpoint.model, (), {**given.inputs, **plain(checkpoint)}, "input_ids", 1, None)
    found = run_pass(subject, subject.tokens, differentiable=True)
    (sizes,) = influence(found.output_stage(subject), [2], found, subject)
    direction = torch.randn(found.output.shape, generator=torch.Generator().manual_seed(1))[0, 2]
    table, step = checkpoint.model.get_input_embeddings().weight, 1e-2
    embedded = table[given.inputs["input_ids"]]
    pulled = torch.zeros_like(embedded[0, 1])
    with torch.no_grad():
        for number in range(len(pulled)):
            both = []
            for sign in (1, -1):
                moved = embedded.clone()
                moved[0, 1, number] += sign * step
                both.append(checkpoint.model(inputs_embeds=moved, use_cache=False).logits[0, 2] @ direction)
            pulled[number] = (both[0] - both[1]) / (2 * step)
    assert sizes[1] == pytest.approx(float(pulled.norm()), rel=0.02)


def test_of_many_tokens_some_rows_are_measured_with_the_first_and_the_last():
    assert rows_measured(128) == tuple(range(128))
    sampled = rows_measured(300)
    assert len(set(sampled)) == 64
    assert (sampled[0], sampled[-1]) == (0, 299)


@pytest.mark.parametrize(("family", "side", "holds"), [
    ("llama", "left", True), ("llama", "right", True), ("bert", "right", True), ("gpt2", "right", True),
    ("gpt2", "left", False),
])  # fmt: skip
def test_whether_padding_changes_anything_is_measured_on_the_side_of_the_tokenizer(
    checkpoint_of, family, side, holds
):
    _, checkpoint = checkpoint_of(family)
    checkpoint.tokenizer.padding_side, before = side, checkpoint.tokenizer.padding_side
    try:
        given = tokenized(checkpoint, Words("the cat sat\nthe", batch=True), 64)
    finally:
        checkpoint.tokenizer.padding_side = before
    is_padding = [[piece.padding for piece in line] for line in given.lines]
    assert is_padding == (given.inputs["attention_mask"] == 0).tolist()
    assert is_padding[1][0 if side == "left" else -1]
    passes, sentence = padding_ignored(checkpoint, given)
    assert passes is holds
    if not holds:
        assert "is another one without the" in sentence
        assert "positions count the padding" in sentence
    seen = run(checkpoint, given).trace
    assert seen.texts.encoder[1] == tuple(piece.text for piece in given.lines[1])
    real = given.inputs["attention_mask"].bool()
    for attention in seen:
        for weights, is_real in zip(attention.weights, real, strict=True):
            assert (weights[:, is_real][..., ~is_real] == 0).all()
