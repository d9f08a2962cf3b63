"""The parts that were written sum to the residual stream, and the logit lens ends in the model's own logits."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import transformers
from torch import nn

import headlight
from headlight.residual_stream.contributions import contributions_of
from headlight.residual_stream.terms import Term
from tests.headlight.test_transformers_models import ENCODER_DECODERS, FAMILIES, OTHERS, built

IDS = torch.tensor([[5, 9, 22, 31, 8, 60, 17], [5, 7, 23, 31, 4, 61, 18]])
BASE_MODELS = ("bert", "distilbert", "bart")
"""Those without a prediction."""


def inputs_of(family):
    given = {"input_ids": IDS}
    return given | ({"decoder_input_ids": IDS[:, :5]} if family in ENCODER_DECODERS else {})


def traced(family):
    """A pass of a family's model, whose norms and biases are no longer those of the start."""
    model = built(family)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(1)
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        output = model(**inputs_of(family))
    return model, trace, output


@pytest.mark.parametrize("family", FAMILIES)
def test_the_parts_sum_to_the_stream_at_every_place(family):
    _, trace, _ = traced(family)
    found = contributions_of(trace)
    assert len(found.streams) == (2 if family in ENCODER_DECODERS else 1)
    seen = [path for stream in found.streams for path in found.attentions_of(stream)]
    assert sorted(seen) == sorted(trace.paths), "every attention writes to a stream"
    for stream in found.streams:
        (*_, last) = places = list(found.places(stream, item=1))
        assert len(places) > len(found.attentions_of(stream))
        for place in places:
            assert place.difference < 1e-5
            torch.testing.assert_close(place.stream, rows_of(trace, place.path), rtol=0, atol=0)
        heads = [term for term in last.terms if term.kind == "head"]
        assert len(heads) == sum(trace[path].n_heads for path in found.attentions_of(stream))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_lone_token_is_followed_whose_values_are_the_context_itself(family):
    model, ids = built(family), IDS[:1, :1]
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(ids, **({"decoder_input_ids": ids} if family in ENCODER_DECODERS else {}))
    found = contributions_of(trace)
    followed = [path for stream in found.streams for path in found.attentions_of(stream)]
    assert sorted(followed) == sorted(trace.paths)
    assert max(place.difference for stream in found.streams for place in found.places(stream)) < 1e-5


def test_attentions_of_experts_write_to_no_stream():
    """Each token has two experts of JetMoE, whose attentions have rows of their own."""
    config = transformers.JetMoeConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=2, num_key_value_heads=2, kv_channels=4,
        intermediate_size=32, num_local_experts=2, num_experts_per_tok=1,
    )  # fmt: skip
    model = transformers.JetMoeForCausalLM(config).eval()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(IDS)
    assert len(trace) == 2
    assert not contributions_of(trace).streams


def rows_of(trace, path):
    """The rows of the second sequence."""
    value = trace.stages[path].value
    return value.reshape(2, -1, value.shape[-1])[1].double()


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in BASE_MODELS])
def test_the_lens_ends_in_the_logits_of_the_model(family):
    _, trace, output = traced(family)
    found = contributions_of(trace)
    (stream,) = (stream for stream in found.streams if found.lens.answer_of(stream) is not None)
    end = trace.stages[stream.end].value.flatten(0, -2)
    expected = output.logits.flatten(0, 1)
    torch.testing.assert_close(found.lens.logits(stream, end.flip(0)).flip(0), expected, rtol=1e-4, atol=1e-5)
    (first, *_) = found.places(stream)
    assert not torch.allclose(found.lens.logits(stream, first.stream), output.logits[0], atol=1e-3)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gpt_neox", "t5"])
