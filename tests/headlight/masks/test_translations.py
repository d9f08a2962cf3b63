"""Every snippet is run, and the library that it is for gives the attention weights of the model under the mask."""

from __future__ import annotations

import socket
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import flex_attention

from headlight.masks.language import READY, MaskContext, parse
from headlight.masks.translations import TRANSLATIONS, MaskToTranslate
from model import EncoderLayer, TransformerConfig, record, scaled_dot_product_attention
from tests.model.builders import VOCAB_SIZE, random_mask, random_tensor, randomized, small_transformer
from tests.model.pytorch_layers import pytorch_decoder_layer, pytorch_encoder_layer

T, N_HEADS, HEAD_DIM = 7, 4, 4
D_MODEL = N_HEADS * HEAD_DIM
NO_PADDING = (False,) * T
PADDING_RIGHT = (*NO_PADDING[2:], True, True)
PADDING_LEFT = PADDING_RIGHT[::-1]
ATTENTIONS = ("multihead_attention", "multihead_attention_float", "multihead_attention_padding")
OVER_ONE_SEQUENCE = ("transformer_encoder", "transformer_decoder", "hugging_face_2d")

EXPRESSIONS = {
    "everything": ("True", NO_PADDING),
    "nothing": ("False", NO_PADDING),
    "causal": ("k <= q", NO_PADDING),
    "padding right": ("not is_pad(k)", PADDING_RIGHT),
    "padding left": ("not is_pad(k)", PADDING_LEFT),
    "all padding": ("not is_pad(k)", (True,) * T),
    "causal and padding right": ("k <= q and not is_pad(k)", PADDING_RIGHT),
    "causal and padding left": ("k <= q and not is_pad(k)", PADDING_LEFT),
    "padding that is seen": ("k <= q", PADDING_RIGHT),
    "window": ("abs(q - k) < 3", NO_PADDING),
    "window and padding": ("abs(q - k) < 3 and not is_pad(k) and not is_pad(q)", PADDING_RIGHT),
    "prefix": ("k < 3 or k <= q", NO_PADDING),
    "strictly before": ("k < q", NO_PADDING),
    "documents": ("segment(q) == segment(k)", NO_PADDING),
    "causal documents and padding": ("k <= q and segment(q) == segment(k) and not is_pad(k)", PADDING_RIGHT),
    "same token": ("same_token or token(k) == 2", NO_PADDING),
    "bottom-right": ("k <= q + n_keys - n_queries", NO_PADDING),
    "division": ("k != 3 and q // (k - 3) < 0 or k % (q + 1) == 0", NO_PADDING),
    "of the query alone": ("q > 2", NO_PADDING),
    "long": ("k <= q and not is_pad(k) and not same_token or q == k", (False,) * 55 + (True,) * 5),
}


