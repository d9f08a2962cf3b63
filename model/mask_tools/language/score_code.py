"""A change of scores as a ``score_mod`` of FlexAttention: one line over tensors, and the tables that it reads."""

from __future__ import annotations

import ast
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
_SIGNS: dict[type[ast.boolop], ast.operator] = {ast.And: ast.BitAnd(), ast.Or: ast.BitOr()}


def flex_score_mod(change: ScoreExpression, n_heads: int, n_tokens: int) -> str:
    """The lines that define ``score_mod``, with torch imported.

    Args:
        change: what to write.
        n_heads: how many heads the tables are for.
        n_tokens: the number of queries and of keys.
    """
    names, tables = change.names, []
    if "slope" in names:
        tables.append(f"slope = torch.tensor({[float(f'{slope:.9g}') for slope in alibi_slopes(n_heads)]})")
    if "bias" in names:
        tables.append(f"bias = torch.randn({n_heads}, {N_BUCKETS}, generator=torch.Generator().manual_seed(0))")
    helpers = [lines for name, lines in _BUCKETS.items() if name in names]
    imports = ["import math"] if helpers else []
    head = f"def score_mod({', '.join(SCORES.parameters)}):"
    body = f"    return {torch_line(change, n_heads, n_tokens)}"
    return "\n".join([*imports, "import torch", "", *tables, *helpers, head, body])


def torch_line(change: ScoreExpression, n_heads: int, n_tokens: int) -> str:
    """What the ``score_mod`` returns: a line over ``score``, ``q``, ``k``, ``h`` and the tables."""
    return ast.unparse(_written(change.tree, {"n_heads": n_heads, "n_queries": n_tokens, "n_keys": n_tokens}))


def _written(node: ast.expr, sizes: dict[str, int]) -> ast.expr:
    match node:
        case ast.Name(id=name) if name in sizes:
            return ast.Constant(sizes[name])
        case ast.UnaryOp(op=sign, operand=operand):
            return ast.UnaryOp(ast.Invert() if isinstance(sign, ast.Not) else sign, _written(operand, sizes))
        case ast.BinOp(left=left, op=sign, right=right):
            base = _written(left, sizes)
            if isinstance(sign, ast.Pow):  # whole numbers have no negative powers
                base = ast.BinOp(base, ast.Mult(), ast.Constant(1.0))
            return ast.BinOp(base, sign, _written(right, sizes))
        case ast.BoolOp(op=word, values=parts):
            return joined([_written(part, sizes) for part in parts], _SIGNS[type(word)])
        case ast.Compare(left=left, ops=signs, comparators=others):
            pairs = pairwise(_written(operand, sizes) for operand in (left, *others))
            links = [ast.Compare(one, [sign], [other]) for (one, other), sign in zip(pairs, signs, strict=True)]
            return joined(links, ast.BitAnd())
        case ast.IfExp(test=test, body=one, orelse=other):
            return _call("torch.where", *(_tensor(part, sizes) for part in (test, one, other)))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _called(name, arguments, sizes)
    return node


def _called(name: str, arguments: list[ast.expr], sizes: dict[str, int]) -> ast.expr:
    match name, [_tensor(argument, sizes) for argument in arguments]:
        case "slope", [head]:
            return ast.Subscript(ast.Name("slope"), head)
        case "bias", [head, place]:
            if not (isinstance(place, ast.Call) and isinstance(place.func, ast.Name) and place.func.id in _BUCKETS):
                place = _call("torch.clamp", place, ast.Constant(0), ast.Constant(N_BUCKETS - 1))
                place = ast.Call(ast.Attribute(place, "long"), [], [])
            return ast.Subscript(ast.Name("bias"), ast.Tuple([head, place]))
        case (("min" | "max"), [one, other]):
            return _call("torch.minimum" if name == "min" else "torch.maximum", one, other)
        case (("abs" | "bucket" | "causal_bucket"), [one]):
            return _call(name, one)
        case _, [one]:
            return _call(f"torch.{name}", one)
    raise TypeError(f"{name} is no function of a change of scores")


def _tensor(node: ast.expr, sizes: dict[str, int]) -> ast.expr:
    """A value as PyTorch's functions take it: numbers alone as a tensor."""
    written = _written(node, sizes)
    asked = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return written if asked - sizes.keys() else _call("torch.tensor", written)


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), [*arguments], [])