def test_the_parts_of_a_logit_sum_to_it(family):
    model, trace, output = traced(family)
    found = contributions_of(trace)
    stream = next(stream for stream in found.streams if found.lens.answer_of(stream) is not None)
    (*_, last) = found.places(stream)
    torch.testing.assert_close(found.lens.unembedding_of(stream), model.get_output_embeddings().weight)
    logits = last.parts @ found.lens.unembedding_of(stream).double().T
    torch.testing.assert_close(logits.sum(0).float(), output.logits[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", BASE_MODELS)
def test_without_a_prediction_there_is_no_lens(family):
    _, trace, _ = traced(family)
    found = contributions_of(trace)
    assert [found.lens.answer_of(stream) for stream in found.streams] == [None] * len(found.streams)
    with pytest.raises(ValueError, match="no logits"):
        found.lens.logits(found.streams[0], torch.zeros(1, 16))


@pytest.mark.parametrize(
    ("family", "projection", "is_transposed"),
    [
        ("llama", "model.layers.1.self_attn.o_proj", False),
        ("bert", "encoder.layer.1.attention.output.dense", False),
        ("gpt2", "transformer.h.1.attn.c_proj", True),
        ("bloom", "transformer.h.1.self_attention.dense", False),
    ],
)
def test_a_head_is_what_its_columns_of_the_projection_take_away(family, projection, is_transposed):
    model, trace, _ = traced(family)
    found = contributions_of(trace)
    (stream,) = found.streams
    writer = next(path for path in trace.stages if path.startswith(f"{projection}."))
    place, head = next(
        (place, term)
        for place in found.places(stream)
        for term in place.terms
        if term.head == 2 and ".1." in found.attention_of(term)
    )
    weight = model.get_submodule(projection).weight
    before = trace.stages[writer].value.clone()
    with torch.no_grad():
        (weight[8:12] if is_transposed else weight[:, 8:12]).zero_()
        with headlight.watch(model, keep="all") as ablated:
            model(**inputs_of(family))
    taken = (before - ablated.stages[writer].value).reshape(2, -1, 16)[0].double()
    part = place.parts[place.terms.index(head)]
    torch.testing.assert_close(part, taken, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_modules_of_pytorch_are_followed(batch_first, norm_first):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=batch_first, norm_first=norm_first)
        model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
        given = torch.randn(2, 7, 16) if batch_first else torch.randn(7, 2, 16)
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        output = model(given)
    found = contributions_of(trace)
    (stream,) = found.streams
    (*places, last) = found.places(stream, item=1, tokens=slice(2, 5))
    assert max(place.difference for place in (*places, last)) < 1e-5
    rows = output[1, 2:5] if batch_first else output[2:5, 1]
    torch.testing.assert_close(last.stream.float(), rows, rtol=1e-5, atol=1e-5)
    assert [term.head for term in last.terms if term.kind == "head"] == [0, 1, 2, 3] * 2
    first = (*places, last)[0]
    assert [term.kind for term in first.terms if term.kind in ("embedding", "head")] == ["embedding", *["head"] * 4]
    assert first.stream.norm() > given.norm() / 4  # what comes in is in it, and not the attention alone


@pytest.mark.parametrize("n_tokens", [3, 4])
def test_as_many_tokens_as_heads_are_no_other_layout(n_tokens):
    model = built("llama")
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(IDS[:, :n_tokens])
    found = contributions_of(trace)
    (stream,) = found.streams
    assert len(found.attentions_of(stream)) == 2
    assert max(place.difference for place in found.places(stream)) < 1e-5


def test_a_pass_without_attentions_has_no_stream():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(torch.randn(1, 3, 4))
    assert contributions_of(trace).streams == ()


def test_the_stream_begins_after_what_the_model_wrote_over():
    _, trace, _ = traced("llama")
    lost = next(path for path in trace.stages if path.endswith("layers.0.add"))
    trace.stages[lost] = replace(trace.stages[lost], value=None)
    found = contributions_of(trace)
    (*_, last) = found.places(found.streams[0])
    assert last.difference < 1e-5
    assert all(".0." not in term.path for term in last.terms if term.kind == "head")


def test_a_term_names_its_attention():
    _, trace, _ = traced("llama")
    found = contributions_of(trace)
    (*_, last) = found.places(found.streams[0])
    heads = [term for term in last.terms if term.kind == "head"]
    assert [found.attention_of(term) for term in heads] == [path for path in trace.paths for _ in range(4)]
    assert Term("embedding", "model.embed_tokens.embedding") in last.terms


class SoftmaxAsModule(nn.Module):
    """Attention whose softmax is a module, and whose products are any two functions."""

    def __init__(self, scores, mixed):
        super().__init__()
        self.scores, self.mixed = scores, mixed
        self.projections, self.output = nn.Linear(8, 24), nn.Linear(8, 8)
        self.attend = nn.Softmax(-1)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, 4)) for part in self.projections(x).chunk(3, -1))
        return x + self.output(self.mixed(self.attend(self.scores(q, k)), v).flatten(2))


