"""A change of scores as a ``score_mod`` of FlexAttention: one line over tensors, and the tables that it reads."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import pairwise

from model.mask_tools.language.code import joined
from model.mask_tools.language.scores import N_BUCKETS, SCORES, ScoreExpression, alibi_slopes

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
_SIGNS: dict[type[ast.boolop], ast.operator] = {ast.And: ast.BitAnd(), ast.Or: ast.BitOr()}


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
    body = f"    return {torch_line(change, n_heads, n_tokens)}"
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
    names = change.names
    places = [f"h = torch.arange({n_heads})[:, None, None]"] if {"h", "slope", "bias"} & names else []
    if {"q", "k"} & names:
        places.append(f"q, k = torch.arange({n_tokens})[:, None], torch.arange({n_tokens})")
    body = [
        f"score = query @ key.mT / {divisor:.9g}",
        f"score = {torch_line(change, n_heads, n_tokens)}",
        "weights = score.masked_fill(~mask, -math.inf).softmax(-1)  # mask: True = may attend",
        "return weights @ value",
    ]
    lines = [
        "import math",
        "import torch",
        "",
        *tables,
        *places,
        *helpers,
        "def attention(query, key, value, mask):",
    ]
    return "\n".join([*lines, *(f"    {line}" for line in body)])


def _defined(change: ScoreExpression, n_heads: int) -> tuple[list[str], list[str]]:
    """The lines of the tables, and of the functions, that a change looks things up in."""
    names, tables = change.names, []
    if "slope" in names:
        tables.append(f"slope = torch.tensor({list(alibi_slopes(n_heads))})")
    if "bias" in names:
        tables.append(f"bias = torch.randn({n_heads}, {N_BUCKETS}, generator=torch.Generator().manual_seed(0))")
    return tables, [lines for name, lines in _BUCKETS.items() if name in names]


def torch_line(change: ScoreExpression, n_heads: int, n_tokens: int) -> str:
    """What the ``score_mod`` returns: a line over ``score``, ``q``, ``k``, ``h`` and the tables."""
    return _Writer("torch", n_heads, n_tokens).line(change)


def numpy_lines(change: ScoreExpression, n_heads: int, n_tokens: int) -> list[str]:
    """The lines that compute the changed scores by NumPy, of which the last is a value over ``score``.

    A bias is looked up in an array ``bias``, (H, 32).
    """
    names, lines = change.names, []
    if {"h", "slope", "bias"} & names:
        lines.append(f"h = np.arange({n_heads})[:, None, None]")
    if {"q", "k"} & names:
        lines.append(f"q, k = np.arange({n_tokens})[:, None], np.arange({n_tokens})")
    if "slope" in names:
        lines.append(f"slope = np.array({list(alibi_slopes(n_heads))})")
    lines += [line for name, helper in _NUMPY_BUCKETS.items() if name in names for line in helper]
    return [*lines, _Writer("np", n_heads, n_tokens).line(change)]


@dataclass(frozen=True)
class _Writer:
    """Writes a tree for one library, ``torch`` or ``np``."""

    library: str
    n_heads: int
    n_tokens: int

    def line(self, change: ScoreExpression) -> str:
        return ast.unparse(self._written(change.tree))

    def _written(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Name(id="n_heads"):
                return ast.Constant(self.n_heads)
            case ast.Name(id="n_queries" | "n_keys"):
                return ast.Constant(self.n_tokens)
            case ast.UnaryOp(op=sign, operand=operand):
                return ast.UnaryOp(ast.Invert() if isinstance(sign, ast.Not) else sign, self._written(operand))
            case ast.BinOp(left=left, op=sign, right=right):
                base = self._written(left)
                if isinstance(sign, ast.Pow):  # whole numbers have no negative powers
                    base = ast.BinOp(base, ast.Mult(), ast.Constant(1.0))
                return ast.BinOp(base, sign, self._written(right))
            case ast.BoolOp(op=word, values=parts):
                return joined([self._written(part) for part in parts], _SIGNS[type(word)])
            case ast.Compare(left=left, ops=signs, comparators=others):
                pairs = pairwise(self._written(operand) for operand in (left, *others))
                links = [ast.Compare(one, [sign], [other]) for (one, other), sign in zip(pairs, signs, strict=True)]
                return joined(links, ast.BitAnd())
            case ast.IfExp(test=test, body=one, orelse=other):
                return self._call("where", *map(self._tensor, (test, one, other)))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._called(name, [self._tensor(argument) for argument in arguments])
        return node

    def _called(self, name: str, arguments: list[ast.expr]) -> ast.expr:
        match name, arguments:
            case "slope", [head]:
                return ast.Subscript(ast.Name("slope"), head)
            case "bias", [head, place]:
                return ast.Subscript(ast.Name("bias"), ast.Tuple([head, self._index(place)]))
            case (("min" | "max"), _):
                return self._call(f"{name}imum", *arguments)
            case "sigmoid", [one] if self.library == "np":
                return ast.parse(f"1 / (1 + np.exp(-({ast.unparse(one)})))", mode="eval").body
            case (("abs" | "bucket" | "causal_bucket"), [one]):
                return ast.Call(ast.Name(name), [one], [])
        return self._call(name, *arguments)

    def _index(self, place: ast.expr) -> ast.expr:
        """A number as the number of a bucket."""
        if isinstance(place, ast.Call) and isinstance(place.func, ast.Name) and place.func.id in _BUCKETS:
            return place
        within = self._call("clip", place, ast.Constant(0), ast.Constant(N_BUCKETS - 1))
        whole, arguments = ("long", []) if self.library == "torch" else ("astype", [ast.Name("int")])
        return ast.Call(ast.Attribute(within, whole), [*arguments], [])

    def _tensor(self, node: ast.expr) -> ast.expr:
        """A value as PyTorch's functions take it: numbers alone as a tensor."""
        written = self._written(node)
        asked = {part.id for part in ast.walk(written) if isinstance(part, ast.Name)}
        return written if asked or self.library == "np" else self._call("tensor", written)

    def _call(self, name: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(ast.Name(f"{self.library}.{name}"), [*arguments], [])
