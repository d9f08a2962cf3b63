"""No token sees a later one, and padding changes nothing: shown by derivatives that are exactly zero, or denied."""

import math
from collections import UserDict, defaultdict
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import headlight
from tests.headlight.mask_cases import crossing
from tests.headlight.small_models import (
    N_HEADS,
    WIDTH,
    OneSequence,
    TokenModel,
    causal,
    seeded,
    split,
    stacked,
    vectors,
    written_out,
)

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
        "and changed tokens change nothing beyond rounding."
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


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("n_sequences", [1, 2, 6])
def test_tokens_that_are_the_wrong_way_round_prove_nothing(batch_first, n_sequences):
    model, x = seeded(lambda: encoder(batch_first=not batch_first)), vectors(n_sequences)
    with pytest.raises(ValueError, match=rf"{n_sequences} long, .*6 long: pass batch_first={not batch_first}"):
        headlight.assert_causal(model, x if batch_first else x.transpose(0, 1), batch_first=batch_first)


class CountsTokens(nn.Module):
    def forward(self, x):
        return x + 0.1 * len(x)


def test_padding_is_ignored_also_where_tokens_come_first():
    model, x, is_padding = seeded(lambda: encoder(batch_first=False)), vectors().transpose(0, 1), RIGHT == 0
    headlight.assert_padding_ignored(model, x, src_key_padding_mask=is_padding, alone=True, batch_first=False)
    with pytest.raises(AssertionError, match="row 0 of the output, sequence 0, depends on token 4, which is pad"):
        headlight.assert_padding_ignored(model, x, padding=is_padding, batch_first=False)
    counting = nn.Sequential(CountsTokens(), nn.Linear(WIDTH, WIDTH))
    with pytest.raises(
        AssertionError, match="row 0 of the output, sequence 0, is another one without the 2 tokens"
    ):
        headlight.assert_padding_ignored(counting, x, padding=is_padding, alone=True, batch_first=False)


def test_a_leak_is_found_where_it_begins_also_in_a_model_that_turns_the_tokens_to_the_front():
    class Mix(nn.Module):
        def forward(self, x):
            return x + x.mean(0, keepdim=True)

    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = Mix()

        def forward(self, x):
            return self.mix(x.transpose(0, 1)).transpose(0, 1)

    with pytest.raises(AssertionError, match=r"The first stage that does is body\.mix \(Mix\)"):
        headlight.assert_causal(seeded(lambda: TokenModel(Turned())), IDS)


def test_one_sequence_needs_no_axis_for_it():
    looks_back = partial(sdpa, is_causal=True)
    good, bad = (
        seeded(lambda last=last: nn.Sequential(OneSequence(looks_back), nn.LayerNorm(WIDTH), OneSequence(last)))
        for last in (looks_back, sdpa)
    )
    for of_vectors, tokens in ((False, IDS[0]), (True, vectors()[0])):
        passes, fails = (part if of_vectors else seeded(partial(TokenModel, part)) for part in (good, bad))
        headlight.assert_causal(passes, tokens)
        with pytest.raises(
            AssertionError, match=rf"row 0 of the output depends on token 1.*{'' if of_vectors else 'body.'}2"
        ):
            headlight.assert_causal(fails, tokens)
    headlight.assert_causal(seeded(encoder), vectors()[0], mask=~causal(6))
    with pytest.raises(ValueError, match="cannot be told apart"):
        headlight.assert_causal(good, torch.randn(WIDTH, WIDTH))
    with pytest.raises(ValueError, match="there is 1 sequence"):
        headlight.assert_sequences_do_not_mix(good, vectors()[0])


def test_the_padding_of_one_sequence_is_cut_off():
    padding = torch.tensor([[False, False, False, False, True, True]])
    model = seeded(lambda: nn.Sequential(OneSequence(partial(sdpa, is_causal=True)), nn.LayerNorm(WIDTH)))
    headlight.assert_padding_ignored(model, vectors()[0], padding=padding, alone=True)
    model = seeded(lambda: nn.Sequential(OneSequence(sdpa), nn.LayerNorm(WIDTH)))
    with pytest.raises(AssertionError, match="depends on token 4, which is padding"):
        headlight.assert_padding_ignored(model, vectors()[0], padding=padding)


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


