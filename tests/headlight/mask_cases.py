"""Masks as models have them: those that are right, and bugs, each a small module with the inputs of one call."""

import math
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from tests.headlight.small_models import (
    N_HEADS,
    WIDTH,
    Attention,
    TokenModel,
    causal,
    seeded,
    stacked,
    vectors,
    written_out,
)

sdpa = F.scaled_dot_product_attention
LOW = -math.inf
T = 6
PLACES = torch.arange(T)
DISTANCE = PLACES[:, None] - PLACES
RIGHT = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
LEFT = torch.tensor([[False] * 6, [True] * 2 + [False] * 4])
BETWEEN = torch.tensor([[False] * 6, [False, False, True, True, False, False]])
FEW = torch.tensor([[False] * 6, [False] * 2 + [True] * 4])
REAL = {"right": {"attention_mask": (~RIGHT).long()}, "left": {"attention_mask": (~LEFT).long()}}
FIRST_DOCUMENT = torch.tensor([[0, 1, 2, 0, 1, 2]] * 2)
DOCUMENTS = torch.tensor([0, 0, 0, 1, 1, 1])


@dataclass(frozen=True)
class Case:
    """A model, its inputs, what ``check`` is told, and for a bug the title of what is found."""

    model: object
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)
    told: dict = field(default_factory=dict)
    title: str = ""


def of(attend, title="", x=None, told=None, layers=1, key_heads=N_HEADS, **kwargs):
    """A case of layers around one attention, whose inputs besides vectors it does not read."""
    model = seeded(lambda: Ignoring(*(Attention(attend, key_heads) for _ in range(layers))))
    return Case(model, (vectors() if x is None else x,), kwargs, told or {}, title)


class Ignoring(nn.Module):
    """Layers one after the other, and inputs that nobody reads but ``check``."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x, attention_mask=None, position_ids=None):
        for layer in self.layers:
            x = layer(x)
        return x


def masked(allowed, title="", **more):
    return of(partial(sdpa, attn_mask=allowed), title, **more)


def filled(cells, fill=LOW):
    """Scores in which cells are filled."""
    return written_out(lambda scores: scores.masked_fill(cells, fill))


def last_resort(scores):
    """Reformer's: a query sees its own key where it has no other."""
    return scores.masked_fill(torch.eye(T, dtype=torch.bool), -1e5).masked_fill(~causal(T), -1e9)


def with_sink(place):
    """A column of the softmax that belongs to no token, as in gpt-oss; at the end or in front."""

    def attend(q, k, v):
        scores = (q @ k.mT / 2).masked_fill(~causal(T), LOW)
        sink = torch.linspace(-1, 1, q.shape[1])[:, None, None].expand(len(q), -1, T, 1)
        joined = torch.cat([scores, sink] if place == "end" else [sink, scores], -1)
        weights = (joined - joined.amax(-1, keepdim=True)).softmax(-1)
        return (weights[..., :-1] if place == "end" else weights[..., 1:]) @ v

    return attend