@pytest.mark.parametrize(
    ("scores", "mixed"),
    [
        ("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"),
        ("bqhd,bkhd->bhqk", "... h q k, ... k h d -> ... q h d"),
        ("bkhd,bqhd->bhkq", "bkhd,bhqk->bqhd"),
    ],
)
def test_attention_by_einsum_with_a_softmax_of_its_own_is_followed(scores, mixed):
    def product(q, k):
        found = torch.einsum(scores, *((k, q) if scores.startswith("bk") else (q, k)))
        return found.mT if scores.endswith("kq") else found

    def context(weights, v):
        return torch.einsum(mixed, *((v, weights) if mixed.startswith("bk") else (weights, v)))

    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(*(SoftmaxAsModule(product, context) for _ in range(2)))
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        output = model(x)
    for attention in trace:
        values = attention.value.unflatten(0, (2, -1)) if attention.value.dim() == 3 else attention.value
        torch.testing.assert_close(attention.context, attention.weights @ values)
    found = contributions_of(trace)
    (stream,) = found.streams
    assert found.attentions_of(stream) == trace.paths == ("0.attend", "1.attend")
    (*_, last) = found.places(stream, item=1)
    assert last.difference < 1e-6
    assert len([term for term in last.terms if term.kind == "head"]) == 4
    torch.testing.assert_close(last.parts.sum(0).float(), output[1])


@pytest.mark.parametrize("item", [0, 1])
def test_an_attention_with_its_tokens_first_is_followed(item, monkeypatch):
    name, options, inputs, _ = OTHERS["xlnet"]
    monkeypatch.setitem(FAMILIES, "xlnet", (name, options))
    model = built("xlnet")
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(**inputs)
    found = contributions_of(trace)
    (stream,) = found.streams
    assert found.attentions_of(stream) == trace.paths
    assert max(place.difference for place in found.places(stream, item=item)) < 1e-6


@pytest.mark.parametrize(
    "masked",
    [
        lambda x, real: x.masked_fill(~real, 0.0),
        lambda x, real: torch.where(real, x, 0.0),
        lambda x, real: x.where(real, torch.zeros(1)),
        lambda x, real: torch.masked_fill(x, ~real, value=0),
    ],
)
def test_what_a_mask_sets_to_zero_passes_the_parts(masked):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.linear = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 8)

        def forward(self, x):
            real = torch.arange(5)[:, None] < 4
            x = x + masked(self.attention(x, x, x, need_weights=False)[0], real)
            return x + masked(self.linear(x), real)

    x, model = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0)), Masked()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        output = model(x)
    found = contributions_of(trace)
    (stream,) = found.streams
    (*_, last) = found.places(stream)
    assert [term.kind for term in last.terms] == ["embedding", "head", "head", "bias", "feed_forward", "bias"]
    assert last.difference < 1e-6
    torch.testing.assert_close(last.parts.sum(0).float(), output[0])
    assert not last.parts[1:, 4].any()