def test_a_leak_of_an_attention_that_is_the_whole_model_is_named_with_its_mask():
    class Written(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.out = nn.Embedding(50, 8), nn.Linear(8, 50)

        def forward(self, ids):
            x = self.embedding(ids)
            return self.out((x @ x.mT).softmax(-1) @ x)

    with pytest.raises(AssertionError, match="is the attention of the model, whose mask is: every query sees"):
        headlight.assert_causal(Written().eval(), IDS)


def test_a_leak_no_larger_than_rounding_is_told_as_such():
    def masked_after(q, k, v):  # the rows sum to 1 again: what the later keys took part in cancels
        weights = (q @ k.mT).softmax(-1) * causal(6)
        return weights / weights.sum(-1, keepdim=True) @ v

    said = r"which comes later, by a derivative of .*e-\d+ beside .*, which may be rounding alone\. The first stage"
    with pytest.raises(AssertionError, match=said):
        headlight.assert_causal(stacked(masked_after, n_layers=1), vectors())
    with pytest.raises(AssertionError, match=r"which comes later\. The first stage"):
        headlight.assert_causal(stacked(F.scaled_dot_product_attention, n_layers=1), vectors())


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


class WithInputs(nn.Module):
    """Vectors with positions, through scaled dot-product attention under a mask that is given as it is."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Embedding(8, WIDTH)

    def forward(self, x, mask=None, position_ids=None):
        x = x if position_ids is None else x + self.positions(position_ids)
        q = split(x)
        return sdpa(q, q, q, attn_mask=mask).transpose(1, 2).flatten(2)


IS_REAL = RIGHT != 0
WITH_CAUSAL = causal(6) & IS_REAL[:, None, None]


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (encoder, {"mask": ~causal(6), "src_key_padding_mask": ~IS_REAL}),
        (encoder, {"mask": (~WITH_CAUSAL).expand(2, N_HEADS, 6, 6).flatten(0, 1)}),
        (WithInputs, {"mask": IS_REAL[:, None, None]}),
        (WithInputs, {"mask": WITH_CAUSAL}),
        (WithInputs, {"mask": torch.zeros(2, 1, 6, 6).masked_fill(~WITH_CAUSAL, -math.inf)}),
        (WithInputs, {"mask": IS_REAL[:, None, None], "position_ids": torch.arange(6)}),
        (WithInputs, {"mask": IS_REAL[:, None, None], "position_ids": torch.arange(6)[None]}),
    ],
    ids=["(T, T)", "(B*H, T, T)", "(B, 1, 1, T)", "(B, 1, T, T)", "added", "positions (T,)", "positions (1, T)"],
)
def test_a_sequence_alone_has_its_part_of_every_mask_and_position(make, inputs):
    headlight.assert_padding_ignored(seeded(make), vectors(), padding=~IS_REAL, alone=True, **inputs)


def test_a_sequence_of_padding_alone_has_nothing_to_compare():
    is_padding = torch.tensor([[False] * 4 + [True] * 2, [True] * 6])
    headlight.assert_padding_ignored(seeded(encoder), vectors(), src_key_padding_mask=is_padding, alone=True)


def test_the_inputs_of_another_side_are_not_cut():
    class Beside(nn.Module):
        def forward(self, x, memory, memory_mask, encoder_hidden_states):
            q, k, other = split(x), split(memory), split(encoder_hidden_states)
            return (sdpa(q, k, k, attn_mask=memory_mask) + sdpa(q, other, other)).transpose(1, 2).flatten(2)

    x, inputs = vectors(), {"memory_mask": ~causal(6).T, "encoder_hidden_states": vectors(seed=2)}
    headlight.assert_padding_ignored(Beside(), x, torch.zeros_like(x), padding=~IS_REAL, alone=True, **inputs)


@pytest.mark.parametrize("fill", [-math.inf, -1e9])
def test_padding_may_be_said_by_what_is_added_to_scores(fill):
    class Added(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = encoder()

        def forward(self, x, attention_mask):
            return self.body(x, src_key_padding_mask=attention_mask)

    model, mask = seeded(Added), torch.zeros(2, 6).masked_fill(~IS_REAL, fill)
    headlight.assert_padding_ignored(model, vectors(), attention_mask=mask)
    assert not headlight.check(model, vectors(), attention_mask=mask).findings
    with pytest.raises(ValueError, match="there is no padding"):
        headlight.assert_padding_ignored(model, vectors(), attention_mask=torch.zeros(2, 6))


def test_the_padding_of_a_decoder_may_be_given():
    model = seeded(lambda: nn.Transformer(WIDTH, N_HEADS, 1, 1, 32, batch_first=True))
    with pytest.raises(
        AssertionError, match="row 0 of the output, sequence 0, depends on token 4, which is padding"
    ):
        headlight.assert_padding_ignored(model, vectors(), vectors(seed=2), of="tgt", padding=~IS_REAL)


def test_padding_of_one_sequence_may_have_no_axis_for_sequences():
    headlight.assert_padding_ignored(seeded(encoder), vectors()[0], src_key_padding_mask=~IS_REAL[0], alone=True)


def test_a_largest_number_that_no_derivative_follows_is_found_by_several_changes():
    class Largest(nn.Module):
        def forward(self, x):
            return x / x.detach().abs().amax()

    x = vectors() * torch.where(IS_REAL, 2.0, 0.01)[..., None]
    with pytest.raises(AssertionError, match="depends on token 5, which is padding"):
        headlight.assert_padding_ignored(Largest(), x, padding=~IS_REAL)


def test_what_cannot_be_judged_says_why():
    with pytest.raises(ValueError, match="there is no padding: give an attention_mask with zeros"):
        headlight.assert_padding_ignored(CAUSAL, vectors())
    with pytest.raises(ValueError, match="there are no tokens: give them first"):
        headlight.assert_causal(CAUSAL)
    with pytest.raises(ValueError, match="there is 1 token"):
        headlight.assert_causal(CAUSAL, vectors(n_tokens=1))
    with pytest.raises(ValueError, match="the tokens must be a tensor that is not empty"):
        headlight.assert_causal(CAUSAL, vectors()[:0])
    with pytest.raises(ValueError, match="one of: input"):
        headlight.assert_causal(CAUSAL, vectors(), of="tokens")
    with pytest.raises(ValueError, match=r"padding is \(1, 6\): it must be \(2, 6\), as the tokens are"):
        headlight.assert_padding_ignored(CAUSAL, vectors(), padding=~IS_REAL[0])
    for pick in (lambda output: output[:, :4], lambda output: output.argmax(-1), lambda _: 3):
        with pytest.raises(ValueError, match="what output= takes must be a tensor of real numbers with 6 rows"):
            headlight.assert_causal(CAUSAL, vectors(), output=pick)
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


class InPlace(nn.Module):
    """Ids whose vectors are scaled and moved where they lie."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, WIDTH)
        self.positions = nn.Parameter(torch.randn(6, WIDTH))
        self.body = CAUSAL

    def forward(self, ids):
        x = self.embedding(ids)
        x *= math.sqrt(WIDTH)
        x += self.positions
        return self.body(x)


def test_vectors_may_be_changed_where_they_lie():
    proof = headlight.assert_causal(seeded(InPlace), IDS)
    assert "every derivative is exactly zero" in str(proof)
    headlight.assert_causal(seeded(lambda: InPlace().body), vectors())

    class Changed(nn.Module):
        def forward(self, x):
            x += 1
            return CAUSAL(x)

    x = vectors()
    before = x.clone()
    assert "every derivative is exactly zero" in str(headlight.assert_causal(Changed(), x))
    assert torch.equal(x, before)


class Without(nn.Module):
    """A body that no derivative goes through."""

    def __init__(self, attend):
        super().__init__()
        self.body = stacked(attend)

    def forward(self, x):
        with torch.no_grad():
            return self.body(x)


def test_where_there_is_no_derivative_changed_tokens_decide_and_the_sentence_says_so():
    proof = headlight.assert_causal(Without(partial(sdpa, is_causal=True)), vectors())
    assert str(proof).endswith(
        "measured by changing tokens, at all places, as the output has no derivative by them."
    )
    with pytest.raises(
        AssertionError, match="row 0 of the output, sequence 0, depends on token 1, which comes later"
    ):
        headlight.assert_causal(Without(sdpa), vectors())


def test_a_model_that_asserts_that_it_is_not_trained_is_measured_by_changes():
    class Refusing(nn.Module):
        def forward(self, x):
            assert not torch.is_grad_enabled()
            return CAUSAL(x)

    assert "changing tokens" in str(headlight.assert_causal(Refusing(), vectors()))

    class Broken(nn.Module):
        def forward(self, x):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        headlight.assert_causal(Broken(), vectors())


class TwoSides(nn.Module):
    """An encoder that sees all and a decoder that is causal, with embeddings of one table or of two."""

    def __init__(self, shared=True):
        super().__init__()
        self.source = nn.Embedding(20, WIDTH)
        self.target = self.source if shared else nn.Embedding(20, WIDTH)
        self.encoder = stacked(sdpa)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(WIDTH, N_HEADS, 32, batch_first=True), 1)

    def forward(self, input_ids, decoder_input_ids, attention_mask=None):
        padding = None if attention_mask is None else attention_mask == 0
        memory = self.encoder(self.source(input_ids.clone()))
        length = decoder_input_ids.shape[1]
        target = self.target(decoder_input_ids.view(-1, length))
        return self.decoder(target, memory, ~causal(length), memory_key_padding_mask=padding)