def heads_last(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (B, T, H, Dh)
    scores = torch.einsum("bihd,bjhd->bijh", q, k) / 2
    weights = scores.masked_fill(~causal(T)[None, :, :, None], LOW).softmax(2)
    return torch.einsum("bijh,bjhd->bihd", weights, v).transpose(1, 2)


class HeadsFirst(nn.Module):
    """(H, B, T, T), padding included."""

    def __init__(self, is_padding, attend=None):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.is_padding, self.attend = is_padding, attend

    def forward(self, x, attention_mask=None):
        q, k, v = (
            f(x).unflatten(-1, (N_HEADS, -1)).permute(2, 0, 1, 3) for f in (self.query, self.key, self.value)
        )
        mask = ~self.is_padding[None, :, None, :]
        if self.attend is not None:
            return self.attend(q, k, v, mask).permute(1, 2, 0, 3).flatten(2)
        weights = (q @ k.mT / 2).masked_fill(~mask, LOW).softmax(-1)
        return (weights @ v).permute(1, 2, 0, 3).flatten(2)


def in_blocks(q, k, v):
    """Each token beside those of its own block, of which one holds padding alone."""
    q, k, v = (x.unflatten(2, (3, 2)) for x in (q, k, v))
    blocked = BETWEEN.unflatten(1, (3, 2))[:, None, :, None]
    weights = (q @ k.mT / 2).masked_fill(blocked, -1e10).softmax(-1)
    return (weights @ v).flatten(2, 3)


def heads_first(n_sequences, attend=None):
    is_padding = torch.zeros(n_sequences, T, dtype=torch.bool)
    is_padding[1, 4:] = True
    model = seeded(lambda: HeadsFirst(is_padding, attend))
    return Case(model, (vectors(n_sequences),), {"attention_mask": (~is_padding).long()})


def stacked_heads_first(q, k, v):
    """Heads in front of sequences along one axis, as torch.cat of the parts of each head gives them."""
    q, k, v = (torch.cat(x.unbind(1)) for x in (q, k, v))
    weights = (q @ k.mT / 2).masked_fill(RIGHT.repeat(N_HEADS, 1)[:, None], LOW).softmax(-1)
    return torch.stack((weights @ v).chunk(N_HEADS), 1)


def in_chunks(q, k, v, attend=sdpa):
    return torch.cat([attend(q[:, :, i : i + 2], k, v, causal(T)[i : i + 2]) for i in (0, 2, 4)], 2)


def written(q, k, v, allowed):
    return (q @ k.mT / 2).masked_fill(~allowed, LOW).softmax(-1) @ v


def per_item(*allowed):
    return torch.stack(allowed)[:, None]


IMAGE = torch.tensor([0, 1, 1, 1, 0, 0], dtype=torch.bool)
IMAGES = causal(T) | (IMAGE[:, None] & IMAGE)


def compressed(q, k, v):
    """Queries beside the means of blocks of two keys, of which they see those that ended before them."""
    k, v = (x.unflatten(2, (3, 2)).mean(3) for x in (k, v))
    return sdpa(q, k, v, PLACES[:, None] >= 2 * torch.arange(3) + 1)


def two_kinds_of_keys(q, k, v):
    """One softmax over the means of blocks and over the tokens, each with values of its own."""
    means, of_means = (x.unflatten(2, (3, 2)).mean(3) for x in (k, v))
    weights = torch.cat([q @ means.mT / 2, q @ k.mT / 2], -1).softmax(-1)
    return weights[..., :3] @ of_means + weights[..., 3:] @ v


def with_memory(q, k, v):
    """Slots of memory that every query sees, in front of the keys."""
    k, v = (torch.cat([x[:, :, :4].flip(2), x], 2) for x in (k, v))
    return sdpa(q, k, v, torch.cat([torch.ones(T, 4, dtype=torch.bool), causal(T)], -1))


def pooled(q, k, v):
    """One query beside all keys that are no padding."""
    return sdpa(q[:, :, :1], k, v, ~RIGHT[:, None, None]).expand(-1, -1, T, -1)


def exponentials(normalised):
    def attend(q, k, v):
        scores = (q @ k.mT / 2).masked_fill(~causal(T), LOW)
        return normalised(scores) @ v

    return attend


def by_sum(scores):
    raised = (scores - scores.amax(-1, keepdim=True)).exp()
    return raised / raised.sum(-1, keepdim=True)


def masked_by_product(scores):
    raised = scores.nan_to_num(neginf=0.0).exp() * causal(T)
    return raised / raised.sum(-1, keepdim=True).clamp(min=1e-9)


def by_logsumexp(scores):
    return (scores - scores.logsumexp(-1, keepdim=True)).exp()


def plus_one(scores):
    raised = scores.exp()
    return raised / (1 + raised.sum(-1, keepdim=True))


def talking(q, k, v):
    mix = torch.eye(N_HEADS) + 0.1
    scores = torch.einsum("bhij,hg->bgij", q @ k.mT / 2, mix)
    weights = scores.masked_fill(~causal(T), LOW).softmax(-1)
    return torch.einsum("bhij,hg->bgij", weights, mix) @ v


def gated(q, k, v):
    weights = (q @ k.mT / 2).masked_fill(~causal(T), LOW).softmax(-1)
    return (weights * torch.linspace(0.2, 0.9, N_HEADS)[:, None, None]) @ v


def renormalised(q, k, v):
    weights = (q @ k.mT / 2).softmax(-1) * causal(T)
    return (weights / weights.sum(-1, keepdim=True)) @ v


def cached(q, k, v):
    return sdpa(q[:, :, 4:], k, v, torch.ones(2, T, dtype=torch.bool).tril(4)).repeat(1, 1, 3, 1)


def one_step(q, k, v):
    return sdpa(q[:, :, 5:], k, v).expand(-1, -1, T, -1)


def static_cache(q, k, v):
    """Places of a cache that are not filled yet stand after the keys."""
    k, v = (F.pad(x, (0, 0, 0, 4)) for x in (k, v))
    return sdpa(q, k, v, torch.ones(T, T + 4, dtype=torch.bool).tril())


def one_head_each(q, k, v):
    """Sequences and heads along one axis, and no axis for heads."""
    return sdpa(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), is_causal=True).view(q.shape)