def context_of(n_queries: int, is_padding: tuple[bool, ...]) -> MaskContext:
    """Queries and keys with a few token ids and documents."""
    tokens = tuple(i * i % 5 for i in range(max(n_queries, len(is_padding))))
    documents = tuple(i // 3 for i in range(len(tokens)))
    n_keys = len(is_padding)
    query_is_padding = is_padding if n_queries == n_keys else (False,) * n_queries
    return MaskContext(
        tokens[:n_queries], tokens[:n_keys], query_is_padding, is_padding, documents[:n_queries], documents[:n_keys]
    )


def by_condition(text: str, is_padding: tuple[bool, ...], n_queries: int | None = None) -> MaskToTranslate:
    """A mask with the condition that it is made by."""
    context = context_of(n_queries or len(is_padding), is_padding)
    expression = parse(text)
    return MaskToTranslate(
        allowed=expression.evaluate(context)[None],
        query_is_padding=torch.tensor(context.query_is_padding),
        key_is_padding=torch.tensor(is_padding),
        n_heads=N_HEADS,
        condition=expression.torch_code(),
        facts=context,
    )


def by_cells(allowed: Tensor, is_padding: tuple[bool, ...] = NO_PADDING) -> MaskToTranslate:
    """A mask that no condition is known for; (Tq, Tk) or (H, Tq, Tk)."""
    heads = allowed if allowed.dim() == 3 else allowed[None]
    query_is_padding = torch.tensor(is_padding)[: heads.shape[1]]
    return MaskToTranslate(heads, query_is_padding, torch.tensor(is_padding), N_HEADS)


def heads_that_differ() -> Tensor:
    """A causal mask in all heads but one, which has a painted one with a query that sees nothing."""
    allowed = torch.ones(N_HEADS, T, T, dtype=torch.bool).tril()
    allowed[1] = random_mask(T, T, seed=3)
    allowed[1, 2] = False
    return allowed


SQUARE = {name: by_condition(*expression) for name, expression in EXPRESSIONS.items()}
SQUARE |= {
    f"{name}, cells": by_cells(SQUARE[name].allowed, is_padding) for name, (_, is_padding) in EXPRESSIONS.items()
}
SQUARE |= {
    "painted": by_cells(random_mask(T, T, seed=1)),
    "painted, no key left": by_cells(random_mask(T, T, seed=1).index_fill(0, torch.tensor(4), False)),
    "painted, padding": by_cells(random_mask(T, T, seed=1) & ~torch.tensor(PADDING_RIGHT), PADDING_RIGHT),
    "heads that differ": by_cells(heads_that_differ()),
    "heads that differ, padding": by_cells(heads_that_differ() & ~torch.tensor(PADDING_RIGHT), PADDING_RIGHT),
    "heads alike": by_cells(torch.ones(N_HEADS, T, T, dtype=torch.bool).tril()),
    "one token": by_cells(torch.ones(1, 1, dtype=torch.bool), (False,)),
}
CROSS = {
    f"{name}, {n_queries} queries": by_condition(*EXPRESSIONS[name], n_queries=n_queries)
    for name in ("causal", "padding right", "bottom-right", "documents", "causal documents and padding", "nothing")
    for n_queries in (T - 3, T + 2)
}
CROSS |= {"painted, 5 queries": by_cells(random_mask(5, T))}
CROSS |= {"heads that differ, 5 queries": by_cells(heads_that_differ()[:, :5])}

every_mask = pytest.mark.parametrize("given", (SQUARE | CROSS).values(), ids=(SQUARE | CROSS).keys())
every_square_mask = pytest.mark.parametrize("given", SQUARE.values(), ids=SQUARE.keys())


def run(name: str, given: MaskToTranslate, **arguments: object) -> dict[str, Any]:
    """Run a snippet as it was written, and then the call that its last line shows."""
    code = TRANSLATIONS[name].write(given)
    names: dict[str, Any] = {}
    exec(code, names)
    names |= arguments
    exec(code.splitlines()[-1].removeprefix("# "), names)
    return names


def queries_and_keys(given: MaskToTranslate) -> tuple[Tensor, Tensor]:
    """Random q (B, H, Tq, Dh) and k (B, H, Tk, Dh)."""
    q = random_tensor(2, N_HEADS, given.n_queries, HEAD_DIM, seed=1)
    return q, random_tensor(2, N_HEADS, given.n_keys, HEAD_DIM, seed=2)


def weights_of(given: MaskToTranslate, q: Tensor, k: Tensor) -> Tensor:
    """Our weights, (B, H, Tq, Tk)."""
    return scaled_dot_product_attention(q, k, k, given.allowed[None])[1]


def keyless(given: MaskToTranslate) -> Tensor:
    """Mark the queries of each head that have no key left, (1, H or 1, Tq, 1)."""
    return ~given.allowed.any(-1)[None, :, :, None]


def assert_same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6, equal_nan=True)


@pytest.fixture(scope="module")
def attentions():
    """Our attention, and ``nn.MultiheadAttention`` with its weights."""
    config = TransformerConfig(vocab_size=VOCAB_SIZE, d_model=D_MODEL, n_heads=N_HEADS, d_ff=8, n_layers=1)
    layer = randomized(EncoderLayer(config))
    return layer.self_attention, pytorch_encoder_layer(layer, config).self_attn


