"""Pasted masks: the cells are those that FlexAttention makes of them, and what is no mask here is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.attention.flex_attention import and_masks, create_mask, or_masks

from headlight.masks.language import MaskContext, MaskExpressionError, from_mask_mod, parse
from headlight.masks.language.spelling import LONGEST

T = 7
TOKENS = MaskContext((0,) * T, (0,) * T, (False,) * T, (False,) * T, (0,) * T, (0,) * T)
DOCUMENTS = torch.tensor([[0, 0, 0, 1, 1, 2, 2]])

BODIES = [
    "q_idx >= kv_idx",
    "(q_idx >= kv_idx) & (q_idx - kv_idx < 3)",
    "(kv_idx < 2) | (q_idx >= kv_idx)",
    "~(q_idx < kv_idx)",
    "(q_idx // 3 == kv_idx // 3) & ~(kv_idx == 1) | (kv_idx == 0)",
    "abs(q_idx - kv_idx) <= 2",
    "(q_idx - kv_idx).abs() <= 2",
    "torch.logical_and(q_idx >= kv_idx, torch.abs(q_idx - kv_idx) < 3)",
    "torch.where(q_idx < 3, kv_idx < 3, q_idx >= kv_idx)",
    "(q_idx >= kv_idx) ^ (kv_idx == 1)",
    "(q_idx.clamp(1, 4) - kv_idx).abs() <= 1",
    "torch.clamp(q_idx, max=3) >= kv_idx.clamp(min=2)",
    "torch.maximum(q_idx, kv_idx) - torch.minimum(q_idx, kv_idx) < 3",
]


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "return {}",
        "    return {}  # what it is",
        "lambda b, h, q_idx, kv_idx: {}",
        "def mask(b, h, q_idx, kv_idx): return {}",
    ],
)
@pytest.mark.parametrize("body", BODIES)
def test_the_cells_are_those_of_the_function(body, wrap):
    allowed = parse(from_mask_mod(wrap.format(body))).evaluate(TOKENS)
    mask_mod = eval(f"lambda q_idx, kv_idx: {body}", {"torch": torch})
    position = torch.arange(T)
    assert torch.equal(allowed, mask_mod(position[:, None], position).expand(T, T))


FUNCTIONS = {
    "captured": """WINDOW = 2

def mask(b, h, q_idx, kv_idx):
    # only the past
    causal = q_idx >= kv_idx  # itself too
    window = q_idx - kv_idx <= WINDOW
    return causal & window
""",
    "documents": """
def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx

def mask(b, h, q_idx, kv_idx):
    same_doc = document_id[b, q_idx] == document_id[b, kv_idx]
    return same_doc & causal(b, h, q_idx, kv_idx)
""",
    "a factory": """
def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx

def generate_window(size: int = 9, *, near=1):
    '''A window.'''
    def window(b, h, q_idx, kv_idx):
        return (q_idx - kv_idx <= size) & (q_idx - kv_idx >= near)
    return window

mask = or_masks(and_masks(causal, generate_window(3)), lambda b, h, q, k: k == 0)
""",
    "per head": """
def mask(batch, head, q, kv):
    local = q - kv < 2
    return torch.where(head < 1, local, torch.ones_like(kv) > 0) if False else (q >= kv) & ((head > 0) | local)
""",
    "changed on the way": """
def mask(_, __, q, k):
    side, other = q // 3, k // 3
    allowed = side == other
    allowed |= k == 0
    allowed &= ~(q == 1)
    return allowed