def joined_heads(repeated, join=lambda x: x.flatten(0, 1), part=lambda x, like: x.view(like.shape)):
    """Sequences and heads along one axis, and a mask that was repeated for them."""

    def attend(q, k, v):
        mask = repeated(RIGHT)[:, None]
        scores = torch.bmm(join(q), join(k).mT) / 2
        return part(torch.bmm(scores.masked_fill(mask, LOW).softmax(-1), join(v)), q)

    return attend


BY_CAT = {"join": lambda x: torch.cat(x.unbind()), "part": lambda x, like: torch.stack(x.chunk(len(like)))}
HEADS_FIRST = {
    "join": lambda x: x.transpose(0, 1).flatten(0, 1),
    "part": lambda x, like: x.view(like.transpose(0, 1).shape).transpose(0, 1),
}


class Beside(nn.Module):
    """Layers of attention with a causal mask, and then something else that takes a softmax."""

    def __init__(self, other):
        super().__init__()
        self.first, self.other = Attention(partial(sdpa, is_causal=True)), other
        self.key, self.scores = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, T)
        self.slots = nn.Parameter(torch.randn(T, WIDTH))

    def forward(self, x):
        return self.other(self, self.first(x))


def between_heads(model, x):
    heads = x.unflatten(-1, (N_HEADS, -1))
    return ((heads @ heads.mT / 2).softmax(-1) @ heads).flatten(2)


def from_slots(model, x):
    slots = model.key(model.slots)
    return (x @ slots.mT / 4).softmax(-1) @ slots


def experts(model, x):
    """As many experts as tokens."""
    weights = model.scores(x).softmax(-1)
    return torch.einsum("bte,btef->btf", weights, x[:, :, None] * model.slots)


def pooled_over_tokens(model, x):
    weights = model.scores(x)[..., 0].softmax(-1)
    return torch.bmm(weights[:, None], x)


def beside(other):
    return Case(seeded(lambda: Beside(other)), (vectors(),), told={"causal": True})


def mixed_layers(*masks, title="", **more):
    layers = [Attention(partial(sdpa, attn_mask=mask)) for mask in masks]
    return Case(seeded(lambda: Ignoring(*layers)), (vectors(),), more, {}, title)


def slopes(*shape):
    return (
        -(0.5 ** torch.arange(4.0))[:, None, None] * torch.ones(*shape) * DISTANCE[:, : shape[-1]][: shape[1]].abs()
    )


def biased(bias):
    def attend(q, k, v):
        return sdpa(q, k, v, bias.masked_fill(~causal(T), LOW))

    return attend


class Multi(nn.MultiheadAttention):
    """Self-attention with any options of a call."""

    def __init__(self, given, **options):
        super().__init__(WIDTH, N_HEADS, batch_first=True, **options)
        self.given = given

    def forward(self, x, **told):
        return super().forward(x, x, x, **self.given)[0]


def multi(given, title="", told=None, **options):
    return Case(seeded(lambda: Multi(given, **options)), (vectors(),), {}, told or {}, title)


def encoder(**options):
    layer = nn.TransformerEncoderLayer(WIDTH, N_HEADS, 32, **{"batch_first": True, **options})
    return seeded(lambda: nn.TransformerEncoder(layer, 1, enable_nested_tensor=False))