@pytest.mark.parametrize("name", ATTENTIONS)
@every_mask
def test_multihead_attention_gives_our_weights_and_nan_without_keys(attentions, name, given):
    ours, theirs = attentions
    query = random_tensor(1, given.n_queries, D_MODEL, seed=1)
    key = random_tensor(1, given.n_keys, D_MODEL, seed=2)
    with record(ours) as trace:
        output = ours(query, key, key, given.allowed[None])
    per_head = partial(theirs, average_attn_weights=False)
    found = run(name, given, attention=per_head, query=query, key=key, value=key)
    assert_same(found["weights"], trace["weights"].value.masked_fill(keyless(given), torch.nan))
    assert_same(found["output"], output.masked_fill(keyless(given).any(1), torch.nan))


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize(("training", "gradients"), [(True, True), (True, False), (False, True), (False, False)])
def test_multihead_attention_without_weights_does_what_the_comment_says(attentions, name, training, gradients):
    """Zeros for a query without a key, and NaN from a boolean mask in eval mode without gradients."""
    ours, theirs = attentions
    given = SQUARE["painted, no key left"]
    x = random_tensor(1, T, D_MODEL)
    found = run(name, given, attention=theirs, query=x, key=x, value=x)
    masks = {kind: found[kind] for kind in ("attn_mask", "key_padding_mask") if kind in found}
    with torch.set_grad_enabled(gradients):
        theirs.train(training)
        output, _ = theirs(x, x, x, **masks, need_weights=False)
        theirs.eval()
    expected = ours(x, x, x, given.allowed[None])
    assert ("fast path" in TRANSLATIONS[name].write(given)) == (name != "multihead_attention_float")
    if "fast path" in TRANSLATIONS[name].write(given) and not training and not gradients:
        expected = expected.masked_fill(keyless(given)[0], torch.nan)
    assert_same(output, expected)


@pytest.mark.parametrize("name", ["multihead_attention", "multihead_attention_float"])
def test_multihead_attention_takes_the_heads_of_a_batch_as_the_comment_says(attentions, name):
    ours, theirs = attentions
    given = by_cells(heads_that_differ())
    x = random_tensor(2, T, D_MODEL)
    code = TRANSLATIONS[name].write(given)
    comment = next(line for line in code.splitlines() if ".repeat(" in line)
    names = {"B": 2}
    exec(code, names)
    repeated = eval(comment.split(": ")[1].removesuffix(" for B"), names)
    output, _ = theirs(x, x, x, attn_mask=repeated)
    assert_same(output, ours(x, x, x, given.allowed[None]).masked_fill(keyless(given).any(1), torch.nan))


@every_mask
def test_scaled_dot_product_attention_gives_our_weights(given):
    q, k = queries_and_keys(given)
    values = torch.eye(given.n_keys).expand(2, N_HEADS, -1, -1)
    found = run("scaled_dot_product_attention", given, query=q, key=k, value=values)
    assert_same(found["output"], weights_of(given, q, k))


@pytest.fixture
def uncompiled(monkeypatch):
    """FlexAttention as plain functions, without tracing and without the advice to compile it."""
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)


@every_mask
def test_flex_attention_gives_our_weights(uncompiled, given):
    q, k = queries_and_keys(given)
    values = torch.eye(given.n_keys).expand(2, N_HEADS, -1, -1)
    found = run("flex_attention", given, query=q, key=k, value=values)
    assert_same(found["output"], weights_of(given, q, k))


@every_mask
def test_flex_attention_knows_which_blocks_are_needed(given):
    names: dict[str, Any] = {}
    exec(TRANSLATIONS["flex_attention"].write(given), names)
    is_needed = given.allowed.any(-1).any(-1)[: N_HEADS if given.is_per_head else 1]
    assert torch.equal(names["block_mask"].to_dense()[0, :, 0, 0].bool(), is_needed)


