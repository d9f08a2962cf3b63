"""The role of an attention is told by what its queries and keys were computed from, whatever modules are called."""

import pytest
import torch
from torch import nn

import headlight

N_SOURCE, N_TARGET, WIDTH = 6, 4, 16


class Attend(nn.Module):
    """An attention of two heads that is written out, or computed by PyTorch's function."""

    def __init__(self, *, writes_out=True):
        super().__init__()
        self.writes_out = writes_out
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x, other, mask=None):
        query, key, value = (
            part.unflatten(-1, (2, -1)).transpose(1, 2)
            for part in (self.query(x), self.key(other), self.value(other))
        )
        if not self.writes_out:
            context = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        else:
            scores = query @ key.mT / 8**0.5
            context = (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1) @ value
        return context.transpose(1, 2).flatten(2)


class Layer(nn.Module):
    """One layer of a decoder whose two attentions have the same name but for their numbers."""

    def __init__(self, **options):
        super().__init__()
        self.mha1, self.mha2 = Attend(**options), Attend(**options)

    def forward(self, x, memory):
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        x = x + self.mha1(x, x, causal)
        return x + self.mha2(x, memory)


class Reader(nn.Module):
    """A model of two stacks whose names say nothing of that."""

    def __init__(self, **options):
        super().__init__()
        self.words, self.places = nn.Embedding(20, WIDTH), nn.Embedding(9, WIDTH)
        self.left = nn.ModuleList([Attend(**options) for _ in range(2)])
        self.right = nn.ModuleList([Layer(**options) for _ in range(2)])

    def forward(self, src, tgt):
        x, y = (self.words(ids) + self.places(torch.arange(ids.shape[1])) for ids in (src, tgt))
        for layer in self.left:
            x = x + layer(x, x)
        for layer in self.right:
            y = layer(y, x)
        return y


def ids(n_tokens):
    return torch.arange(n_tokens)[None] % 20


def roles_in(model, *args, **kwargs):
    with torch.no_grad(), headlight.watch(model) as trace:
        model(*args, **kwargs)
    return [attention.role for attention in trace]


@pytest.mark.parametrize("writes_out", [True, False])
@pytest.mark.parametrize("n_target", [N_TARGET, N_SOURCE])
def test_both_stacks_are_known_without_a_name(writes_out, n_target):
    found = roles_in(Reader(writes_out=writes_out).eval(), ids(N_SOURCE), ids(n_target))
    assert found == ["encoder"] * 2 + ["decoder", "cross"] * 2


def test_tokens_that_are_made_while_the_model_is_watched_come_in_from_outside():
    model = Reader().eval()
    with torch.no_grad(), headlight.watch(model) as trace:
        model(ids(N_SOURCE), ids(N_TARGET))
    assert [attention.role for attention in trace] == ["encoder"] * 2 + ["decoder", "cross"] * 2


def test_both_stacks_are_known_where_they_are_given_the_same_tokens():
    both = ids(N_SOURCE)
    assert roles_in(Reader().eval(), both, both) == ["encoder"] * 2 + ["decoder", "cross"] * 2


def test_a_cross_attention_that_sees_every_key_is_no_error_of_the_mask():
    assert not headlight.check(Reader().eval(), ids(N_SOURCE), ids(N_SOURCE)).errors


def test_the_rows_of_a_decoder_are_those_that_are_proved_causal():
    both = ids(N_SOURCE)
    for source in (both, ids(N_SOURCE)):
        proof = headlight.assert_causal(Reader().eval(), source, both)
        assert "No row of the output depends on a later token" in str(proof)
    with pytest.raises(AssertionError, match="later"):
        headlight.assert_causal(Reader().eval(), ids(N_SOURCE), ids(N_SOURCE), of="src")


@pytest.mark.parametrize("is_fused", [True, False])
def test_a_fused_encoder_is_one(is_fused):
    model = nn.Transformer(WIDTH, 2, 1, 1, 32, batch_first=True)
    found = roles_in(model.eval() if is_fused else model, *(torch.randn(2, n, WIDTH) for n in (5, 3)))
    assert found == ["encoder", "decoder", "cross"]


def test_queries_that_are_learned_attend_to_what_the_model_is_given():
    class Latents(nn.Module):
        def __init__(self):
            super().__init__()
            self.latents, self.reads, self.thinks = nn.Parameter(torch.randn(1, 3, WIDTH)), Attend(), Attend()

        def forward(self, x):
            x = self.reads(self.latents, x)
            return self.thinks(x, x)

    assert roles_in(Latents(), torch.randn(2, 5, WIDTH))[0] == "cross"


def test_keys_that_were_kept_are_those_of_the_same_sequence():
    class Continued(Attend):
        def forward(self, x, kept):
            return super().forward(x, torch.cat([kept, x], 1))

    assert roles_in(Continued(), torch.randn(1, 1, WIDTH), torch.randn(1, 4, WIDTH)) == ["self"]