@pytest.mark.parametrize("shared", [True, False])
def test_ids_are_told_by_their_place_and_not_by_what_they_are(shared):
    model = seeded(lambda: TwoSides(shared))
    for source in (IDS, IDS.clone(), IDS.flip(1)):
        proof = headlight.assert_causal(model, of="decoder_input_ids", input_ids=source, decoder_input_ids=IDS)
        assert "every derivative is exactly zero" in str(proof)
    with pytest.raises(AssertionError, match="comes later"):
        headlight.assert_causal(model, of="input_ids", input_ids=IDS, decoder_input_ids=IDS)


def test_padding_of_a_source_is_judged_by_all_of_what_a_decoder_gives():
    class Alone(TwoSides):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Identity()

    for target in (IDS, IDS[:, :4]):
        headlight.assert_padding_ignored(
            seeded(Alone), input_ids=IDS, decoder_input_ids=target, attention_mask=RIGHT, alone=True
        )
        with pytest.raises(AssertionError, match=r"the output, sequence 0, depends on token 4, which is padding"):
            headlight.assert_padding_ignored(
                seeded(TwoSides), input_ids=IDS, decoder_input_ids=target, attention_mask=RIGHT
            )


class Crossed(nn.Module):
    def __init__(self, masks):
        super().__init__()
        self.masks = masks

    def forward(self, inputs_embeds, encoder_hidden_states, encoder_attention_mask):
        mask = encoder_attention_mask.bool()[:, None] if self.masks else None
        return sdpa(inputs_embeds, encoder_hidden_states, encoder_hidden_states, mask)