@pytest.mark.parametrize("ready", READY, ids=lambda ready: ready.name)
def test_every_ready_expression_builds_its_cells(ready):
    given = by_condition(ready.text, (False,) * 20 + (True,) * 4)
    built = [{} for _ in range(3)]
    for name, names in zip(("scaled_dot_product_attention", "numpy", "flex_attention"), built, strict=True):
        exec(TRANSLATIONS[name].write(given), names)
    of_torch, of_numpy, of_flex = built
    assert torch.equal(of_torch["attn_mask"], given.allowed[0])
    np.testing.assert_array_equal(of_numpy["allowed"], given.allowed[0])
    cells = flex_attention.create_mask(of_flex["mask_mod"], 1, 1, 24, 24, device="cpu")
    assert torch.equal(cells[0], given.allowed)


def stack_masks(name: str, given: MaskToTranslate) -> dict[str, Any]:
    """The masks that a snippet for an encoder or decoder builds."""
    names: dict[str, Any] = {}
    exec(TRANSLATIONS[name].write(given), names)
    kinds = ("mask", "src_key_padding_mask", "tgt_mask", "tgt_key_padding_mask")
    return {kind: names[kind] for kind in kinds if kind in names}


def our_encoder():
    model = small_transformer("encoder", d_model=D_MODEL, n_heads=N_HEADS, max_len=64)
    theirs = nn.TransformerEncoder(pytorch_encoder_layer(model.encoder.layers[0], model.config), 2)
    theirs.layers = nn.ModuleList(pytorch_encoder_layer(layer, model.config) for layer in model.encoder.layers)
    return model, theirs.eval()


def our_decoder():
    model = small_transformer("encoder-decoder", d_model=D_MODEL, n_heads=N_HEADS, max_len=64)
    theirs = nn.TransformerDecoder(pytorch_decoder_layer(model.decoder.layers[0], model.config), 2)
    theirs.layers = nn.ModuleList(pytorch_decoder_layer(layer, model.config) for layer in model.decoder.layers)
    return model, theirs.eval()


def ids_of(n_tokens: int) -> Tensor:
    return torch.arange(n_tokens)[None] % VOCAB_SIZE


@every_square_mask
def test_transformer_encoder_gives_our_output(given):
    ours, theirs = our_encoder()
    with record(ours) as trace:
        ours(ids_of(given.n_keys), source_mask=given.allowed[None])
    source = trace["encoder.inputs.embedded"].value
    found = run("transformer_encoder", given, encoder=theirs, source=source)
    assert_same(found["output"], trace["encoder.layers.1.norm2"].value)


@every_square_mask
def test_transformer_decoder_gives_our_output(given):
    ours, theirs = our_decoder()
    with record(ours) as trace:
        ours(ids_of(5), ids_of(given.n_keys), target_mask=given.allowed[None])
    embedded, memory = trace["decoder.inputs.embedded"].value, trace["encoder.layers.1.norm2"].value
    found = run("transformer_decoder", given, decoder=theirs, target=embedded, memory=memory)
    assert_same(found["output"], trace["decoder.layers.1.norm3"].value)


