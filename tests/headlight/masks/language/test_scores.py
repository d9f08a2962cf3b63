"""Changes of scores against the papers' formulas by loops, and their code in FlexAttention itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from headlight.masks.language import READY_SCORES, MaskExpressionError, parse_score
from headlight.masks.language.score_code import by_hand, flex_score_mod, numpy_lines
from headlight.masks.language.scores import alibi_slopes, bias_table, t5_bucket
from model import MultiHeadAttention, masks, record, scaled_dot_product_attention
from model.analysis.references import sdpa_difference

H, T = 3, 9
CODES = [ready.text for ready in READY_SCORES] + [
    "score if q - k < 4 and not h > 0 else score / 2",
    "score ** 2 - 2 ** -abs(q - k)",
    "score + (q - k) % 3 - q // 2 + sqrt(2) * min(q, 4) - n_keys / n_heads",
    "sigmoid(score) * exp(-abs(q - k)) + bias(h, abs(q - k) * 9)",
    "score if not n_heads > 3 else score / 2",
    "score + sqrt(abs(-3)) * abs(1 - 3)",
    "score - 1 if 0 <= q - k < 3 or h == 2 else score",
    "-abs(q - k)",
    "1 if score > 0 else 0",
    "bucket(score)",
    "5",
]


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("n_heads", [1, 2, 8, 16])
def test_the_slopes_of_alibi_are_the_geometric_sequence_of_its_section_3(n_heads):
    ratio = 2 ** (-8 / n_heads)
    assert alibi_slopes(n_heads) == pytest.approx([ratio ** (head + 1) for head in range(n_heads)])


def test_other_numbers_of_heads_take_every_other_slope_of_the_next_power():
    assert alibi_slopes(12) == pytest.approx([*alibi_slopes(8), *alibi_slopes(16)[::2][:4]])


def bucket_by_hand(relative: int, *, causal: bool) -> int:
    """T5, section 2.1, for one distance."""
    first = 0 if causal or relative <= 0 else 16
    distance = max(-relative, 0) if causal else abs(relative)
    n_buckets = 32 if causal else 16
    if distance < n_buckets // 2:
        return first + distance
    growth = math.log(distance / (n_buckets // 2)) / math.log(128 / (n_buckets // 2))
    return first + min(n_buckets // 2 + int(growth * (n_buckets // 2) + 1e-9), n_buckets - 1)


@pytest.mark.parametrize("causal", [False, True])
def test_the_buckets_are_those_of_t5(causal):
    relative = torch.arange(-300, 301)
    assert t5_bucket(relative, is_causal=causal).tolist() == [
        bucket_by_hand(int(r), causal=causal) for r in relative
    ]


def from_paper(name: str, score: float, head: int, query: int, key: int) -> float:
    slope, bias = alibi_slopes(H)[head], bias_table(H)[head]
    return {
        "alibi": lambda: score - slope * (query - key),
        "alibi_symmetric": lambda: score - slope * abs(query - key),
        "soft_cap": lambda: 30 * math.tanh(score / 30),
        "soft_cap_2": lambda: 2 * math.tanh(score / 2),
        "t5": lambda: score + float(bias[bucket_by_hand(key - query, causal=False)]),
        "t5_causal": lambda: score + float(bias[bucket_by_hand(key - query, causal=True)]),
        "clipped": lambda: score + float(bias[4 + max(-4, min(4, key - query))]),
        "log_distance": lambda: score - math.log(1 + abs(query - key)),
        "near": lambda: score + 2 * (abs(query - key) < 3),
    }[name]()


@pytest.mark.parametrize("ready", READY_SCORES, ids=lambda ready: ready.name)
def test_each_ready_one_is_what_its_note_says(ready):
    scores = drawn(2, H, T, T)
    expected = [
        [
            [[from_paper(ready.name, float(scores[b, h, q, k]), h, q, k) for k in range(T)] for q in range(T)]
            for h in range(H)
        ]
        for b in range(2)
    ]
    torch.testing.assert_close(parse_score(ready.text)(scores), torch.tensor(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("text", CODES)
def test_the_code_is_a_score_mod_of_flex_attention(text):
    q, k, v = (drawn(3, H, T, 16)[i : i + 1] for i in range(3))
    change, names = parse_score(text), {}
    exec(flex_score_mod(change, H, T), names)
    expected = flex_attention(q, k, v, score_mod=names["score_mod"])
    context, _ = scaled_dot_product_attention(q, k, v, score_mod=change)
    torch.testing.assert_close(context, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("text", CODES)
def test_the_code_by_hand_is_the_same_attention_and_by_numpy_the_same_scores(text):
    q, k, v = (drawn(3, H, T, 16)[i : i + 1] for i in range(3))
    change, mask = parse_score(text), masks.causal(T, T)
    names = {}
    exec(by_hand(change, H, T, 4.0), names)
    expected, _ = scaled_dot_product_attention(q, k, v, mask, score_mod=change)
    torch.testing.assert_close(names["attention"](q, k, v, mask), expected, rtol=1e-4, atol=1e-5)
    *before, value = numpy_lines(change, H, T)
    names = {"np": np, "score": (q @ k.mT / 4).numpy(), "bias": bias_table(H).numpy()}
    exec("\n".join([*before, f"changed = {value}"]), names)
    np.testing.assert_allclose(names["changed"], change(q @ k.mT / 4), rtol=1e-4, atol=1e-5)


def test_beside_a_cache_the_last_query_stands_beside_the_last_key():
    scores = drawn(1, H, T, T)
    for text in CODES:
        change = parse_score(text)
        torch.testing.assert_close(change(scores[:, :, -2:]), change(scores)[:, :, -2:])


def test_the_model_changes_scores_between_scaling_and_masking_and_records_it():
    attention = MultiHeadAttention(d_model=12, n_heads=H)
    attention.score_mod = parse_score("score - slope(h) * (q - k)")
    x, mask = drawn(1, T, 12), masks.causal(T, T)
    with torch.no_grad(), record(attention) as trace:
        attention(x, x, x, mask)
    changed = attention.score_mod(trace["scaled_scores"].value)
    assert torch.equal(trace["modified_scores"].value, changed)
    assert torch.equal(trace["masked_scores"].value, changed.masked_fill(~mask, -math.inf))
    assert sdpa_difference(trace, "") < 1e-5
    assert not torch.allclose(trace["scaled_scores"].value, changed)


@pytest.mark.parametrize(
    ("pasted", "text"),
    [
        (
            "def alibi(score, b, h, q_idx, kv_idx):\n    # Press et al.\n"
            "    bias = alibi_bias[h] * (kv_idx - q_idx)\n    return score + bias",
            "score + slope(h) * (k - q)",
        ),
        ("CAP = 20\ndef f(score, b, h, q, k):\n    return CAP * torch.tanh(score / CAP)", "20 * tanh(score / 20)"),
        ("lambda score, b, h, q, k: score + (q - k)", "score + (q - k)"),
        ("torch.where(q_idx >= kv_idx, score, score / 2)", "score if q >= k else score / 2"),
    ],
)
def test_a_score_mod_can_be_pasted(pasted, text):
    assert parse_score(pasted).text == text


@pytest.mark.parametrize(
    ("text", "part", "sentence"),
    [
        ("score > 3", "score > 3", "is a condition"),
        ("not score", "score", "compare it"),
        ("scor + 1", "scor", "did you mean score?"),
        ("sloep(h) * score", "sloep(h)", "did you mean slope?"),
        ("slope(q) * score", "slope(q)", "write h first"),
        ("score / (q - k)", "score / (q - k)", "infinite or NaN"),
        ("torch.where(q >= k, score, -float('inf'))", "'inf'", "write it as the mask"),
        ("lambda b, h, q, k: q >= k", "lambda b, h, q, k: q >= k", "a mask_mod"),
        ("score + document[q]", "document[q]", "tokens are for masks"),
        ("score + 1e30", "1e+30", "too large"),
        ("score +", "", "Python cannot read this"),
        ("  ", "", "empty"),
        ("__import__('os')", "'os'", "not known"),
        ("score.__class__", "score.__class__", "not defined"),
        ("-" * 900 + "score", None, "nested"),
    ],
)
def test_what_is_refused_and_where(text, part, sentence):
    with pytest.raises(MaskExpressionError, match=sentence) as caught:
        parse_score(text)
    found = text[caught.value.start : caught.value.end]
    assert part is None or found == part or part == "1e+30"
