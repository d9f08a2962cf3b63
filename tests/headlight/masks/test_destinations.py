"""The meaning that each place gives to an array: PyTorch's own against PyTorch, the others as documented."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from headlight.masks.destinations import DESTINATIONS, passed_to

T = 5
CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()
ADDED = torch.zeros(T, T).masked_fill(~CAUSAL, -math.inf)
TYPES = {
    "bool": CAUSAL,
    "0 and -inf": ADDED,
    "0 and -1e4": torch.zeros(T, T).masked_fill(~CAUSAL, -1e4),
    "0 and 1": CAUSAL.float(),
    "inverted bool": ~CAUSAL,
}


def by_pytorch(place, array):
    """The weights of PyTorch's own function under this mask, (Tq, Tk)."""
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 1, T, 8, generator=generator)
    if place == "sdpa":
        return F.scaled_dot_product_attention(q, k, torch.eye(T)[None, None], attn_mask=array)[0, 0]
    if place == "added":
        return ((q @ k.mT) / math.sqrt(8) + array).softmax(-1)[0, 0]
    attention = nn.MultiheadAttention(8, 1, batch_first=True).eval()
    if place == "mha_key_padding":
        return attention(q[0], q[0], q[0], key_padding_mask=array)[1][0]
    return attention(q[0], q[0], q[0], attn_mask=array)[1][0]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("place", ["sdpa", "mha_attn_mask", "added"])
def test_pytorch_gives_weight_where_it_is_said_to(place, kind):
    array = TYPES[kind]
    passed = passed_to(array, place)
    with torch.no_grad():
        weights = by_pytorch(place, array)
    rows = passed.allowed.any(-1)
    assert torch.equal((weights > 0)[rows], passed.allowed[rows])


@pytest.mark.parametrize("row", [torch.tensor([[False, False, True, True, True]]), torch.zeros(1, T)])
def test_a_key_padding_mask_has_one_row_for_each_sequence(row):
    passed = passed_to(row, "mha_key_padding")
    assert passed.allowed.shape == (1, 1, T)
    with torch.no_grad():
        weights = by_pytorch("mha_key_padding", row)
    assert torch.equal(weights > 0, passed.allowed[0].expand(T, T))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
@pytest.mark.parametrize("place", ["sdpa", "mha_attn_mask", "mha_key_padding"])
def test_what_pytorch_refuses_is_said_to_be_refused(place, dtype):
    array = CAUSAL[:1].to(dtype) if place == "mha_key_padding" else CAUSAL.to(dtype)
    assert passed_to(array, place).allowed is None
    with pytest.raises((RuntimeError, AssertionError)):
        by_pytorch(place, array)


def test_every_place_reads_booleans():
    for name in DESTINATIONS:
        assert passed_to(CAUSAL, name).allowed.dtype is torch.bool


@pytest.mark.parametrize(
    ("place", "array", "allowed"),
    [
        ("hugging_face_2d", torch.tensor([[1, 1, 0], [1, 0, 0]]), [[[True, True, False]], [[True, False, False]]]),
        ("keras", CAUSAL.long(), CAUSAL.tolist()),
        ("jax", CAUSAL, CAUSAL.tolist()),
        ("flex", CAUSAL, CAUSAL.tolist()),
        ("hugging_face_4d", ADDED, CAUSAL.tolist()),
        ("transformer", ~CAUSAL, CAUSAL.tolist()),
    ],
)
def test_the_other_places_read_as_documented(place, array, allowed):
    assert passed_to(array, place).allowed.tolist() == allowed