""",
}


@pytest.mark.parametrize("flat", [False, True], ids=["lines", "one line"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_whole_functions_mean_what_flex_attention_makes_of_them(name, flat):
    text = FUNCTIONS[name]
    if "torch.ones_like" in text:
        text = text.replace("torch.where(head < 1, local, torch.ones_like(kv) > 0) if False else ", "")
    names = {"and_masks": and_masks, "or_masks": or_masks, "document_id": DOCUMENTS}
    exec(text, names)
    expected = create_mask(names["mask"], 1, 2, T, T, device="cpu")[0]
    expression = parse(from_mask_mod(text.replace("\n", " ") if flat else text))
    segments = tuple(DOCUMENTS[0].tolist())
    context = replace(TOKENS, query_segments=segments, key_segments=segments)
    for head in range(2):
        assert torch.equal(expression.evaluate(replace(context, head=head)), expected[head])


def test_the_head_and_the_sequence_are_numbers():
    expression = parse(from_mask_mod("(h == 1) & (b == 2) & (q_idx >= kv_idx)"))
    assert expression.names == {"h", "b", "q", "k"}
    assert not expression.evaluate(TOKENS).any()
    assert torch.equal(expression.evaluate(replace(TOKENS, head=1, sequence=2)), torch.ones(T, T).tril().bool())


@pytest.mark.parametrize("text", ["k <= q and not is_pad(k)", "k <= q +", "x = 3", ""])
def test_what_has_nothing_of_flex_attention_stays(text):
    assert from_mask_mod(text) == text


@pytest.mark.parametrize(
    ("text", "part", "sentence"),
    [
        (
            "q_idx >= kv_idx & q_idx - kv_idx < 3",
            "q_idx >= kv_idx & q_idx - kv_idx < 3",
            "in brackets, as in (q_idx",
        ),
        ("q_idx >= kv_idx && kv_idx > 1", "&&", "write and"),
        ("k <= q & (", "(", "was never closed"),
        ("def f(b, h, q_idx, kv_idx)\n    return q_idx >= kv_idx", "\n", "expected ':'"),
        ("return q_idx >= kvidx", "kvidx", "did you mean kv_idx?"),
        ("q_idx - kv_idx <= WINDOW", "WINDOW", "as in WINDOW = 4"),
        ("q_idx < KV_LEN", "KV_LEN", "did you mean n_keys?"),
        ("W = 3\nreturn q_idx - kv_idx & W", "q_idx - kv_idx", "'q - k' is a number"),
        ("q_idx - kv_idx", "q_idx - kv_idx", "compare it"),
        ("kv_idx < lengths[b]", "lengths[b]", "write ~is_pad(kv_idx)"),
        ("padding_mask[b, kv_idx] & (q_idx >= kv_idx)", "padding_mask[b, kv_idx]", "is_pad(kv_idx) for padding"),
        ("bias[q_idx, kv_idx] & True", "bias[q_idx, kv_idx]", "has segment(kv_idx)"),
        ("(kv_idx < prefix[b]) | (q_idx >= kv_idx)", "prefix[b]", "replace it by its number"),
        ("q_idx - kv_idx < config.window", "config.window", "replace it by its number"),
        ("(q_idx / 4) == kv_idx", "q_idx / 4", "write //"),
        ("q_idx in [0, 1]", "q_idx in [0, 1]", "join comparisons by |"),
        ("other(b, h, q_idx, kv_idx) & True", "other(b, h, q_idx, kv_idx)", "paste the lines"),
        ("def f(b, h, q, k):\n  return f(b, h, q, k)", "f(b, h, q, k)", "paste the lines"),
        (
            "def f(b, h, q, k, window):\n  return q - k < window",
            None,
            "'window' has no value: give it one",
        ),
        ("or_masks(f, causal_mask)", "f", "'f' is not known"),
        ("(q_idx == 0) | causal_mask", "causal_mask", "paste the lines that define it too"),
        ("def f(x):\n  return x // 2\na, b = f(q_idx)\na == b", "f(q_idx)", "does not return that many"),
        ("lambda score, b, h, q, k: score", "lambda score, b, h, q, k: score", "a score_mod"),
        ("def f(b, h, q, k):\n  if q > k:\n    return True", "if q > k:\n    return True", "cannot branch"),
        ("größe & (q_idx >= kv_idx)", "größe", "as in größe = 4"),
        ("# größe\nreturn (q_idx >= kv)", "kv", "did you mean"),
        ("__import__('os').system('x') & q_idx", "'os'", "not known in a mask"),
    ],
)
def test_what_is_refused_and_where(text, part, sentence):
    with pytest.raises(MaskExpressionError) as caught:
        from_mask_mod(text)
    assert sentence in str(caught.value)
    assert text[caught.value.start : caught.value.end] == (text if part is None else part)


HOSTILE = [
    "~" * (LONGEST - 10) + "True",
    "".join(f"a{i + 1} = a{i} & a{i}\n" for i in range(30)).replace("a0", "(k < q)"),
    f"q_idx{'.clamp(0, 9)' * 99} < kv_idx",
    f"{'torch.maximum(q_idx, ' * 99}kv_idx{')' * 99} < kv_idx",
    "def f(q, k):\n  return g(q, k)\ndef g(q, k):\n  return f(q, k)",
    "\0 & q_idx",
    "\ud800 & q_idx",
    "q_idx & " * 900,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: f"{text[:8]!r} {len(text)}")
def test_hostile_text_is_refused_like_any_other(text):
    with pytest.raises(MaskExpressionError) as caught:
        parse(from_mask_mod(text))
    assert "\n" not in str(caught.value)


NATTEN = """
def generate_natten(canvas_w, canvas_h, kernel_w, kernel_h):
    def get_x_y(idx):
        return idx // canvas_w, idx % canvas_w

    def natten_mask_mod(b, h, q_idx, kv_idx):
        q_x, q_y = get_x_y(q_idx)
        kv_x, kv_y = get_x_y(kv_idx)
        kernel_x = q_x.clamp(kernel_w // 2, (canvas_w - 1) - kernel_w // 2)
        kernel_y = q_y.clamp(kernel_h // 2, (canvas_h - 1) - kernel_h // 2)
        hori_mask = (kernel_x - kv_x).abs() <= kernel_w // 2
        vert_mask = (kernel_y - kv_y).abs() <= kernel_h // 2
        return hori_mask & vert_mask

    natten_mask_mod.__name__ = f"natten_c{canvas_w}x{canvas_h}_k{kernel_w}x{kernel_h}"
    return natten_mask_mod


natten_mask = generate_natten(5, 5, 3, 3)
"""
"""Neighborhood attention of a picture of 5 by 5: a window of 3 by 3 that does not leave the picture."""


@pytest.mark.parametrize("text", [NATTEN, NATTEN.strip().replace("\n", " ")], ids=["lines", "a field of one line"])
def test_a_function_that_unpacks_clamps_and_returns_a_function_is_read(text):
    size = 25
    plain = (0,) * size
    context = MaskContext(plain, plain, (False,) * size, (False,) * size, plain, plain)
    names: dict[str, object] = {}
    exec(NATTEN, names)
    expected = create_mask(names["natten_mask"], 1, 1, size, size, device="cpu")[0, 0]
    assert torch.equal(parse(from_mask_mod(text)).evaluate(context), expected)


@pytest.mark.parametrize("call", ["3", "size=3", "3, near=0", "near=0, size=3"])
def test_a_factory_may_be_given_its_values_by_name(call):
    factory = """
def generate_window(size=9, *, near=0):
    def window(b, h, q_idx, kv_idx):
        return (q_idx - kv_idx < size) & (q_idx - kv_idx >= near)
    return window
"""
    read = from_mask_mod(f"{factory}\nmask = generate_window({call})")
    assert read == "q - k < 3 and q - k >= 0"


@pytest.mark.parametrize(
    "head", ["b, h, q_idx, kv_idx, window=3", "b, h, q_idx, kv_idx, *, window=3", "q, kv_idx, window=3"]
)
def test_a_default_stands_for_what_is_not_given(head):
    query = head.split(", ")[0 if head[0] == "q" else 2]
    text = f"def windowed({head}):\n    return {query} - kv_idx < window"
    assert from_mask_mod(text) == "q - k < 3"
