"""A change of scores as a ``score_mod`` of FlexAttention: one line over tensors, and the tables that it reads."""

from __future__ import annotations

import ast

from headlight.masks.language.code import Writer
from headlight.masks.language.expression import ScoreExpression
from headlight.masks.language.scores import N_BUCKETS, alibi_slopes
from headlight.masks.language.tree import SCORES, parts_of

_WHOLE = {"torch": "long()", "np": "astype(int)"}
_BUCKETS = {
    "bucket": """def bucket(relative):
    distance = abs(relative)
    far = {library}.clip(8 + ({library}.log2({library}.clip(distance / 8, 1, None)) * 2).{whole}, None, 15)
    return {library}.where(distance < 8, distance.{whole}, far) + 16 * (relative > 0)""",
    "causal_bucket": """def causal_bucket(relative):
    distance = {library}.clip(-relative, 0, None)
    far = {library}.clip(16 + ({library}.log2({library}.clip(distance / 16, 1, None)) * 16 / 3).{whole}, None, 31)
    return {library}.where(distance < 16, distance.{whole}, far)""",
}


def flex_score_mod(change: ScoreExpression, n_heads: int, n_tokens: int) -> str:
    """The lines that define ``score_mod``, with torch imported.

    Args:
        change: what to write.
        n_heads: how many heads the tables are for.
        n_tokens: the number of queries and of keys.
    """
    head = f"def score_mod({', '.join(SCORES.parameters)}):"
    body = f"    return {_line(change, 'torch', n_heads, n_tokens)}"
    return "\n".join(["import torch", "", *_tables(change, n_heads), *_buckets(change, "torch"), head, body])


def by_hand(change: ScoreExpression, n_heads: int, n_tokens: int, divisor: float) -> str:
    """An attention in plain PyTorch with changed scores: ``attention(query, key, value, mask)``.

    Args:
        change: what to write.
        n_heads: how many heads the tables are for.
        n_tokens: the number of queries and of keys.
        divisor: what the scores are divided by.
    """
    places = _places(change, "torch", n_heads, n_tokens)
    lines = ["import math", "import torch", "", *_tables(change, n_heads), *places, *_buckets(change, "torch")]
    body = [
        f"score = query @ key.mT / {divisor:.9g}",
        f"score = {_line(change, 'torch', n_heads, n_tokens)}",
        "weights = score.masked_fill(~mask, -math.inf).softmax(-1)  # mask: True = may attend",
        "return weights @ value",
    ]
    return "\n".join([*lines, "def attention(query, key, value, mask):", *(f"    {line}" for line in body)])


def numpy_lines(change: ScoreExpression, n_heads: int, n_tokens: int) -> list[str]:
    """The lines that compute the changed scores by NumPy, of which the last is a value over ``score``.

    A bias is looked up in an array ``bias``, (H, 32).
    """
    lines = _places(change, "np", n_heads, n_tokens)
    if "slope" in change.names:
        lines.append(f"slope = np.array({list(alibi_slopes(n_heads))})")
    return [*lines, *_buckets(change, "np"), _line(change, "np", n_heads, n_tokens)]


def _buckets(change: ScoreExpression, library: str) -> list[str]:
    """The lines of the functions that a change calls."""
    found = [lines for name, lines in _BUCKETS.items() if name in change.names]
    return "\n".join(found).format(library=library, whole=_WHOLE[library]).split("\n") if found else []


def _tables(change: ScoreExpression, n_heads: int) -> list[str]:
    """The lines of the tables that a change looks things up in."""
    tables = {
        "slope": f"slope = torch.tensor({list(alibi_slopes(n_heads))})",
        "bias": f"bias = torch.randn({n_heads}, {N_BUCKETS}, generator=torch.Generator().manual_seed(0))",
    }
    return [line for name, line in tables.items() if name in change.names]


def _places(change: ScoreExpression, library: str, n_heads: int, n_tokens: int) -> list[str]:
    """The lines that number the heads and the positions, where a change asks for them."""
    counted, lines = f"{library}.arange", []
    if {"h", "slope", "bias"} & change.names:
        lines.append(f"h = {counted}({n_heads})[:, None, None]")
    if {"q", "k"} & change.names:
        lines.append(f"q, k = {counted}({n_tokens})[:, None], {counted}({n_tokens})")
    return lines


def _line(change: ScoreExpression, library: str, n_heads: int, n_tokens: int) -> str:
    sizes = {"n_heads": n_heads, "n_queries": n_tokens, "n_keys": n_tokens}
    code = Writer(library, sizes).translate(change.tree)
    if not _is_of_scores(change.tree):
        code = ast.BinOp(ast.parse("0 * score", mode="eval").body, ast.Add(), code)
    return ast.unparse(code)


def _is_of_scores(node: ast.expr) -> bool:
    """True if a value has the type and the shape of the scores, since these take part in it as numbers."""
    match node:
        case ast.Name(id=name):
            return name == "score"
        case ast.Compare() | ast.BoolOp() | ast.Call(func=ast.Name(id="bias" | "bucket" | "causal_bucket")):
            return False
    return any(map(_is_of_scores, parts_of(node)))
