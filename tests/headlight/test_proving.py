"""No token sees a later one, and padding changes nothing: shown by derivatives that are exactly zero, or denied."""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import headlight
from tests.headlight.small_models import N_HEADS, WIDTH, TokenModel, causal, seeded, stacked, vectors, written_out

sdpa = F.scaled_dot_product_attention
IDS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])
LEFT = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
RIGHT = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])


def encoder(**options):
    layer = nn.TransformerEncoderLayer(WIDTH, N_HEADS, 32, **{"batch_first": True, **options})
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def decoder(*bodies):
    """Ids through causal attention and whatever else, to logits."""
    return seeded(lambda: TokenModel(nn.Sequential(*bodies)))


CAUSAL = stacked(partial(sdpa, is_causal=True))


def test_a_causal_encoder_passes_and_one_without_its_mask_does_not():
    model = seeded(lambda: TokenModel(encoder()))
    proof = headlight.assert_causal(model, IDS, mask=~causal(6))
    assert str(proof) == (
        "No row of the output depends on a later token: every derivative is exactly zero, measured at all places, "
        "and changed tokens change nothing."
    )
    with pytest.raises(AssertionError) as failed:
        headlight.assert_causal(model, IDS)
    assert str(failed.value) == (
        "row 0 of the output, sequence 0, depends on token 1, which comes later. The first stage that does is the "
        "attention of body.layers.0.self_attn, whose mask is: every query sees every key (The future can be seen)"
    )


def test_vectors_do_as_well_as_ids_with_the_tokens_on_either_axis():
    headlight.assert_causal(CAUSAL, vectors())
    model = seeded(lambda: encoder(batch_first=False))
    x = vectors().transpose(0, 1)
    headlight.assert_causal(model, x, mask=~causal(6), batch_first=False)
    with pytest.raises(AssertionError, match=r"attention of layers\.0\.self_attn"):
        headlight.assert_causal(model, x, batch_first=False)


class Convolution(nn.Module):
    def __init__(self, ahead):
        super().__init__()
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3)
        self.pads = (2 - ahead, ahead)

    def forward(self, x):
        return x + self.conv(F.pad(x.mT, self.pads)).mT


class BlockSummary(nn.Module):
    """Every token gets the mean of its block, that of later tokens too."""

    def forward(self, x):
        return x + x.unflatten(1, (-1, 2)).mean(2).repeat_interleave(2, 1)