@pytest.mark.parametrize("given", CROSS.values(), ids=CROSS)
def test_a_decoder_gives_our_output_with_a_mask_of_the_cross_attention(given):
    given = replace(given, crosses=True)
    ours, theirs = our_decoder()
    with record(ours) as trace:
        ours(ids_of(given.n_keys), ids_of(given.n_queries), memory_mask=given.allowed[None])
    embedded, memory = trace["decoder.inputs.embedded"].value, trace["encoder.layers.1.norm2"].value
    if bool(given.allowed.any(-1).all()):
        found = run("transformer_decoder", given, decoder=theirs, target=embedded, memory=memory)
        assert_same(found["output"], trace["decoder.layers.1.norm3"].value)
    with pytest.raises(ValueError, match="over one sequence: this is the mask of a cross-attention"):
        TRANSLATIONS["transformer_encoder"].write(given)
    for name in ("hugging_face_2d", "hugging_face_4d"):
        code = TRANSLATIONS[name].write(given)
        if "No 2-D" in code:
            assert bool((given.allowed != given.allowed[:, :1]).any())
            continue
        names: dict[str, Tensor] = {}
        exec(code, names)
        mask = names["encoder_attention_mask"]
        says = mask == 0 if mask.dim() == 4 else mask[:, None, None] == 1
        assert torch.equal(says.expand(1, *given.allowed.shape)[0], given.allowed)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_an_encoder_without_gradients_gives_zeros_at_padding_on_the_right_as_the_comment_says():
    given = SQUARE["padding right"]
    _, encoder = our_encoder()
    source, masks = random_tensor(1, T, D_MODEL), stack_masks("transformer_encoder", given)
    assert set(masks) == {"src_key_padding_mask"}
    with_gradients = encoder(source, **masks)
    with torch.no_grad():
        without = encoder(source, **masks)
        assert_same(without, with_gradients.masked_fill(given.key_is_padding[:, None], 0.0))
        encoder.use_nested_tensor = False  # what enable_nested_tensor=False sets
        assert_same(encoder(source, **masks), with_gradients)
    plain = nn.TransformerEncoder(encoder.layers[0], 1, enable_nested_tensor=False)
    assert plain.use_nested_tensor is False
    assert "enable_nested_tensor=False" in TRANSLATIONS["transformer_encoder"].write(given)


def test_an_encoder_without_gradients_takes_a_mask_that_hides_all_keys():
    """As src_key_padding_mask it would be an error of the nested tensors."""
    _, encoder = our_encoder()
    with torch.no_grad():
        masks = stack_masks("transformer_encoder", SQUARE["all padding"])
        assert encoder(random_tensor(1, T, D_MODEL), **masks).isnan().all()


@pytest.mark.parametrize("name", ["transformer_encoder", "transformer_decoder"])
def test_a_stack_without_gradients_gives_nan_everywhere_for_one_query_without_a_key_as_the_comment_says(name):
    given = SQUARE["painted, no key left"]
    _, stack = our_encoder() if name == "transformer_encoder" else our_decoder()
    x, masks = random_tensor(1, T, D_MODEL), stack_masks(name, given)
    inputs = (x,) if name == "transformer_encoder" else (x, x)
    assert stack(*inputs, **masks).isfinite().all()
    with torch.no_grad():
        assert stack(*inputs, **masks).isnan().all()


@every_mask
def test_numpy_gives_our_weights_and_nan_without_keys(given):
    q, k = queries_and_keys(given)
    with np.errstate(invalid="ignore"):
        found = run("numpy", given, query=q.numpy(), key=k.numpy())
    assert_same(
        torch.from_numpy(found["weights"]).float(), weights_of(given, q, k).masked_fill(keyless(given), torch.nan)
    )
    np.testing.assert_allclose(np.nan_to_num(found["weights"]), weights_of(given, q, k), atol=1e-6, rtol=0)


@pytest.fixture(scope="module")
def offline():
    """Any attempt to reach another machine fails."""

    def refuse(*_):
        raise OSError("the tests reach no network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        yield


SIZES = {"vocab_size": VOCAB_SIZE, "attn_implementation": "eager", "bos_token_id": None, "eos_token_id": None}


@pytest.fixture(scope="module")
def bert(offline):
    """A small random model that looks both ways."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        **SIZES, hidden_size=D_MODEL, num_hidden_layers=2, num_attention_heads=N_HEADS, intermediate_size=8
    )
    return randomized(BertModel(config))


@pytest.fixture(scope="module")
def gpt2(offline):
    """A small random model that is causal itself."""
    from transformers import GPT2Config, GPT2Model

    return randomized(GPT2Model(GPT2Config(**SIZES, n_embd=D_MODEL, n_layer=2, n_head=N_HEADS, n_positions=64)))


@pytest.fixture(scope="module")
def llama(offline):
    """Another one, whose queries and keys are rotated."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        **SIZES, hidden_size=D_MODEL, num_hidden_layers=2, num_attention_heads=N_HEADS, intermediate_size=8
    )
    return randomized(LlamaModel(config))


def split_heads(projected: Tensor) -> Tensor:
    return projected.unflatten(-1, (N_HEADS, -1)).transpose(1, 2)


