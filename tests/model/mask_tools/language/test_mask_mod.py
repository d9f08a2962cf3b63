"""Bodies of mask_mod: the cells are those that Python itself makes of them, and what is no mask here is refused."""

from __future__ import annotations

import pytest
import torch

from model.mask_tools.language import MaskContext, MaskExpressionError, from_mask_mod, parse

T = 7
TOKENS = MaskContext((0,) * T, (0,) * T, (False,) * T, (False,) * T, (0,) * T, (0,) * T)

BODIES = [
    "q_idx >= kv_idx",
    "(q_idx >= kv_idx) & (q_idx - kv_idx < 3)",
    "(kv_idx < 2) | (q_idx >= kv_idx)",
    "~(q_idx < kv_idx)",
    "(q_idx // 3 == kv_idx // 3) & ~(kv_idx == 1) | (kv_idx == 0)",
    "abs(q_idx - kv_idx) <= 2",
]


@pytest.mark.parametrize("wrap", ["{}", "return {}", "lambda b, h, q_idx, kv_idx: {}", "{{}}"])
@pytest.mark.parametrize("body", BODIES)
def test_the_cells_are_those_of_the_function(body, wrap):
    text = wrap.format(body) if wrap != "{{}}" else f"def mask(b, h, q_idx, kv_idx): return {body}"
    allowed = parse(from_mask_mod(text)).evaluate(TOKENS)
    mask_mod = eval(f"lambda q_idx, kv_idx: {body}")
    position = torch.arange(T)
    assert torch.equal(allowed, mask_mod(position[:, None], position).expand(T, T))


@pytest.mark.parametrize("text", ["k <= q and not is_pad(k)", "k <= q +", "x = 3", "", "k <= q & ("])
def test_what_is_not_flex_attention_or_cannot_be_read_stays(text):
    assert from_mask_mod(text) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("(q_idx >= kv_idx) & (h == 0)", "'h', the head, is not known here"),
        ("(document_id[b, q_idx] == 0) & (q_idx >= kv_idx)", "the sequence of the batch"),
        ("q_idx >= kv_idx & q_idx - kv_idx < 3", "put each comparison in brackets"),
    ],
)
def test_what_means_something_else_is_refused(text, sentence):
    with pytest.raises(MaskExpressionError, match=sentence):
        from_mask_mod(text)
