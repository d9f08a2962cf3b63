"""Attentions that have sequences and heads in one axis, as many did before PyTorch 2, are seen with both."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import headlight
from headlight.residual_stream.contributions import contributions_of

B, T, H, D = 2, 5, 4, 3
WIDTH = H * D
IDS = torch.arange(B * T).view(B, T)


class Joined(nn.Module):
    """Multi-head attention by products of three axes."""

    def __init__(self, join, part, softmax=None):
        super().__init__()
        self.whole = nn.MultiheadAttention(WIDTH, H, bias=False, batch_first=True)
        self.join, self.part, self.softmax = join, part, softmax or partial(torch.softmax, dim=-1)

    def forward(self, x):
        q, k, v = (self.join(F.linear(x, weight)) for weight in self.whole.in_proj_weight.chunk(3))
        return self.whole.out_proj(self.part(self.softmax(q @ k.mT / D**0.5) @ v))


class Model(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.tokens, self.attention = nn.Embedding(B * T, WIDTH), attention

    def forward(self, ids):
        x = self.tokens(ids)
        return x + self.attention(x)


WAYS = {
    "sequences first": (
        lambda x: x.view(B, T, H, D).transpose(1, 2).reshape(B * H, T, D),
        lambda c: c.view(B, H, T, D).transpose(1, 2).reshape(B, T, WIDTH),
    ),
    "heads first": (
        lambda x: x.view(B, T, H, D).permute(2, 0, 1, 3).reshape(H * B, T, D),
        lambda c: c.view(H, B, T, D).permute(1, 2, 0, 3).reshape(B, T, WIDTH),
    ),
    "tokens first": (
        lambda x: x.transpose(0, 1).contiguous().view(T, B * H, D).transpose(0, 1),
        lambda c: c.transpose(0, 1).contiguous().view(T, B, WIDTH).transpose(0, 1),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("softmax", [None, nn.Softmax(dim=-1)])
def test_heads_and_sequences_are_apart(way, softmax):
    model = Model(Joined(*WAYS[way], softmax)).eval()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(IDS)
    x = model.tokens(IDS)
    with torch.no_grad():
        _, expected = model.attention.whole(x, x, x, average_attn_weights=False)
    assert trace[0].shape == (B, H, T, T)
    torch.testing.assert_close(trace[0].weights, expected)
    assert trace[0].query.shape == trace[0].context.shape == (B, H, T, D)


@pytest.mark.parametrize("n_tokens", [T, H])
@pytest.mark.parametrize("takes_ids", [True, False])
def test_heads_of_one_sequence_are_no_sequences(n_tokens, takes_ids):
    cut = lambda x: x.view(n_tokens, H, D).transpose(0, 1)  # noqa: E731 - as in a notebook
    model = Model(Joined(cut, lambda c: c.transpose(0, 1).reshape(n_tokens, WIDTH))).eval()
    ids = torch.arange(n_tokens)
    with torch.no_grad():
        x = model.tokens(ids)
        _, expected = model.attention.whole(x[None], x[None], x[None], average_attn_weights=False)
        watched, given = (model, ids) if takes_ids else (model.attention, x)
        with headlight.watch(watched, keep="all") as trace:
            watched(given)
    assert [one.shape for one in trace] == [(1, H, n_tokens, n_tokens)]
    torch.testing.assert_close(trace[0].weights, expected)
    assert trace[0].query.shape == trace[0].context.shape == (1, H, n_tokens, D)


class Grouped(nn.Module):
    """Queries in an axis of groups and one of heads, which share the keys and values of their group."""

    def __init__(self, attend):
        super().__init__()
        self.q, self.kv, self.attend = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), attend

    def forward(self, x):
        q = self.q(x).view(B, T, 2, H // 2, D).permute(0, 2, 3, 1, 4)
        k, v = self.kv(x).view(B, T, 2, 2, 1, D).permute(2, 0, 3, 4, 1, 5)
        return self.attend(q, k, v).permute(0, 3, 1, 2, 4).reshape(B, T, WIDTH)


def written_out(q, k, v):
    weights = (q @ k.mT / D**0.5).masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -torch.inf).softmax(-1)
    return weights @ v


@pytest.mark.parametrize("attend", [written_out, partial(F.scaled_dot_product_attention, is_causal=True)])
@pytest.mark.parametrize("keep", ["weights", "all"])
def test_heads_in_groups_are_heads_of_one_sequence(attend, keep):
    model = Model(Grouped(attend)).eval()
    with torch.no_grad(), headlight.watch(model, keep=keep) as trace:
        model(IDS)
        x = model.tokens(IDS)
        q = model.attention.q(x).view(B, T, H, D).transpose(1, 2)
        k = model.attention.kv(x)[..., : 2 * D].view(B, T, 2, D).transpose(1, 2).repeat_interleave(2, 1)
    scores = (q @ k.mT / D**0.5).masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -torch.inf)
    assert (trace[0].shape, trace[0].key_heads) == ((B, H, T, T), 2)
    torch.testing.assert_close(trace[0].weights, scores.softmax(-1))
    assert "4 heads share 2 key/value heads" in str(headlight.check(model, IDS))
    assert "causal" in str(headlight.check(model, IDS))


def test_three_windows_beside_a_fused_projection_are_no_groups_of_heads():
    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x):
            q, k, v = self.qkv(x.view(3 * B, T, WIDTH)).view(3 * B, T, 3, H, D).permute(2, 0, 3, 1, 4)
            weights = (q @ k.mT / D**0.5).softmax(-1)
            return (weights @ v).transpose(1, 2).reshape(B, 3 * T, WIDTH)

    attention = Windows()
    with torch.no_grad(), headlight.watch(attention) as trace:
        attention(torch.randn(B, 3 * T, WIDTH))
    assert trace[0].shape == (3 * B, H, T, T)


def test_heads_in_front_of_sequences_are_told_by_how_a_width_is_cut():
    class HeadsFirst(nn.Module):
        def forward(self, x):
            heads = x.view(B, T, H, D)
            weights = (torch.einsum("bqhd,bkhd->hbqk", heads, heads) / D**0.5).softmax(-1)
            return torch.einsum("hbqk,bkhd->bqhd", weights, heads).flatten(2)

    model = Model(HeadsFirst())
    with torch.no_grad(), headlight.watch(model) as trace:
        model(IDS)
    assert trace[0].shape == (B, H, T, T)


def test_as_many_tokens_as_heads_need_no_axis_for_sequences_either():
    attention = nn.MultiheadAttention(WIDTH, H).eval()
    x = torch.randn(H, WIDTH)
    with torch.no_grad(), headlight.watch(attention) as trace:
        attention(x, x, x)
    assert trace[0].shape == (1, H, H, H)


@pytest.mark.parametrize("n_sequences", [1, 2, 3])
def test_as_many_tokens_as_heads_in_front_of_sequences_are_neither(n_sequences):
    attend = nn.MultiheadAttention(WIDTH, H).eval()
    x = torch.randn(H, n_sequences, WIDTH, generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), headlight.watch(attend, keep="attentions") as trace:
        attend(x, x, x, need_weights=False)
    with torch.no_grad():
        _, weights = attend(x, x, x, average_attn_weights=False)
    assert trace[0].shape == (n_sequences, H, H, H)
    assert torch.allclose(trace[0].weights, weights, atol=1e-6)


@pytest.mark.parametrize("n_sequences", [1, 2, 3])
def test_nor_are_they_where_the_attention_is_written_out(n_sequences):
    class TokensFirst(nn.Module):
        def forward(self, x):
            heads = x.view(H, n_sequences, H, D).permute(1, 2, 0, 3)
            return ((heads @ heads.mT).softmax(-1) @ heads).permute(2, 0, 1, 3).flatten(2)

    model = TokensFirst()
    x = torch.randn(H, n_sequences, WIDTH, generator=torch.Generator().manual_seed(0))
    with headlight.watch(model) as trace:
        model(x)
    heads = x.view(H, n_sequences, H, D).permute(1, 2, 0, 3)
    torch.testing.assert_close(trace[0].weights, (heads @ heads.mT).softmax(-1))


def test_its_heads_are_parts_of_the_stream():
    model = Model(Joined(*WAYS["sequences first"])).eval()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(IDS)
    (stream,) = (found := contributions_of(trace)).streams
    *_, last = found.places(stream, item=1)
    assert [term.head for term in last.terms] == [None, *range(H)]
    assert last.difference < 1e-6


@pytest.mark.parametrize("n_images", [1, 2])
def test_heads_of_images_are_cut_out_of_their_channels(n_images):
    class Image(nn.Module):
        def forward(self, image):
            heads = image.view(n_images, H, D, 2, 3).permute(0, 1, 3, 4, 2).reshape(n_images * H, 2 * 3, D)
            return (heads @ heads.mT).softmax(-1) @ heads

    model = Image()
    with headlight.watch(model) as trace:
        model(torch.randn(n_images, WIDTH, 2, 3))
    assert trace[0].shape == (n_images, H, 6, 6)


@pytest.mark.parametrize("n_images", [1, 2])
@pytest.mark.parametrize("n_windows", [1, 4])
def test_heads_share_an_axis_with_the_windows_of_images(n_images, n_windows):
    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, image):
            n_all = n_images * n_windows
            qkv = self.qkv(image.reshape(n_all, 2, -1, WIDTH)).reshape(n_all, -1, 3, H, D).permute(2, 0, 3, 1, 4)
            q, k, v = qkv.reshape(3, n_all * H, -1, D).unbind(0)
            return (q @ k.mT).softmax(-1) @ v

    model = Windows()
    with torch.no_grad(), headlight.watch(model) as trace:
        model(torch.randn(n_images, 4, 4, WIDTH))
    assert trace[0].shape == (n_images * n_windows, H, 16 // n_windows, 16 // n_windows)


@pytest.mark.parametrize("n_images", [1, 2])
@pytest.mark.parametrize("n_heads", [1, H])
@pytest.mark.parametrize("attend", [lambda q, k, v: (q @ k.mT).softmax(-1) @ v, F.scaled_dot_product_attention])
def test_windows_of_images_may_stand_behind_the_heads(n_images, n_heads, attend):
    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, image):
            tokens = image.permute(0, 2, 3, 1).flatten(1, 2)
            qkv = self.qkv(tokens).reshape(n_images, -1, 5, 3, n_heads, WIDTH // n_heads)
            return attend(*qkv.permute(3, 0, 4, 2, 1, 5)).transpose(1, 3).reshape(n_images, -1, WIDTH)

    model = Windows()
    with torch.no_grad(), headlight.watch(model, keep="attentions") as trace:
        model(torch.randn(n_images, WIDTH, 5, 2))
    assert trace[0].shape == trace[0].weights.shape == (n_images * 5, n_heads, 2, 2)
    assert trace[0].query.shape == (n_images * 5, n_heads, 2, WIDTH // n_heads)
    torch.testing.assert_close(trace[0].context, trace[0].weights @ trace[0].value)


@pytest.mark.parametrize("n_images", [1, 2])
def test_windows_of_one_head_in_images_are_no_heads_either(n_images):
    class Windows(nn.Module):
        def forward(self, image):
            x = image.view(-1, 2, 2, WIDTH).flatten(1, 2)
            return (x @ x.mT).softmax(-1) @ x

    model = Windows()
    with headlight.watch(model) as trace:
        model(torch.randn(n_images, 6, 2, WIDTH))
    assert trace[0].shape == (n_images * 3, 1, 4, 4)


def test_windows_of_one_head_are_no_heads():
    n_windows, length = 2, 3

    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(B * n_windows * length, WIDTH)

        def forward(self, ids):
            x = self.tokens(ids).view(B, n_windows, length, WIDTH).flatten(0, 1)
            return ((x @ x.mT).softmax(-1) @ x).view(B, n_windows * length, WIDTH)

    model = Windows()
    with headlight.watch(model) as trace:
        model(torch.arange(B * n_windows * length).view(B, -1))
    assert trace[0].shape == (B * n_windows, 1, length, length)


def test_a_mask_that_changes_its_shape_joins_no_heads():
    class OfHeads(nn.Module):
        def forward(self, q):
            torch.ones(1, 1, 8, 8, dtype=torch.bool).view(1, 1, 1, 8, 1, 8)  # as FlexAttention counts blocks
            return F.scaled_dot_product_attention(q, q, q)

    with headlight.watch(model := OfHeads()) as trace:
        model(torch.randn(B, H, T, D))
    assert [seen.shape for seen in trace] == [(B, H, T, T)]