@pytest.mark.parametrize("is_turned", [False, True])
def test_heads_that_an_einsum_projects_are_those_without_the_others(is_turned):
    class Projected(nn.Module):
        def __init__(self):
            super().__init__()
            self.w_v, self.w_o = nn.Parameter(torch.randn(8, 2, 4)), nn.Parameter(torch.randn(2, 4, 8))

        def forward(self, x, without=()):
            heads = torch.einsum("btd,dhc->bhtc", x, self.w_v)
            context = (heads @ heads.mT).softmax(-1) @ heads
            context = context * torch.tensor([head not in without for head in range(2)]).view(1, 2, 1, 1)
            if is_turned:
                return x + torch.einsum("bthc,hcd->btd", context.transpose(1, 2), self.w_o)
            return x + torch.einsum("bhtc,hcd->btd", context, self.w_o)

    x, model = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)), Projected()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        output = model(x)
    found = contributions_of(trace)
    (stream,) = found.streams
    (*_, last) = found.places(stream, item=1)
    assert [(term.kind, term.head) for term in last.terms] == [("embedding", None), ("head", 0), ("head", 1)]
    assert last.difference < 1e-6
    for head in range(2):
        with torch.no_grad():
            taken_away = output - model(x, without=(head,))
        torch.testing.assert_close(last.parts[1 + head].float(), taken_away[1], atol=1e-5, rtol=1e-4)


def test_attentions_of_windows_write_to_no_stream():
    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x):
            windows = x.roll(1, 1).reshape(-1, 3, 8)
            return x + self.attention(windows, windows, windows)[0].reshape(x.shape)

    model = Windows()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(torch.randn(1, 12, 8, generator=torch.Generator().manual_seed(0)))
    assert len(trace) == 1
    assert contributions_of(trace).streams == ()


def test_zero_that_is_added_is_no_part():
    class Zero(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.attention = nn.Embedding(70, 8), nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, ids):
            x = 0 + (self.embedding(ids) + 0.0)
            return x + self.attention(x, x, x, need_weights=False)[0]

    model = Zero()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(IDS)
    found = contributions_of(trace)
    (*_, last) = found.places(*found.streams)
    assert [term.kind for term in last.terms] == ["embedding", "head", "head", "bias"]
    assert last.difference < 1e-6


class TablesOfItsOwn(nn.Module):
    """Parameters in place of modules: ids look rows up by an index, and a matrix gives the logits."""

    def __init__(self):
        super().__init__()
        self.table, self.unembedding = nn.Parameter(torch.randn(70, 8)), nn.Parameter(torch.randn(8, 70))
        self.bias, self.projection = nn.Parameter(torch.randn(70)), nn.Linear(8, 8)

    def forward(self, ids):
        x = self.table[ids, :]
        heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
        weights = (heads @ heads.mT).softmax(-1)
        weights = torch.where(weights.isnan(), torch.zeros_like(weights), weights)
        x = x + self.projection((weights @ heads).transpose(1, 2).flatten(2))
        return torch.addmm(self.bias, x.view(-1, 8), self.unembedding).view(*ids.shape, -1)


def test_a_table_that_is_indexed_is_an_embedding_and_any_matrix_unembeds():
    model = TablesOfItsOwn()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        logits = model(IDS)
    assert trace[0].remarks == (), "what is set in place of NaN changed no weight"
    found = contributions_of(trace)
    (stream,) = found.streams
    first, *_, last = found.places(stream)
    assert [(term.kind, term.path) for term in first.terms] == [("embedding", "getitem")]
    torch.testing.assert_close(last.parts.sum(0).float(), last.stream.float())
    torch.testing.assert_close(found.lens.logits(stream, last.stream.float()), logits[0])
    torch.testing.assert_close(found.lens.unembedding_of(stream), model.unembedding.mT)