def test_the_mask_of_what_a_cross_attention_reads_is_its_padding():
    given = {
        "inputs_embeds": vectors(2, 3),
        "encoder_hidden_states": vectors(seed=2),
        "encoder_attention_mask": RIGHT,
    }
    headlight.assert_padding_ignored(Crossed(masks=True), of="encoder_hidden_states", **given)
    with pytest.raises(AssertionError, match="depends on token 4, which is padding"):
        headlight.assert_padding_ignored(Crossed(masks=False), of="encoder_hidden_states", **given)


def test_a_leak_after_the_last_module_with_such_rows_names_the_attention_in_error():
    case = crossing(forgets=True)
    given = {"tgt": case.args[0], "memory": case.args[1], **case.kwargs}
    with pytest.raises(AssertionError, match=r"after them, .*; decoder\.layers\.0\.multihead_attn: Padding can"):
        headlight.assert_padding_ignored(case.model, of="memory", **given)


class Pooled(nn.Module):
    """A classifier over the mean of all rows, or of those that are no padding."""

    def __init__(self, ignores):
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, WIDTH), nn.Linear(WIDTH, 3)
        self.ignores = ignores

    def forward(self, input_ids, attention_mask):
        x = self.embedding(input_ids)
        counts = attention_mask[..., None] if self.ignores else torch.ones_like(attention_mask)[..., None]
        return {"loss": torch.tensor(0.0), "logits": self.head((x * counts).sum(1) / counts.sum(1))}


def test_any_output_is_taken_for_padding_and_for_sequences():
    headlight.assert_padding_ignored(seeded(lambda: Pooled(True)), IDS, attention_mask=LEFT, alone=True)
    headlight.assert_sequences_do_not_mix(seeded(lambda: Pooled(True)), IDS, attention_mask=LEFT)
    with pytest.raises(AssertionError, match=r"^the output, sequence 0, depends on token 0, which is padding"):
        headlight.assert_padding_ignored(seeded(lambda: Pooled(False)), IDS, attention_mask=LEFT)


class Summed(nn.Module):
    """A sum along an axis after causal attention."""

    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, x):
        return x.cumsum(self.axis)


def test_sequences_of_a_batch_that_mix_are_told_apart_by_no_other_claim():
    mixing = decoder(CAUSAL, Summed(0))
    headlight.assert_causal(mixing, IDS)
    assert not headlight.check(mixing, IDS).findings
    with pytest.raises(AssertionError) as failed:
        headlight.assert_sequences_do_not_mix(mixing, IDS)
    assert str(failed.value) == (
        "row 0 of the output, sequence 1, depends on sequence 0. The first stage that does is body.1 (Summed)"
    )
    proof = headlight.assert_sequences_do_not_mix(decoder(CAUSAL, Summed(1)), IDS)
    assert str(proof) == (
        "No output of a sequence depends on another sequence of the batch: every derivative is exactly zero, "
        "measured at all sequences, and changed tokens change nothing beyond rounding."
    )
    with pytest.raises(AssertionError, match="depends on sequence"):
        headlight.assert_sequences_do_not_mix(Without(lambda q, k, v: v.cumsum(0)), vectors())
    with pytest.raises(AssertionError, match=r"does is layers\.0\.self_attn"):
        headlight.assert_sequences_do_not_mix(seeded(lambda: encoder(batch_first=False)), vectors())
    headlight.assert_sequences_do_not_mix(
        seeded(lambda: encoder(batch_first=False)), vectors().transpose(0, 1), batch_first=False
    )
    with pytest.raises(ValueError, match="there is 1 sequence"):
        headlight.assert_sequences_do_not_mix(mixing, IDS[:1])