class ExpertChoice(nn.Module):
    """An expert takes the three tokens that it scores highest of the whole text."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 1)

    def forward(self, x):
        chosen = self.gate(x).squeeze(-1).topk(3).indices
        return x + torch.zeros_like(x).scatter(1, chosen[..., None].expand(-1, -1, WIDTH), 1.0)


class CompressedKeys(nn.Module):
    """Queries see the mean of each block of keys that has begun, though it is not over."""

    def forward(self, x):
        blocks = x.unflatten(1, (-1, 2)).mean(2)
        begun = torch.arange(6)[:, None] // 2 >= torch.arange(3)
        return x + sdpa(x[:, None], blocks[:, None], blocks[:, None], attn_mask=begun)[:, 0]


def over_queries(q, k, v):
    return F.softmax((q @ k.mT / 2).masked_fill(~causal(6), -math.inf), dim=-2).nan_to_num() @ v


LEAKS = [
    # xi029/Qwen3-VL-MoeLORA#4: a convolution padded on both sides
    (Convolution(ahead=1), r"body\.1 \(Convolution\)"),
    # karpathy/nanochat#844: the mean of a block given to all of it
    (BlockSummary(), r"body\.1 \(BlockSummary\)"),
    # piotrpiekos/MoSA#3: the choice of the k largest knows the whole text, and no derivative shows it
    (seeded(ExpertChoice), r"body\.1 \(ExpertChoice\)"),
    # tilde-research/nsa-release#3: compressed keys hold tokens that the query has not reached
    (CompressedKeys(), r"the attention of body\.1"),
    # zyy-2001/DisKT#6: the softmax along the wrong axis
    (stacked(over_queries, n_layers=1), r"body\.1\.0 \(Attention\)"),
    # 1e-9 where -1e9 was meant
    (
        stacked(written_out(lambda scores: scores.masked_fill(~causal(6), 1e-9)), n_layers=1),
        r"body\.1\.0 \(Attention\)",
    ),
    # keras-team/keras#23038: a layer that drops its mask
    (stacked(sdpa, n_layers=1), r"the attention of body\.1\.0, whose mask is: every query sees every key"),
]


@pytest.mark.parametrize(("body", "where"), LEAKS)
def test_a_leak_is_named_by_the_first_stage_that_has_it(body, where):
    with pytest.raises(AssertionError, match=rf"comes later\. The first stage that does is {where}"):
        headlight.assert_causal(decoder(CAUSAL, body), IDS)


def test_a_convolution_that_looks_back_alone_passes():
    headlight.assert_causal(decoder(CAUSAL, Convolution(ahead=0)), IDS)


class Padded(nn.Module):
    """Causal attention over vectors with positions, which may know of padding in one way or another."""

    def __init__(self, *, masks, positions):
        super().__init__()
        self.masks, self.positions = masks, positions
        self.embedding = nn.Embedding(20, WIDTH)
        self.places = nn.Embedding(8, WIDTH)
        self.layers = nn.ModuleList(nn.MultiheadAttention(WIDTH, N_HEADS, batch_first=True) for _ in range(2))

    def forward(self, input_ids, attention_mask):
        counted = (attention_mask.cumsum(-1) - 1).clamp(min=0)
        places = counted if self.positions == "of tokens" else torch.arange(input_ids.shape[1])
        x = self.embedding(input_ids) + self.places(places)
        n = input_ids.shape[1]
        own = torch.eye(n, dtype=torch.bool)
        for layer in self.layers:
            blocked = ~causal(n) | (attention_mask == 0)[:, None] & ~own if self.masks else ~causal(n)
            blocked = blocked.repeat_interleave(N_HEADS, 0) if blocked.dim() == 3 else blocked
            x = x + layer(x, x, x, attn_mask=blocked, need_weights=False)[0]
        return x


@pytest.mark.parametrize("mask", [LEFT, RIGHT])
def test_padding_that_is_masked_changes_nothing_on_either_side(mask):
    model = seeded(lambda: Padded(masks=True, positions="of tokens"))
    proof = headlight.assert_padding_ignored(model, IDS, attention_mask=mask, alone=True)
    assert "and each sequence gives the same without it" in proof.sentence


def test_padding_that_is_seen_is_named():
    model = seeded(lambda: Padded(masks=False, positions="of tokens"))
    with pytest.raises(AssertionError) as failed:
        headlight.assert_padding_ignored(model, IDS, attention_mask=LEFT)
    assert str(failed.value) == (
        "row 2 of the output, sequence 0, depends on token 0, which is padding. The first stage that does is the "
        "attention of layers.0, whose mask is: causal (Padding can be seen)"
    )
    headlight.assert_padding_ignored(model, IDS, attention_mask=RIGHT)  # causal: nobody real sees what is behind


def test_positions_that_count_the_padding_are_found_by_running_each_sequence_alone():
    # TransformerLensOrg/TransformerLens#1760, ml-explore/mlx-lm#1906: left padding moves every position
    model = seeded(lambda: Padded(masks=True, positions="of places"))
    headlight.assert_padding_ignored(model, IDS, attention_mask=LEFT)
    with pytest.raises(
        AssertionError, match="row 2 of the output, sequence 0, is another one without the 2 tokens"
    ):
        headlight.assert_padding_ignored(model, IDS, attention_mask=LEFT, alone=True)


def test_what_cannot_be_judged_says_why():
    with pytest.raises(ValueError, match="there is no padding: give an attention_mask with zeros"):
        headlight.assert_padding_ignored(CAUSAL, vectors())
    with pytest.raises(ValueError, match="there are no tokens: give them first"):
        headlight.assert_causal(CAUSAL)
    with pytest.raises(ValueError, match="there is 1 token"):
        headlight.assert_causal(CAUSAL, vectors(n_tokens=1))
    with pytest.raises(ValueError, match="say by output= how to take it"):
        headlight.assert_causal(seeded(lambda: nn.Sequential(CAUSAL, nn.Flatten(0))), vectors())


def test_a_query_without_a_key_makes_the_derivative_nan_and_is_told():
    strictly = stacked(written_out(lambda scores: scores.masked_fill(~causal(6).tril(-1), -math.inf)))
    with pytest.raises(AssertionError, match="the derivative of the output is NaN, and so is what 0 comes to"):
        headlight.assert_causal(strictly, vectors())


def test_many_tokens_are_sampled_and_that_is_said():
    proof = headlight.assert_causal(stacked(partial(sdpa, is_causal=True), n_layers=1), vectors(1, 300))
    assert proof.is_sampled
    assert "measured at 64 of 299 places" in proof.sentence
    with pytest.raises(AssertionError, match="comes later"):
        headlight.assert_causal(stacked(sdpa, n_layers=1), vectors(1, 300))


def test_nothing_of_the_model_is_changed():
    model = seeded(lambda: TokenModel(encoder())).train()
    state = torch.get_rng_state()
    headlight.assert_causal(model, IDS, mask=~causal(6))
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
