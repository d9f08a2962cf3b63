"""A change of scores as a ``score_mod`` of FlexAttention: one line over tensors, and the tables that it reads."""

from __future__ import annotations

import ast

from headlight.masks.language.code import Writer
from headlight.masks.language.scores import N_BUCKETS, SCORES, ScoreExpression, alibi_slopes

_BUCKETS = {
    "bucket": """def bucket(relative):
    distance = abs(relative)
    share = torch.log(torch.clamp(distance / 8, min=1)) / math.log(16)
    far = torch.clamp(8 + (share * 8).long(), max=15)
    return torch.where(distance < 8, distance.long(), far) + 16 * (relative > 0)
""",
    "causal_bucket": """def causal_bucket(relative):
    distance = torch.clamp(-relative, min=0)
    share = torch.log(torch.clamp(distance / 16, min=1)) / math.log(8)
    far = torch.clamp(16 + (share * 16).long(), max=31)
    return torch.where(distance < 16, distance.long(), far)
""",
}
_NUMPY_BUCKETS = {
    "bucket": (
        "def bucket(relative):",
        "    share = np.log(np.maximum(abs(relative) / 8, 1)) / np.log(16)",
        "    far = np.minimum(8 + (share * 8).astype(int), 15)",
        "    return np.where(abs(relative) < 8, abs(relative), far) + 16 * (relative > 0)",
    ),
    "causal_bucket": (
        "def causal_bucket(relative):",
        "    distance = np.maximum(-relative, 0)",
        "    share = np.log(np.maximum(distance / 16, 1)) / np.log(8)",
        "    return np.where(distance < 16, distance, np.minimum(16 + (share * 16).astype(int), 31))",
    ),
}


def flex_score_mod(change: ScoreExpression, n_heads: int, n_tokens: int) -> str:
    """The lines that define ``score_mod``, with torch imported.

    Args:
        change: what to write.
        n_heads: how many heads the tables are for.
        n_tokens: the number of queries and of keys.
    """
    tables, helpers = _defined(change, n_heads)
    imports = ["import math"] if helpers else []
    head = f"def score_mod({', '.join(SCORES.parameters)}):"
    body = f"    return {_line(change, 'torch', n_heads, n_tokens)}"
    return "\n".join([*imports, "import torch", "", *tables, *helpers, head, body])


def by_hand(change: ScoreExpression, n_heads: int, n_tokens: int, divisor: float) -> str:
    """An attention in plain PyTorch with changed scores: ``attention(query, key, value, mask)``.

    Args:
        change: what to write.
        n_heads: how many heads the tables are for.
        n_tokens: the number of queries and of keys.
        divisor: what the scores are divided by.
    """
    tables, helpers = _defined(change, n_heads)
    lines = ["import math", "import torch", "", *tables, *_places(change, "torch", n_heads, n_tokens), *helpers]
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
    lines += [line for name, helper in _NUMPY_BUCKETS.items() if name in change.names for line in helper]
    return [*lines, _line(change, "np", n_heads, n_tokens)]


def _defined(change: ScoreExpression, n_heads: int) -> tuple[list[str], list[str]]:
    """The lines of the tables, and of the functions, that a change looks things up in."""
    names, tables = change.names, []
    if "slope" in names:
        tables.append(f"slope = torch.tensor({list(alibi_slopes(n_heads))})")
    if "bias" in names:
        tables.append(f"bias = torch.randn({n_heads}, {N_BUCKETS}, generator=torch.Generator().manual_seed(0))")
    return tables, [lines for name, lines in _BUCKETS.items() if name in names]


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
    return ast.unparse(_ScoreWriter(library, sizes).written(change.tree))


class _ScoreWriter(Writer):
    """Writes the functions and the tables that only changes of scores have."""

    def call(self, name: str, arguments: list[ast.expr]) -> ast.expr:
        arguments = [self._tensor(argument) for argument in arguments]
        match name, arguments:
            case "slope", [head]:
                return ast.Subscript(ast.Name("slope"), head)
            case "bias", [head, place]:
                return ast.Subscript(ast.Name("bias"), ast.Tuple([head, self._index(place)]))
            case (("min" | "max"), _):
                return super().call(f"{name}imum", arguments)
            case "sigmoid", [one] if self.library == "np":
                return ast.parse(f"1 / (1 + np.exp(-({ast.unparse(one)})))", mode="eval").body
            case (("bucket" | "causal_bucket"), _):
                return ast.Call(ast.Name(name), arguments, [])
        return super().call(name, arguments)

    def _index(self, place: ast.expr) -> ast.expr:
        """A number as the number of a bucket."""
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Name) and place.func.id in _BUCKETS:
            return place
        within = super().call("clip", [place, ast.Constant(0), ast.Constant(N_BUCKETS - 1)])
        whole, arguments = ("long", []) if self.library == "torch" else ("astype", [ast.Name("int")])
        return ast.Call(ast.Attribute(within, whole), [*arguments], [])

    def _tensor(self, written: ast.expr) -> ast.expr:
        """A value as PyTorch's functions take it: numbers alone as a tensor."""
        asked = any(isinstance(part, ast.Name) for part in ast.walk(written))
        return written if asked or self.library == "np" else super().call("tensor", [written])