class Compares(nn.Module):
    """Adds 1 everywhere where each of some tokens is another one than it was: without a derivative."""

    def __init__(self, given, *places):
        super().__init__()
        self.given, self.places = given, places

    def forward(self, x):
        return x + float(all(not torch.equal(x[place], self.given[place]) for place in self.places))


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ([(0, 4)], "row 0 of the output, sequence 0, depends on token 4, which comes later"),
        ([(1, 3)], "row 0 of the output, sequence 0, depends on token 3 of sequence 1, which comes later"),
        ([(0, 4), (1, 5)], "row 0 of the output, sequence 0, depends on later tokens together"),
    ],
)
def test_what_no_derivative_shows_is_named_by_the_token_that_changes_it(places, said):
    x = vectors()
    with pytest.raises(AssertionError, match=f"^{said}"):
        headlight.assert_causal(nn.Sequential(Compares(x, *places), CAUSAL), x)


def test_padding_of_another_sequence_is_named_with_it():
    padding = torch.zeros(IDS.shape, dtype=torch.bool)
    padding[0, -1] = True
    with pytest.raises(AssertionError, match=r"sequence 1, depends on token 5 of sequence 0, which is padding"):
        headlight.assert_padding_ignored(decoder(CAUSAL, Summed(0)), IDS, padding=padding)


def test_of_many_sequences_some_are_measured_and_that_is_said():
    proof = headlight.assert_sequences_do_not_mix(stacked(sdpa, n_layers=1), vectors(10))
    assert proof.is_sampled
    assert "measured at 8 of 10 sequences" in proof.sentence


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_what_no_derivative_shows_is_seen_by_changed_tokens_in_every_number_type(dtype):
    class Ahead(nn.Module):
        def forward(self, x):
            return x + torch.roll(x, -1, 1).detach() / 4

    looks_back = partial(sdpa, is_causal=True)
    with pytest.raises(AssertionError, match="depends on token 1"):
        headlight.assert_causal(decoder(stacked(looks_back), Ahead()).to(dtype), IDS)
    headlight.assert_causal(decoder(stacked(looks_back)).to(dtype), IDS)


@dataclass
class Answer:
    loss: torch.Tensor
    rows: torch.Tensor


class OfBatch(nn.Module):
    """A model that takes one mapping and answers with a dataclass."""

    def __init__(self, masks):
        super().__init__()
        self.body, self.masks = TokenModel(encoder()), masks

    def forward(self, batch):
        ids, mask = batch["input_ids"], batch["attention_mask"]
        hidden = ~causal(ids.shape[1]) if self.masks else None
        return Answer(torch.tensor(0.0), self.body(ids, mask=hidden, src_key_padding_mask=mask == 0))


@pytest.mark.parametrize("kind", [dict, UserDict, MappingProxyType, partial(defaultdict, list)])
def test_a_model_may_take_all_of_its_inputs_in_one_mapping(kind):
    batch = kind({"input_ids": IDS, "attention_mask": RIGHT})
    model = seeded(lambda: OfBatch(True))
    headlight.assert_causal(model, batch)
    headlight.assert_padding_ignored(model, batch, alone=True)
    headlight.assert_sequences_do_not_mix(model, batch)
    assert batch["input_ids"] is IDS
    seeing = seeded(lambda: OfBatch(False))
    with pytest.raises(
        AssertionError, match=r"attention of body\.body\.layers\.0\.self_attn, whose mask is: bidirect"
    ):
        headlight.assert_causal(seeing, batch)
    assert "bidirectional, padding ignored on the right" in str(headlight.check(seeing, batch))


@pytest.mark.parametrize("name", ["decoder_ids", "decoder_tokens", "dec_input", "tgt", "trg"])
def test_the_tokens_of_a_decoder_are_told_by_their_name(name):
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = TokenModel(encoder())

        def forward(self, encoder_ids, **target):
            return self.body(target[name], mask=~causal(6)) + encoder_ids.sum()

    headlight.assert_causal(seeded(Named), IDS, **{name: IDS})