HALF = torch.finfo(torch.float16).min
TWICE = (torch.zeros(3, 3, dtype=torch.float16) + HALF).masked_fill(torch.eye(3, dtype=torch.bool), -math.inf)
SAID = {
    "flags added": ("added", CAUSAL.float(), "error", "1 and 0 block nothing"),
    "flags for scaled dot product": ("sdpa", CAUSAL.float(), "error", "1 and 0 block nothing"),
    "booleans added": ("added", CAUSAL, "error", "adds 1 where the mask is True"),
    "whole numbers refused": ("sdpa", CAUSAL.long(), "error", "refuses int64"),
    "a small fill": ("added", torch.zeros(T, T).masked_fill(~CAUSAL, -1e4), "note", "less than 9,896 above"),
    "a small fill in halves": (
        "sdpa",
        torch.zeros(T, T, dtype=torch.float16).masked_fill(~CAUSAL, -1e4),
        "note",
        "exactly 0 in float16 only as long as its score is less than 9,983 above",
    ),
    "zero times infinity": ("added", (1 - CAUSAL.float()) * -math.inf, "error", "15 entries are NaN"),
    "two fills": ("sdpa", TWICE, "warning", "two fills seem to have been added"),
    "two fills and no key": (
        "hugging_face_4d",
        torch.tensor([[-math.inf, -math.inf], [0.0, HALF]], dtype=torch.float16),
        "warning",
        "two fills seem to have been added, and -65504 + -65504 is -inf in float16",
    ),
    "numbers for flags": ("keras", ADDED, "error", "every number but 0 counts as 1"),
    "a bias": ("sdpa", torch.arange(T * T).float().view(T, T) / 9, "note", "which is a bias and blocks nothing"),
    "one number everywhere": ("sdpa", torch.ones(T, T), "note", "The number 1 is added to scores that stay open"),
    "a small number": ("added", -1e-9 * ~CAUSAL, "note", "Numbers from -1e-09 to 0 are added"),
    "too small a fill": ("added", -100.0 * ~CAUSAL, "note", "only as long as its score is more than 4 below"),
    "numbers in a mask_mod": ("flex", CAUSAL.float(), "error", "mask_mod has to return booleans"),
}


@pytest.mark.parametrize(("place", "array", "severity", "text"), SAID.values(), ids=SAID)
def test_what_the_numbers_mean_is_said(place, array, severity, text):
    remarks = passed_to(array, place).remarks
    assert [remark.severity for remark in remarks if text in remark.text] == [severity], remarks


@pytest.mark.parametrize(("dtype", "fill"), [(torch.float32, -1e4), (torch.float16, -1e4), (torch.float32, -200.0)])
def test_the_margin_of_a_fill_is_where_a_weight_appears(dtype, fill):
    text = passed_to(torch.tensor([[0.0, fill]], dtype=dtype), "added").remarks[0].text
    margin = float(text.partition("less than ")[2].split()[0].replace(",", ""))

    def weight(above):
        scores = torch.tensor([0.0, above], dtype=torch.float64) + torch.tensor([0.0, fill], dtype=torch.float64)
        return scores.softmax(-1).to(dtype)[1].item()

    assert weight(margin - 1) == 0 < weight(margin + 1)


def test_an_open_mask_says_nothing():
    assert passed_to(torch.zeros(T, T), "sdpa").remarks == ()


@pytest.mark.parametrize(("array", "place"), [(torch.zeros(0, 2), "sdpa"), (torch.tensor(1.0), "sdpa")])
def test_what_is_no_mask_is_refused(array, place):
    with pytest.raises(ValueError, match="one entry for each"):
        passed_to(array, place)


def test_an_unknown_place_is_refused():
    with pytest.raises(ValueError, match="must be one of"):
        passed_to(CAUSAL, "somewhere")


def output_without_key(place):
    """Return PyTorch's output for a row without a key: all its numbers but for a bias."""
    allowed = CAUSAL & (torch.arange(T) != 2)[:, None]
    x = torch.randn(1, T, 8, generator=torch.Generator().manual_seed(1))
    if place == "flex":
        block_mask = create_block_mask(lambda b, h, q, k: allowed[q, k], 1, 1, T, T, device="cpu")
        return flex_attention(x[None], x[None], x[None], block_mask=block_mask)[0, 0, 2]
    if place == "transformer":
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()  # the fast path takes no odd heads
        return layer(x, src_mask=~allowed)[0, 2]
    if place == "mha_key_padding":
        return by_pytorch(place, torch.ones(1, T, dtype=torch.bool))[2]
    arrays = {"sdpa": allowed, "mha_attn_mask": ~allowed}
    return by_pytorch(place, arrays.get(place, torch.zeros(T, T).masked_fill(~allowed, -math.inf)))[2]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("place", ["sdpa", "flex", "mha_attn_mask", "mha_key_padding", "transformer", "added"])
def test_what_a_row_without_a_key_comes_to_is_what_pytorch_makes_of_it(place):
    with torch.no_grad():
        output = output_without_key(place)
    said = DESTINATIONS[place].keyless
    assert bool(output.isnan().all()) == ("NaN" in said.text) == (said.severity == "error")
    assert bool((output == 0).all()) == ("zero" in said.text)