def test_a_scale_and_looked_up_experts_of_the_queries_are_no_sequence():
    class Scaled(Attend):
        def __init__(self):
            super().__init__()
            self.scale, self.experts = torch.ones(2, 1, 1), nn.Parameter(torch.randn(3, WIDTH))

        def forward(self, x):
            chosen = self.experts[x[..., :3].argmax(-1)]
            heads = ((x + chosen) @ x.mT)[:, None] * self.scale
            return heads.softmax(-1) @ x[:, None]

    assert roles_in(Scaled(), torch.randn(1, 5, WIDTH)) == ["self"]


def test_positions_that_the_queries_alone_have_are_no_other_sequence():
    class Placed(Attend):
        def __init__(self):
            super().__init__()
            self.places = nn.Embedding(9, WIDTH)

        def forward(self, x, position_ids):
            return super().forward(x + self.places(position_ids), x)

    assert roles_in(Placed(), torch.randn(1, 5, WIDTH), ids(5)) == ["self"]


class _Compiled(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return x * 1.0


def test_what_was_lost_on_the_way_says_nothing():
    class Lost(Attend):
        def forward(self, x):
            return super().forward(_Compiled.apply(x), _Compiled.apply(x))

    assert roles_in(Lost(), torch.randn(1, 5, WIDTH)) == ["self"]


def test_stacks_that_are_called_one_by_one_are_known():
    model = Reader().eval()
    with torch.no_grad(), headlight.watch(model) as trace:
        x, y = model.words(ids(N_SOURCE)), model.words(ids(N_TARGET))
        x = x + model.left[0](x, x)
        model.right[0](y, x)
    assert [attention.role for attention in trace] == ["encoder", "decoder", "cross"]


class Named(nn.Module):
    """A self-attention under the name that PyTorch's decoder gives its cross-attention."""

    def __init__(self):
        super().__init__()
        self.multihead_attn = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x):
        return self.multihead_attn(x, x, x)[0]


def test_a_name_of_pytorch_says_cross_only_beside_the_self_attention():
    assert roles_in(Named(), torch.randn(2, 5, WIDTH)) == ["self"]
    same = torch.randn(2, 5, WIDTH)
    beside = nn.Transformer(WIDTH, 2, 1, 1, 32, batch_first=True)
    assert roles_in(beside, same, same) == ["encoder", "decoder", "cross"]


class WithoutEncoder(nn.Module):
    """A language model of PyTorch's decoder layers, whose memory is its own tokens."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, WIDTH)
        self.layers = nn.ModuleList([nn.TransformerDecoderLayer(WIDTH, 2, 32, batch_first=True) for _ in range(2)])

    def forward(self, x):
        x = memory = self.words(x)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for layer in self.layers:
            x = layer(x, memory, tgt_mask=later)
        return x


def test_a_memory_that_is_the_decoders_own_sequence_lets_the_future_in():
    report = headlight.check(WithoutEncoder().eval(), ids(N_SOURCE))
    rules = {row.attention.path: [found.rule for found in row.findings] for row in report.rows}
    for layer in range(2):
        assert not rules[f"layers.{layer}.self_attn"]
        assert {"visible_future", "own_memory"} <= {*rules[f"layers.{layer}.multihead_attn"]}


class Latents(nn.Module):
    """A Perceiver: latents that are learned read the tokens again and again."""

    def __init__(self):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(1, 3, WIDTH))
        layers = (nn.ModuleDict({"cross_attn": Attend(), "self_attn": Attend()}) for _ in range(2))
        self.layers = nn.ModuleList(layers)

    def forward(self, data):
        x = self.latents
        for layer in self.layers:
            x = x + layer["cross_attn"](x, data)
            x = x + layer["self_attn"](x, x)
        return x


def test_latents_that_have_read_the_tokens_read_them_again():
    model, data = Latents().eval(), torch.randn(1, N_SOURCE, WIDTH)
    assert roles_in(model, data)[::2] == ["cross"] * 2
    assert not headlight.check(model, data).findings


class DecoderAlone(nn.Module):
    """A decoder that is given what another model read, and a mask of its own padding that it does not heed."""

    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def forward(self, x, memory, attention_mask):
        return self.layer(x, memory)


def test_the_padding_of_a_decoder_without_an_encoder_is_its_own():
    left = torch.tensor([[0, 1, 1, 1]])
    x, memory = torch.randn(1, N_TARGET, WIDTH), torch.randn(1, N_SOURCE, WIDTH)
    report = headlight.check(DecoderAlone(), x, memory, attention_mask=left)
    rules = {row.attention.path: [found.rule for found in row.findings] for row in report.rows}
    assert "visible_padding" in rules["layer.mha1"]
    assert "visible_padding" not in rules["layer.mha2"]