class Crossing(nn.Module):
    """A decoder that may forget the padding of its source."""

    def __init__(self, forgets):
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(WIDTH, N_HEADS, 32, batch_first=True), 1)
        self.forgets = forgets

    def forward(self, tgt, memory, memory_key_padding_mask=None):
        mask = None if self.forgets else memory_key_padding_mask
        return self.decoder(tgt, memory, tgt_mask=~causal(tgt.shape[1]), memory_key_padding_mask=mask)


def crossing(forgets, title=""):
    given = {"memory_key_padding_mask": RIGHT}
    return Case(seeded(lambda: Crossing(forgets)), (vectors(2, 4), vectors(seed=2)), given, {}, title)


def both_stacks(title="", **given):
    """A source and a target whose masks are given by ``nn.Transformer``'s own arguments."""
    model = seeded(lambda: nn.Transformer(WIDTH, N_HEADS, 1, 1, 32, batch_first=True))
    model.encoder.use_nested_tensor = False  # it warns
    return Case(model, (vectors(), vectors(2, 4)), given, {}, title)


CORRECT = {
    "source padding, in both stacks": both_stacks(
        tgt_mask=~causal(4), src_key_padding_mask=RIGHT, memory_key_padding_mask=RIGHT
    ),
    "causal by a flag": of(partial(sdpa, is_causal=True)),
    "causal by a flag, heads along one axis": of(one_head_each),
    "causal, added": masked(torch.zeros(T, T).masked_fill(~causal(T), LOW)),
    "causal, lowest number": masked(torch.zeros(T, T).masked_fill(~causal(T), torch.finfo(torch.float32).min)),
    "a causal window": masked((DISTANCE >= 0) & (DISTANCE < 3)),
    "filled with a tensor": of(written_out(lambda s: torch.where(causal(T), s, torch.full_like(s, -1e9)))),
    "strided": masked((DISTANCE >= 0) & (DISTANCE % 2 == 0)),
    "its own key as a last resort": of(written_out(last_resort)),
    "a window on both sides": masked(DISTANCE.abs() < 2),
    "blocks": masked((PLACES // 2)[:, None] == PLACES // 2),
    "padding on the right": of(partial(sdpa, attn_mask=~RIGHT[:, None, None]), **REAL["right"]),
    "two tokens beside padding": of(partial(sdpa, attn_mask=~FEW[:, None, None]), attention_mask=(~FEW).long()),
    "causal, padding on the left": of(partial(sdpa, attn_mask=causal(T) & ~LEFT[:, None, None]), **REAL["left"]),
    "causal, padding that nobody names": of(partial(sdpa, attn_mask=causal(T) & ~LEFT[:, None, None])),
    "a sink at the end": of(with_sink("end")),
    "a sink in front": of(with_sink("front")),
    "soft-clamped scores": of(written_out(lambda s: (5 * (s / 5).tanh()).masked_fill(~causal(T), LOW))),
    "masked, then soft-clamped": of(written_out(lambda s: 50 * (s.masked_fill(~causal(T), -1e30) / 50).tanh())),
    "heads last": of(heads_last),
    "heads first": heads_first(3),
    "heads first, as many as sequences": heads_first(N_HEADS),
    "heads first, by the function": heads_first(3, sdpa),
    "heads in front along one axis": of(stacked_heads_first, **REAL["right"]),
    "heads along one axis": of(joined_heads(lambda p: p.repeat_interleave(N_HEADS, 0)), **REAL["right"]),
    "heads first along one axis": of(joined_heads(lambda p: p.repeat(N_HEADS, 1), **HEADS_FIRST), **REAL["right"]),
    "queries in chunks": of(in_chunks),
    "queries in chunks, written out": of(partial(in_chunks, attend=written)),
    "a block of padding alone": of(in_blocks, attention_mask=(~BETWEEN).long()),
    "-100 between windows": of(filled((PLACES // 3)[:, None] != PLACES // 3, -100.0)),
    "-100 added": of(written_out(lambda s: s + -100.0 * ((PLACES // 3)[:, None] != PLACES // 3))),
    "prefixes of other lengths": masked(per_item(causal(T) | (PLACES < 3), causal(T) | (PLACES < 1))),
    "images inside text": masked(per_item(IMAGES, causal(T))),
    "compressed blocks": of(compressed),
    "two kinds of keys": of(two_kinds_of_keys),
    "slots of memory": of(with_memory),
    "one query for all": of(pooled),
    "one query, padding named": of(pooled, **REAL["right"]),
    "exponentials by their sum": of(exponentials(by_sum)),
    "exponentials times a mask": of(exponentials(masked_by_product)),
    "by logsumexp": of(exponentials(by_logsumexp)),
    "by log_softmax": of(exponentials(lambda s: F.log_softmax(s, -1).exp())),
    "softmax plus one": of(exponentials(plus_one)),
    "talking heads": of(talking),
    "gated heads": of(gated),
    "masked after, made to sum to one": of(renormalised),
    "a cache": of(cached),
    "one step after a cache": of(one_step),
    "a static cache": of(static_cache),
    "documents": masked(
        causal(T) & (DOCUMENTS[:, None] == DOCUMENTS), position_ids=FIRST_DOCUMENT
    ),
    "positions of left padding": of(
        partial(sdpa, attn_mask=causal(T) & ~LEFT[:, None, None]),
        position_ids=torch.tensor([[0, 1, 2, 3, 4, 5], [1, 1, 0, 1, 2, 3]]),
        **REAL["left"],
    ),
    "a bias for each head, (H, 1, Tk)": of(biased(slopes(N_HEADS, 1, T))),
    "a bias for each head, (H, Tq, Tk)": of(biased(slopes(N_HEADS, T, T))),
    "a bias for each head, as many as sequences": of(biased(slopes(N_HEADS, T, T)), x=vectors(N_HEADS)),
    "a key for all, appended": multi({"attn_mask": ~causal(T)}, add_bias_kv=True),
    "a zero for all, appended": multi({"attn_mask": ~causal(T), "need_weights": False}, add_zero_attn=True),
    "local and global layers": mixed_layers(causal(T), (DISTANCE >= 0) & (DISTANCE < 2), causal(T)),
    "layers in both directions": mixed_layers(causal(T), causal(T).T),
    "heads that see each other": beside(between_heads),
    "slots that all sequences share": beside(from_slots),
    "experts that are weighted": beside(experts),
    "tokens that are pooled": beside(pooled_over_tokens),
    "source padding": crossing(forgets=False),
    "dropped weights": Case(encoder(dropout=0.3).train(), (vectors(),), {"mask": ~causal(T)}),
}  # fmt: skip


def after(q, k, v):
    return ((q @ k.mT / 2).softmax(-1) * causal(T)) @ v


def over(axis):
    return lambda q, k, v: F.softmax((q @ k.mT / 2).masked_fill(~causal(T), LOW), dim=axis) @ v


def cut_across_tokens(q, k, v):
    """Heads that are viewed without a transpose."""
    return sdpa(*(x.transpose(1, 2).flatten(2).view(x.shape) for x in (q, k, v)), is_causal=True)


def joined_across_tokens(q, k, v):
    """Heads that are joined without a transpose."""
    joined = sdpa(q, k, v, is_causal=True).reshape(len(q), T, -1)
    return joined.unflatten(-1, (N_HEADS, -1)).transpose(1, 2)


def of_queries(q, k, v):
    """The values meet the axis of the queries."""
    weights = (torch.einsum("bhqd,bhkd->bhqk", q, k) / 2).masked_fill(~causal(T), LOW).softmax(-1)
    return torch.einsum("bhqk,bhqd->bhkd", weights, v)


def cached_by_flag(q, k, v):
    return sdpa(q[:, :, 4:], k, v, is_causal=True).repeat(1, 1, 3, 1)


def along_batch():
    ids = torch.arange(12).view(2, T)
    model = seeded(lambda: TokenModel(encoder(batch_first=False)))
    return Case(model, (ids,), {}, {}, "attends along the first axis")


SPOILED = causal(T).clone()
SPOILED[1, 4] = True
EMPTY = causal(T).clone()
EMPTY[2] = False
TWICE = torch.zeros(T, T).masked_fill(~causal(T), torch.finfo(torch.bfloat16).min).bfloat16()
DOUBLE = TWICE + torch.zeros(T).masked_fill(PLACES == 5, torch.finfo(torch.bfloat16).min).bfloat16()


def of_batch_as_heads(q, k, v):
    """(B, 1, T) beside (B, H, T, T), where there are as many heads as sequences."""
    is_padding = torch.zeros(N_HEADS, 1, T, dtype=torch.bool)
    is_padding[1, :, 4:] = True
    return sdpa(q, k, v, ~is_padding)


BUGS = {
    # rasbt/LLMs-from-scratch#1061: True where attention is blocked
    "inverted": masked(~causal(T), "The mask is inverted"),
    "inverted padding": Case(
        encoder(), (vectors(),), {"src_key_padding_mask": ~RIGHT}, {"padding": RIGHT}, "The mask is inverted"
    ),
    # wfondrie/depthcharge#38, huggingface/diffusers#14342
    "ones and zeros added": masked(causal(T).float(), "A mask of ones and zeros is added"),
    "a boolean mask added": of(written_out(lambda s: s + causal(T)), "A mask of ones and zeros is added"),
    "1 - mask added": of(
        written_out(lambda s: s + (1 - causal(T).float())), "A mask of ones and zeros is added"
    ),
    # TransformerLensOrg/TransformerLens#1760
    "left padding not masked": of(partial(sdpa, is_causal=True), "Padding can be seen", **REAL["left"]),
    "right padding not masked": of(sdpa, "Padding can be seen", **REAL["right"]),
    "own key hidden": masked(causal(T).tril(-1), "No query sees its own key"),
    "one key too many": masked(torch.ones(T, T, dtype=torch.bool).tril(1), "Every query sees one key too many"),
    # pytorch/pytorch#144858
    "a flag beside a cache": of(cached_by_flag, "Causal from the wrong corner"),
    "NaN by zero times -inf": masked((1 - causal(T).float()) * LOW, "The mask holds NaN"),
    "NaN by zero times -inf, in two layers": of(
        written_out(lambda s: s + (~causal(T)).float() * LOW), "The mask holds NaN", layers=2
    ),
    "queries of padding without a key": of(
        written_out(lambda s: s + torch.zeros_like(s).masked_fill(~causal(T) | LEFT[:, None, None], LOW)),
        "Weights are NaN",
        layers=2,
        **REAL["left"],
    ),
    # huggingface/pytorch-image-models#2236
    "masked after the softmax": of(after, "The weights are changed after the softmax"),
    "filled after the softmax": of(
        lambda q, k, v: (q @ k.mT / 2).softmax(-1).masked_fill(~causal(T), 0.0) @ v,
        "The weights are changed after the softmax",
    ),
    "scores times the mask": of(written_out(lambda s: s * causal(T)), "Blocked scores are 0 and not -inf"),
    "the lower triangle of scores": of(written_out(torch.tril), "Blocked scores are 0 and not -inf"),
    "filled with 0": of(filled(~causal(T), 0.0), "The fill lets blocked keys through"),
    "filled with 1e-9": of(filled(~causal(T), 1e-9), "The fill lets blocked keys through"),
    "filled with a tensor of 1e-9": of(
        written_out(lambda s: torch.where(causal(T), s, torch.full_like(s, 1e-9))),
        "The fill lets blocked keys through",
    ),
    "filled with -5": of(filled(~causal(T), -5.0), "The fill lets blocked keys through"),
    "heads cut across tokens": of(cut_across_tokens, "Heads are cut across tokens"),
    "heads joined across tokens": of(joined_across_tokens, "Heads are cut across tokens"),
    # zyy-2001/DisKT#6
    "softmax over the queries": of(over(-2), "The softmax goes over the queries"),
    "softmax over the heads": of(over(1), "The softmax goes over another axis"),
    "values meet the queries": of(of_queries, "The softmax goes over the queries"),
    # keras-team/keras#23038
    "one layer without its mask": mixed_layers(
        causal(T), torch.ones(T, T, dtype=torch.bool), title="The future can be seen"
    ),
    "no mask in a causal model": of(sdpa, "The future can be seen", told={"causal": True}),
    "rows of padding blocked": of(
        lambda q, k, v: sdpa(q, k, v, (~RIGHT)[:, None, :, None].expand(-1, -1, -1, T)),
        "Padding is blocked along the wrong axis",
        **REAL["right"],
    ),
    "transposed": masked(causal(T).T, "The mask is transposed", told={"causal": True}),
    "transposed, not told": masked(causal(T).T, "The mask is transposed"),
    "a flag that contradicts": multi(
        {"attn_mask": ~((DISTANCE >= 0) & (DISTANCE < 2)), "is_causal": True, "need_weights": False},
        "The flag contradicts the mask",
    ),
    "the batch along the wrong axis": along_batch(),
    "a row without a key": masked(EMPTY, "A query has no key left"),
    "a row without a key, written out": of(filled(~EMPTY), "Weights are NaN"),
    "the first query sees later keys alone": of(
        written_out(lambda s: s.masked_fill(~causal(T).tril(-1), -1e4).masked_fill(PLACES > 3, -1e9)),
        "No query sees its own key",
    ),
    "a row of one low number": of(filled(~EMPTY, -1e9), "A query has no key left"),
    "a mask repeated in another order": of(
        joined_heads(lambda p: p.repeat(N_HEADS, 1)), "Padding can be seen", **REAL["right"]
    ),
    "a mask repeated heads first where the order is unknown": of(
        joined_heads(lambda p: p.repeat(N_HEADS, 1), **BY_CAT), "Heads and sequences share an axis", **REAL["right"]
    ),
    "a mask repeated sequences first": of(
        joined_heads(lambda p: p.repeat_interleave(N_HEADS, 0), **HEADS_FIRST),
        "Padding can be seen",
        **REAL["right"],
    ),
    "a mask of sequences beside heads": of(
        of_batch_as_heads,
        "The padding of sequences stands at heads",
        x=vectors(N_HEADS),
        attention_mask=torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 6, [1] * 6]),
    ),
    "a mask of sequences beside heads, not told": of(
        of_batch_as_heads, "The padding of sequences stands at heads", x=vectors(N_HEADS)
    ),
    "documents that see each other": of(
        partial(sdpa, is_causal=True), "Documents see each other", position_ids=FIRST_DOCUMENT
    ),
    "two fills added": Case(
        stacked(partial(sdpa, attn_mask=DOUBLE), 1).bfloat16(),
        (vectors().bfloat16(),),
        title="Two fills were added",
    ),
    "one cell open": masked(SPOILED, "The future can be seen", told={"causal": True}),
    "one cell open, not told": masked(SPOILED, "causal but for 1 cell: query 1 sees key 4"),
    "a window off by one": masked(
        (DISTANCE >= 0) & (DISTANCE < 4), "The mask is not the expected one", told={"expected": "0 <= q - k < 3"}
    ),
    "documents cut one token late": masked(
        causal(T) & ((PLACES > 3)[:, None] == (PLACES > 3)),
        "The mask is not the expected one",
        told={"expected": "causal and same_document"},
        position_ids=FIRST_DOCUMENT,
    ),
    "a prefix too long": masked(
        causal(T) | (PLACES < 3),
        "The mask is not the expected one",
        told={"expected": lambda b, h, q, k: (k <= q) | (k < 2)},
    ),
    "an image that sees too much": masked(
        per_item(IMAGES | (PLACES < 5), causal(T)),
        "The mask is not the expected one",
        told={"expected": per_item(IMAGES, causal(T))},
    ),
    "source padding forgotten": crossing(forgets=True, title="Padding can be seen"),
    "source padding forgotten in the encoder": both_stacks(
        "Padding can be seen", tgt_mask=~causal(4), memory_key_padding_mask=RIGHT
    ),
    "the target's mask forgotten": both_stacks("The decoder sees later tokens"),
    "a causal mask in the encoder": both_stacks(
        "The encoder hides later tokens", tgt_mask=~causal(4), src_mask=~causal(T)
    ),
    "a causal mask in the cross-attention": both_stacks(
        "The cross-attention hides later tokens", tgt_mask=~causal(4), memory_mask=~causal(T)[:4]
    ),
    "a sink that sees the future": of(
        lambda q, k, v: torch.cat([q @ k.mT / 2, q.new_zeros(len(q), N_HEADS, T, 1)], -1).softmax(-1)[..., :-1] @ v,
        "The future can be seen",
        told={"causal": True},
    ),
}  # fmt: skip