def bert_queries_and_keys(model, layer: int, hidden: Tensor) -> tuple[Tensor, Tensor]:
    attention = model.encoder.layer[layer].attention.self
    return split_heads(attention.query(hidden)), split_heads(attention.key(hidden))


def gpt2_queries_and_keys(model, layer: int, hidden: Tensor) -> tuple[Tensor, Tensor]:
    block = model.h[layer]
    query, key, _ = block.attn.c_attn(block.ln_1(hidden)).chunk(3, dim=-1)
    return split_heads(query), split_heads(key)


def assert_it_gives_our_weights(model, queries_and_keys_of, given, name):
    """In both layers; a query without a key has even weights."""

    def with_weights(input_ids, attention_mask):
        return model(input_ids, attention_mask=attention_mask, output_attentions=True, output_hidden_states=True)

    output = run(name, given, model=with_weights, input_ids=ids_of(given.n_keys))["output"]
    for layer, (hidden, weights) in enumerate(zip(output.hidden_states, output.attentions, strict=False)):
        expected = weights_of(given, *queries_and_keys_of(model, layer, hidden))
        assert_same(weights, expected.where(~keyless(given), 1 / given.n_keys))
    assert len(output.attentions) == 2


@every_square_mask
def test_hugging_face_with_four_axes_gives_our_weights(bert, given):
    assert_it_gives_our_weights(bert, bert_queries_and_keys, given, "hugging_face_4d")


@every_square_mask
def test_hugging_face_with_four_axes_adds_no_causal_mask(gpt2, given):
    assert_it_gives_our_weights(gpt2, gpt2_queries_and_keys, given, "hugging_face_4d")


LOOKS_BOTH_WAYS = ("everything", "nothing", "padding right", "padding left", "all padding")
CAUSAL = ("causal", "causal and padding right", "causal and padding left", "padding that is seen", "bottom-right")


@pytest.mark.parametrize("name", [*LOOKS_BOTH_WAYS, *(f"{name}, cells" for name in LOOKS_BOTH_WAYS)])
def test_hugging_face_with_two_axes_gives_our_weights_where_the_mask_is_padding(bert, name):
    assert "BERT" in TRANSLATIONS["hugging_face_2d"].write(SQUARE[name])
    assert_it_gives_our_weights(bert, bert_queries_and_keys, SQUARE[name], "hugging_face_2d")


@pytest.mark.parametrize("name", [*CAUSAL, *(f"{name}, cells" for name in CAUSAL), "heads alike"])
def test_hugging_face_with_two_axes_gives_our_weights_where_the_rest_is_causal(gpt2, name):
    assert "GPT-2" in TRANSLATIONS["hugging_face_2d"].write(SQUARE[name])
    assert_it_gives_our_weights(gpt2, gpt2_queries_and_keys, SQUARE[name], "hugging_face_2d")


@pytest.mark.parametrize("name", CAUSAL)
def test_both_masks_of_hugging_face_do_the_same_in_llama(llama, name):
    ids = ids_of(T)

    def weights(translation):
        return run(
            translation,
            SQUARE[name],
            input_ids=ids,
            model=lambda ids, attention_mask: llama(ids, attention_mask=attention_mask, output_attentions=True),
        )["output"].attentions

    for two_axes, four_axes in zip(weights("hugging_face_2d"), weights("hugging_face_4d"), strict=True):
        assert_same(two_axes, four_axes)


def unfolded(code: str) -> str:
    """Comments of several lines as one line."""
    return code.replace("\n# ", " ")


def is_padding_at_most(given: MaskToTranslate) -> bool:
    """True if one number per key says the mask, with or without a causal mask: by trying what is seen at all."""
    seen = given.allowed.any(1).any(0)
    causal = torch.ones(given.n_queries, given.n_keys, dtype=torch.bool).tril()
    return any(bool((given.allowed == (seen & rest)).all()) for rest in (torch.ones_like(causal), causal))


