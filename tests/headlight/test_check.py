"""A model is checked: each mask in words, and mask bugs of public threads named on small real modules."""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import headlight
from tests.headlight.small_models import N_HEADS, WIDTH, TokenModel, causal, seeded, stacked, vectors, written_out

sdpa = F.scaled_dot_product_attention
PADDED = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
IDS = torch.arange(12).view(2, 6)


def masked(allowed):
    """Layers under one mask, (Tq, Tk), True = may attend."""
    return stacked(partial(sdpa, attn_mask=allowed))


def encoder(**options):
    options = {"batch_first": True, **options}
    return seeded(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, N_HEADS, 32, **options), 1))


CAUSAL = stacked(partial(sdpa, is_causal=True))
DISTANCE = torch.arange(6)[:, None] - torch.arange(6)
DOCUMENTS = torch.tensor([0, 0, 1, 1, 1, 2])

WORDS = {
    "every query sees every key": masked(torch.ones(6, 6, dtype=torch.bool)),
    "causal": masked(causal(6)),
    "causal, window 2 (itself and 1 before)": masked((DISTANCE >= 0) & (DISTANCE < 2)),
    "a window on both sides: keys less than 2 away": masked(DISTANCE.abs() < 2),
    "a prefix of 3, then causal": masked(causal(6) | (torch.arange(6) < 3)),
    "causal between blocks of 2, open within one": masked((torch.arange(6) // 2)[:, None] >= torch.arange(6) // 2),
    "causal, within parts of 2, 3 and 1 tokens": masked(causal(6) & (DOCUMENTS[:, None] == DOCUMENTS)),
    "bidirectional, within parts of 2, 3 and 1 tokens": masked(DOCUMENTS[:, None] == DOCUMENTS),
    "bidirectional, keys 0 and 1 hidden from every query": masked(torch.arange(6)[None].expand(6, 6) > 1),
    "causal, keys 4 and 5 hidden from every query": masked(causal(6) & (torch.arange(6) < 4)),
    "keys where (q - k) % 2 == 0": masked(DISTANCE % 2 == 0),
}


def test_of_a_mask_one_key_too_wide_no_cache_is_spoken():
    said = str(headlight.check(masked(DISTANCE >= -1), vectors()))
    assert "6 queries, 6 keys  earlier keys, its own, and 1 key after it" in said


@pytest.mark.parametrize(("words", "model"), WORDS.items(), ids=WORDS)
def test_a_mask_is_said_in_words(words, model):
    report = headlight.check(model, vectors())
    assert [row.descriptions[0][1].words for row in report.rows] == [words] * 2
    assert not report.errors


def test_masks_that_differ_are_told_apart():
    heads = torch.stack([causal(6), causal(6), DISTANCE.abs() < 2, torch.ones(6, 6, dtype=torch.bool)])
    (row, _) = headlight.check(masked(heads), vectors(), causal=False).rows
    assert [(where, said.words) for where, said in row.descriptions] == [
        ("heads 0 and 1", "causal"),
        ("head 2", "a window on both sides: keys less than 2 away"),
        ("head 3", "every query sees every key"),
    ]


def test_the_table_names_masks_biases_shared_heads_and_caches():
    slopes = -(0.5 ** torch.arange(4.0))[:, None, None] * DISTANCE
    biased = stacked(partial(sdpa, attn_mask=slopes.masked_fill(~causal(6), -math.inf)))
    assert "a bias linear in the key's position, from -5 to 0" in str(headlight.check(biased, vectors()))
    relative = torch.randn(4, 11, generator=torch.Generator().manual_seed(0))[:, DISTANCE + 5]
    shifted = stacked(partial(sdpa, attn_mask=(slopes + 7).masked_fill(~causal(6), -math.inf)))
    assert "a bias linear in the key's position, from 2 to 7" in str(headlight.check(shifted, vectors()))
    assert "a bias by distance alone" in str(headlight.check(stacked(partial(sdpa, attn_mask=relative)), vectors()))
    shared = stacked(partial(sdpa, enable_gqa=True), key_heads=2)
    assert "4 heads share 2 key/value heads" in str(headlight.check(shared, vectors()))

    def cached(q, k, v):
        return sdpa(q[..., 4:, :], k, v, attn_mask=torch.ones(2, 6, dtype=torch.bool).tril(4)).repeat(1, 1, 3, 1)

    report = headlight.check(stacked(cached), vectors())
    assert "2 queries, 6 keys  causal, 4 keys before query 0" in str(report)
    assert not report.findings


def test_keys_hidden_in_one_sequence_alone_are_said_of_that_one():
    allowed = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    allowed[1, ..., 4:] = False
    (row, _) = headlight.check(stacked(partial(sdpa, attn_mask=allowed)), vectors()).rows
    assert [(where, said.words) for where, said in row.descriptions] == [
        ("item 0", "every query sees every key"),
        ("item 1", "bidirectional, keys 4 and 5 hidden from every query"),
    ]


def test_the_heads_of_one_sequence_are_heads_where_they_are_its_first_axis():
    def attend(q, k, v):
        of_heads = written_out()(*(each.flatten(0, 1) for each in (q, k, v)))
        return of_heads.unflatten(0, q.shape[:2])

    assert "4 heads" in str(headlight.check(stacked(attend), vectors(batch=1)))


def test_the_table_is_text_and_escaped_html():
    report = headlight.check(nn.ModuleDict({"<b>": masked(causal(6))})["<b>"], vectors())
    assert str(report).splitlines()[-1] == "2 attentions seen: no errors, no warnings."

    class Hostile(nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("<script>alert(1)</script>", masked(causal(6)))

        def forward(self, x):
            return next(self.children())(x)

    page = headlight.check(Hostile(), vectors())._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_an_error_of_the_model_is_told_and_not_raised():
    report = headlight.check(stacked(written_out(lambda scores: scores[..., :3])), vectors())
    assert report.notes[0].startswith("The model raised RuntimeError: ")
    assert len(report.rows) == 1
    nothing = headlight.check(nn.Linear(WIDTH + 1, 2), vectors(), padding=PADDED, expected="causal")
    assert [note.partition(":")[0] for note in nothing.notes] == ["The model raised RuntimeError"]
    assert str(headlight.check(nn.Linear(WIDTH, 2), vectors())).splitlines() == [
        "No attention was seen.",
        "In Linear no softmax was followed from products of queries and keys to values.",
    ]


class Positions(nn.Module):
    """A decoder that can leave the mask of its padding out, or of one layer."""

    def __init__(self, *masks):
        super().__init__()
        self.layers = nn.ModuleList(masked(mask)[0] for mask in masks)

    def forward(self, x, attention_mask=None):
        for layer in self.layers:
            x = layer(x)
        return x


def cached_step(q, k, v):
    return sdpa(q[..., 5:, :], k, v, is_causal=True).expand(-1, -1, 6, -1)


def added_rows(q, k, v):
    allowed = (~PADDED)[:, None, :, None]
    return sdpa(q, k, v, attn_mask=allowed.expand(-1, -1, -1, 6))


LOW = -math.inf
BUGS = {
    # rasbt/LLMs-from-scratch#1061: True where attention is blocked
    "The mask is inverted": (masked(causal(6).logical_not()), {}),
    # wfondrie/depthcharge#38, huggingface/diffusers#14342: ones and zeros where a mask is added
    "A mask of ones and zeros is added": (masked(causal(6).float()), {}),
    # TransformerLensOrg/TransformerLens#1760: left padding that the attention never hears of
    "Padding can be seen": (
        seeded(lambda: Positions(causal(6), causal(6))),
        {"attention_mask": torch.tensor([[1] * 6, [0, 0, 1, 1, 1, 1]])},
    ),
    # k < q in place of k <= q
    "No query sees its own key": (masked(causal(6).tril(-1)), {}),
    # triu(2) blocked: the token to predict is seen
    "Every query sees one key too many": (masked(torch.ones(6, 6, dtype=torch.bool).tril(1)), {}),
    # pytorch/pytorch#144858: is_causal with a key/value cache is aligned at the first key
    "Causal from the wrong corner": (stacked(cached_step), {}),
    # (1 - mask) * -inf, which is NaN where the mask is 1
    "The mask holds NaN": (masked((1 - causal(6).float()) * LOW), {}),
    # huggingface/pytorch-image-models#2236: masked after the softmax
    "The weights are changed after the softmax": (
        stacked(lambda q, k, v: ((q @ k.mT / 2).softmax(-1) * causal(6)) @ v),
        {},
    ),
    # scores multiplied by the mask
    "Blocked scores are 0 and not -inf": (stacked(written_out(lambda scores: scores * causal(6))), {}),
    # 1e-9 where -1e9 was meant
    "The fill lets blocked keys through": (
        stacked(written_out(lambda scores: scores.masked_fill(~causal(6), 1e-9))),
        {},
    ),
    # zyy-2001/DisKT#6: the softmax along another axis
    "The softmax goes over the queries": (
        stacked(lambda q, k, v: F.softmax((q @ k.mT / 2).masked_fill(~causal(6), LOW), dim=-2) @ v),
        {},
    ),
    # keras-team/keras#23038: one path through the layer drops the mask
    "The future can be seen": (
        seeded(lambda: Positions(causal(6), torch.ones(6, 6, dtype=torch.bool))),
        {},
    ),
    # the rows of padding blocked, and not its columns
    "Padding is blocked along the wrong axis": (stacked(added_rows), {"padding": PADDED}),
    # keys and queries swapped in an index
    "The mask is transposed": (masked(causal(6).T), {"causal": True}),
}


@pytest.mark.parametrize("title", BUGS)
def test_a_mask_bug_is_named(title):
    model, options = BUGS[title]
    report = headlight.check(model, vectors(), **options)
    assert title in {finding.title for _, finding in report.findings}
    assert title in str(report)
    assert all(finding.why and finding.mend for _, finding in report.findings)


def test_a_padding_mask_in_the_other_convention_is_named():
    report = headlight.check(encoder(), vectors(), src_key_padding_mask=~PADDED, padding=PADDED)
    assert [finding.title for _, finding in report.findings] == ["The mask is inverted"]
    right = headlight.check(encoder(), vectors(), src_key_padding_mask=PADDED)
    assert not right.findings
    assert "bidirectional, padding ignored on the right" in str(right)


def test_a_flag_that_contradicts_the_mask_is_named():
    class Hinted(nn.MultiheadAttention):
        def forward(self, x):
            window = ~((DISTANCE >= 0) & (DISTANCE < 2))
            return super().forward(x, x, x, attn_mask=window, is_causal=True, need_weights=False)[0]

    report = headlight.check(seeded(lambda: Hinted(WIDTH, N_HEADS, batch_first=True)), vectors())
    assert report.findings[0][1].title == "The flag contradicts the mask"
    assert report.rows[0].descriptions[0][1].words == "causal"


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_attention_along_the_batch_is_named():
    model = seeded(lambda: TokenModel(encoder(batch_first=False)))
    assert "attends along the first axis of the input, whose size is 2" in headlight.check(model, IDS).notes[0]
    assert not headlight.check(seeded(lambda: TokenModel(encoder())), IDS).notes


def test_a_row_without_a_key_is_said_as_the_function_treats_it():
    allowed = causal(6).clone()
    allowed[2] = False
    (_, finding), *_ = headlight.check(masked(allowed), vectors(), causal=True).findings
    assert finding.why == "No key is left for query 2, and this function gives it weights of zero: it gets nothing."
    report = headlight.check(stacked(written_out(lambda scores: scores.masked_fill(~allowed, LOW))), vectors())
    assert "Weights are NaN" in {finding.title for _, finding in report.findings}


def test_a_boolean_mask_that_a_model_adds_to_its_scores_blocks_nothing():
    report = headlight.check(stacked(written_out(lambda scores: scores + causal(6)), n_layers=1), vectors())
    assert report.rows[0].attention.allowed is None
    assert "0: A mask of ones and zeros is added" in report.errors[0]


class WithPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = CAUSAL

    def forward(self, x, position_ids=None):
        return self.body(x)


def test_positions_of_one_sequence_tell_its_documents_without_an_axis_for_sequences():
    positions = torch.tensor([0, 1, 2, 0, 1, 2])
    for given in (positions, positions[None]):
        (error, *_) = headlight.check(WithPositions(), vectors(1), position_ids=given).errors
        assert "2 documents lie side by side" in error


@pytest.mark.parametrize("padding", [PADDED[:, :5], PADDED[:1].expand(3, 6)])
def test_padding_that_fits_no_attention_is_not_taken_in_silence(padding):
    report = headlight.check(CAUSAL, vectors(), padding=padding)
    assert report.notes == (f"The padding was not taken: it is {tuple(padding.shape)}, which fits no attention.",)


def test_padding_may_be_any_array():
    for given in (PADDED.numpy(), PADDED.tolist()):
        assert headlight.check(encoder(), vectors(), padding=given).errors
    assert headlight.check(encoder(), vectors(1), padding=PADDED[1]).errors


def test_what_an_expected_mask_asks_for_and_nothing_says_is_told():
    report = headlight.check(CAUSAL, vectors(), expected={"*": "causal and same_document and not padding"})
    assert report.notes == (
        "The expected mask asks for documents, and no position_ids restart: all tokens counted as one.",
        "The expected mask asks for padding, and nothing says which tokens it is: none counted as padding.",
    )
    assert not headlight.check(CAUSAL, vectors(), padding=PADDED, expected="causal and not padding").notes
    (error, *_) = headlight.check(CAUSAL, vectors(), expected="token(k) != 3").errors
    assert "It asks which token stands where" in error