class Interleaved(nn.Module):
    """Tokens of two kinds in turn, as a decision transformer has them, or the pixels of a convolution."""

    def __init__(self, enter):
        super().__init__()
        self.enter, self.norm = enter, nn.LayerNorm(8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)

    def forward(self, x):
        return self.layer(self.norm(self.enter(x)))


@pytest.mark.parametrize("enter", [
    lambda x: torch.stack((x, 2 * x), 1).permute(0, 2, 1, 3).reshape(2, 8, 8),
    lambda x: torch.cat((x, x + 1), 1).mul(3).mT,
    lambda x: torch.cat((x, x + 1), 1).mul(3).transpose(0, 1),
], ids=["of two kinds", "columns", "tokens first"])  # fmt: skip
def test_a_change_of_the_order_of_rows_or_columns_is_no_way_for_parts(enter):
    x = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(0))
    model = Interleaved(enter).eval()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        output = model(x)
    found = contributions_of(trace)
    (stream,) = found.streams
    places = list(found.places(stream, item=1))
    assert max(place.difference for place in places) < 1e-6
    torch.testing.assert_close(places[-1].parts.sum(0).float(), output[1])


class LowRank(nn.Module):
    """A projection beside one of low rank, as LoRA trains it (Hu et al. 2021)."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.a = nn.Linear(base.in_features, 2, bias=False)
        self.b = nn.Linear(2, base.out_features, bias=False)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.base(x) + self.b(self.a(self.dropout(x))) * 2.0


def test_what_a_head_writes_by_a_projection_of_low_rank_is_part_of_it():
    head, width = 1, 4
    model = built("llama")
    attention = model.model.layers[0].self_attn
    attention.o_proj = LowRank(attention.o_proj)
    model.eval()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(IDS)
    (stream,) = (found := contributions_of(trace)).streams
    assert found.attentions_of(stream) == trace.paths
    place = next(place for place in found.places(stream, item=1) if place.path.startswith("model.layers.0.add"))
    columns = slice(head * width, (head + 1) * width)
    context = trace[0].context.transpose(1, 2).flatten(2)[1].clone()
    kept = torch.zeros_like(context)
    kept[:, columns] = context[:, columns]
    with torch.no_grad():
        expected = attention.o_proj(kept)
    (part,) = (each for term, each in zip(place.terms, place.parts, strict=True) if term.head == head)
    torch.testing.assert_close(part, expected.double(), rtol=1e-5, atol=1e-6)
    assert place.difference < 1e-6


class Modulated(nn.Module):
    """A shift and a gate for each sequence, as in the adaptive norms of DiT (Peebles and Xie 2023, 3.2)."""

    def __init__(self):
        super().__init__()
        self.tokens, self.kinds = nn.Embedding(32, 16), nn.Embedding(32, 32)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, ids):
        x = self.tokens(ids)
        shift, gate = self.kinds(ids[:, 0]).chunk(2, -1)
        x = x + self.attention(x, x, x, need_weights=False)[0] * gate[:, None]
        return x + shift[:, None]


def test_what_each_sequence_has_one_of_is_that_of_the_sequence_looked_at():
    model, ids = Modulated().eval(), torch.arange(10).view(2, 5)
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(ids)
    (stream,) = (found := contributions_of(trace)).streams
    assert max(place.difference for item in (0, 1) for place in found.places(stream, item=item)) < 1e-6


def test_the_parts_of_an_exported_program_sum_to_its_stream():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16), enable_nested_tensor=False)

        def forward(self, x):
            return self.layers(x)

    x = torch.randn(1, 5, 16)
    exported = torch.export.export(Layers().eval(), (x,)).module()
    with torch.no_grad(), headlight.watch(exported, keep="all") as trace:
        exported(x)
    found = contributions_of(trace)
    (stream,) = found.streams
    assert len(found.attentions_of(stream)) == 2
    assert max(place.difference for place in found.places(stream)) < 1e-5