@every_square_mask
def test_more_than_padding_is_said_to_be_more(given):
    code = TRANSLATIONS["hugging_face_2d"].write(given)
    assert ("attention_mask =" in code) == is_padding_at_most(given)
    if not is_padding_at_most(given):
        assert all(line.startswith("# ") for line in code.splitlines())
        assert "Use the 4-D mask." in unfolded(code)


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("window", "query 0 sees key 0 and query 3 does not."),
        ("strictly before", "query 1 sees key 0 and query 0 does not."),
        ("prefix", "query 3 sees key 3 and query 0 does not, yet query 0 sees the later key 1."),
        ("heads that differ", "and here heads differ."),
    ],
)
def test_the_example_of_more_than_padding_is_one(name, example):
    code = TRANSLATIONS["hugging_face_2d"].write(SQUARE[name])
    assert example in unfolded(code)


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_queries_without_a_key_are_named(name):
    left = SQUARE["causal and padding left"]
    assert "# No key is left for query 0 (padding) and query 1 (padding): " in TRANSLATIONS[name].write(left)
    assert "No key" not in TRANSLATIONS[name].write(SQUARE["causal"])
    many = by_condition("k < q - 60", (False,) * 64)
    if name != "hugging_face_2d":
        assert "# No key is left for query 2 of head 1: " in TRANSLATIONS[name].write(SQUARE["heads that differ"])
        assert "query 4, query 5 and 55 more: " in unfolded(TRANSLATIONS[name].write(many))


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_lines_are_short_enough_to_read(name):
    lines = {line for given in SQUARE.values() for line in TRANSLATIONS[name].write(given).splitlines()}
    assert not [line for line in lines if len(line) > 116]


def test_only_what_the_condition_asks_for_is_written():
    code = TRANSLATIONS["numpy"].write(SQUARE["documents"])
    assert "query_segment = np.array([0, 0, 0, 1, 1, 1, 2])" in code
    assert "padding" not in code
    assert "token" not in code


def test_a_picture_that_heads_share_is_written_once():
    code = TRANSLATIONS["scaled_dot_product_attention"].write(SQUARE["heads that differ"])
    assert code.count("    1......\n    11.....\n") == 1
    assert "heads = [0, 1, 0, 0]" in code


@pytest.mark.parametrize("name", OVER_ONE_SEQUENCE)
def test_a_mask_over_two_sequences_has_no_place_in_a_stack(name):
    with pytest.raises(ValueError, match="the mask has 5 queries and 7 keys, and must have as many of both"):
        TRANSLATIONS[name].write(CROSS["painted, 5 queries"])


def test_every_translation_says_what_it_is():
    assert len({translation.title for translation in TRANSLATIONS.values()}) == len(TRANSLATIONS)
    for translation in TRANSLATIONS.values():
        assert translation.note.endswith(".")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"allowed": torch.ones(T, T, dtype=torch.bool)}, r"allowed has shape \(7, 7\): it must be \(1, Tq, Tk\)"),
        ({"allowed": torch.ones(2, T, T, dtype=torch.bool)}, r"allowed has shape \(2, 7, 7\): .* or \(4, Tq, Tk\)"),
        ({"allowed": torch.ones(1, 0, T, dtype=torch.bool)}, r"allowed has shape \(1, 0, 7\)"),
        ({"allowed": torch.ones(1, T, T)}, "allowed is .* of torch.float32: it must be .* of torch.bool"),
        ({"key_is_padding": torch.zeros(3, dtype=torch.bool)}, r"key_is_padding is \(3,\) .* must be \(7,\)"),
        ({"query_is_padding": torch.zeros(T)}, "query_is_padding is .* of torch.float32"),
        ({"condition": "key_token[k] == query_token[q]"}, "asks for query_token, key_token: facts must be given"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, message):
    none = torch.zeros(T, dtype=torch.bool)
    parts = {"allowed": torch.ones(1, T, T, dtype=torch.bool), "query_is_padding": none, "key_is_padding": none}
    with pytest.raises(ValueError, match=message):
        MaskToTranslate(**(parts | change), n_heads=N_HEADS)
