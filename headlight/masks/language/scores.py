"""Changes of the scores before the softmax, as expressions: ``score - slope(h) * (q - k)``.

A change is a number for each query and key, worked out from the scaled score and from positions alone:

number:     score, q, k, h, n_queries, n_keys, n_heads, written numbers, + - * / // % **, abs tanh sigmoid exp log
            sqrt (each of one), min max (of two), slope(h), bucket(x), causal_bucket(x), bias(h, x), and
            ``a if condition else b``
condition:  True, False, comparisons, and, or, not

``slope(h)`` is the slope of ALiBi for head h (Press et al., section 3). ``bucket(k - q)`` and
``causal_bucket(k - q)`` are the 32 buckets of T5's relative positions (Raffel et al., section 2.1), and
``bias(h, x)`` is a number of head h for bucket x, which a model would learn and which is drawn here. A
``score_mod`` of FlexAttention can be pasted. Nothing is run by Python itself.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import pairwise

import torch
from torch import Tensor

from headlight.masks.language.evaluation import COMPARE
from headlight.masks.language.parsing import refusal, require
from headlight.masks.language.pasted import MASKS, Dialect, Reader
from headlight.masks.language.pasted_text import PastedText
from headlight.masks.language.spelling import DEEPEST, LARGEST, LONGEST, MaskExpressionError, too_deep
from model.texts import texts_of

say = texts_of(__name__)

N_BUCKETS = 32
_FARTHEST = 128

_ELEMENTWISE: Mapping[str, Callable[..., Tensor]] = {
    "abs": torch.abs,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "min": torch.minimum,
    "max": torch.maximum,
}
_SIGNS: dict[type[ast.unaryop], Callable[[Tensor], Tensor]] = {
    ast.Not: torch.logical_not,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Tensor, Tensor], Tensor]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
SCORES = Dialect(
    parameters=("score", "b", "h", "q", "k"),
    names={name: own for name, own in MASKS.names.items() if own not in ("b", "same_token")}
    | {"score": "score", "n_heads": "n_heads"},
    arithmetic=tuple(_ARITHMETIC),
    constants=(bool, int, float),
    functions=dict.fromkeys(_ELEMENTWISE, 1)
    | {"min": 2, "max": 2, "slope": 1, "bucket": 1, "causal_bucket": 1, "bias": 2},
    chooses=True,
    called=say("change_of_scores"),
)
"""A ``score_mod`` of FlexAttention."""


@dataclass(frozen=True)
class ScoreExpression:
    """A change of the scores.

    Attributes:
        text: the expression in the words of this language.
        tree: the expression as it was read.
    """

    text: str
    tree: ast.expr = field(compare=False, repr=False)

    def __call__(self, scores: Tensor) -> Tensor:
        """The changed scores, as many as ``scores``, (B, H, Tq, Tk), which are scaled and not masked yet.

        With fewer queries than keys, as beside a key/value cache, the last query stands beside the last key.
        """
        return _value(self.tree, _given(scores)).expand(scores.shape)

    def parts(self, scores: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Each part that something is worked out in, in words and its value at each score; the innermost first."""
        given = _given(scores)
        for node in _inner_first(self.tree):
            if not isinstance(node, ast.Constant | ast.Name):
                yield ast.unparse(node), _value(node, given).expand_as(scores)

    @property
    def names(self) -> frozenset[str]:
        """The names that it asks for: some of score, q, k, h, ..., and of the functions."""
        return frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))


def parse_score(text: str) -> ScoreExpression:
    """Read an expression, or a pasted ``score_mod``.

    Raises:
        MaskExpressionError: it is no number of this language for any score; its place is one in ``text``.
    """
    if not text.strip():
        raise MaskExpressionError(say("empty"), 0, 0)
    if len(text) > LONGEST:
        raise MaskExpressionError(say("too_long", most=LONGEST), LONGEST, len(text))
    try:
        tree = Reader(PastedText(text), SCORES).read()
        if _depth(tree) > DEEPEST:
            raise too_deep(0, len(text))
        few = torch.linspace(-8, 8, 18).view(1, 2, 3, 3)
        _check(tree)
        changed = _value(tree, _given(few)).expand_as(few)
    except (RecursionError, MemoryError):
        raise too_deep(0, len(text)) from None
    if not changed.isfinite().all():
        what = say("not_finite")
        raise MaskExpressionError(what, 0, len(text))
    return ScoreExpression(ast.unparse(tree), tree)


def alibi_slopes(n_heads: int) -> tuple[float, ...]:
    """The slope of each head (ALiBi, section 3): 2^(-8/n), 2^(-16/n), ...

    Where the number of heads is no power of 2, the slopes of the next lower one, and then every other of the next
    higher one, as in the authors' implementation.
    """
    lower = 2 ** int(math.log2(n_heads))
    own = [2 ** (-8 * (head + 1) / lower) for head in range(lower)]
    return tuple(own + [2 ** (-4 * (head + 1) / lower) for head in range(0, 2 * (n_heads - lower), 2)])


def t5_bucket(relative: Tensor, *, is_causal: bool) -> Tensor:
    """The bucket, 0 to 31, of how far a key is after its query (T5, section 2.1).

    Near distances have a bucket each, farther ones share buckets of widths that grow up to 128. Where keys may be
    after their query, half of the buckets are for these.
    """
    n_buckets = N_BUCKETS if is_causal else N_BUCKETS // 2
    distance = (-relative).clamp(min=0) if is_causal else relative.abs()
    n_exact = n_buckets // 2
    share = (distance.float() / n_exact).clamp(min=1).log() / math.log(_FARTHEST / n_exact)
    far = (n_exact + (share * (n_buckets - n_exact)).long()).clamp(max=n_buckets - 1)
    bucket = torch.where(distance < n_exact, distance.long(), far)
    return bucket if is_causal else bucket + n_buckets * (relative > 0)


@cache
def bias_table(n_heads: int) -> Tensor:
    """A number for each head and bucket, (H, 32): of the kind that T5 learns, drawn from a normal distribution."""
    return torch.randn(n_heads, N_BUCKETS, generator=torch.Generator().manual_seed(0))


def _given(scores: Tensor) -> dict[str, Tensor]:
    n_heads, n_queries, n_keys = scores.shape[-3:]

    def counted(first: int, last: int) -> Tensor:
        return torch.arange(first, last, dtype=scores.dtype, device=scores.device)

    def number(value: int) -> Tensor:
        return torch.tensor(value, dtype=scores.dtype, device=scores.device)

    return {
        "score": scores,
        "q": counted(n_keys - n_queries, n_keys)[:, None],
        "k": counted(0, n_keys),
        "h": counted(0, n_heads)[:, None, None],
        "n_queries": number(n_keys),
        "n_keys": number(n_keys),
        "n_heads": number(n_heads),
    }


def _check(tree: ast.expr) -> None:
    """Check that it is a number, and what parsing does not know: heads that are looked up, and large numbers."""
    require("number", tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=("slope" | "bias") as name), args=[head, *_]):
                if not (isinstance(head, ast.Name) and head.id == "h"):
                    example = f"{name}(h{', q - k' * (name == 'bias')})"
                    raise refusal(node, say("no_head", example=example))
            case ast.Constant(value=int() | float() as value) if not abs(value) <= LARGEST:
                raise refusal(node, say("too_large"))


def _value(node: ast.expr, given: Mapping[str, Tensor]) -> Tensor:
    score = given["score"]
    match node:
        case ast.Constant(value=bool() as value):
            return torch.tensor(value, device=score.device)
        case ast.Constant(value=int() | float() as value):
            return torch.tensor(value, dtype=score.dtype, device=score.device)
        case ast.Name(id=name):
            return given[name]
        case ast.UnaryOp(op=sign, operand=operand):
            return _SIGNS[type(sign)](_value(operand, given))
        case ast.BinOp(left=left, op=sign, right=right):
            return _ARITHMETIC[type(sign)](_value(left, given), _value(right, given))
        case ast.BoolOp(op=word, values=parts):
            join = torch.logical_and if isinstance(word, ast.And) else torch.logical_or
            return reduce(join, [_value(part, given) for part in parts])
        case ast.Compare(left=left, ops=signs, comparators=others):
            values = [_value(operand, given) for operand in (left, *others)]
            links = [COMPARE[type(sign)](*pair) for sign, pair in zip(signs, pairwise(values), strict=True)]
            return reduce(torch.logical_and, links)
        case ast.IfExp(test=test, body=one, orelse=other):
            return torch.where(_value(test, given), _value(one, given), _value(other, given))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _called(name, [_value(argument, given) for argument in arguments], given)
    raise TypeError(f"a {type(node).__name__} is no part of a change of scores")


def _called(name: str, numbers: list[Tensor], given: Mapping[str, Tensor]) -> Tensor:
    score, n_heads = given["score"], len(given["h"])
    match name:
        case "slope":
            return torch.tensor(alibi_slopes(n_heads), dtype=score.dtype, device=score.device)[:, None, None]
        case "bucket" | "causal_bucket":
            return t5_bucket(numbers[0], is_causal=name == "causal_bucket").to(score.dtype)
        case "bias":
            table = bias_table(n_heads).to(score.device, score.dtype)
            heads = torch.arange(n_heads, device=score.device)[:, None, None]
            return table[heads, numbers[1].clamp(0, N_BUCKETS - 1).long()]
    return _ELEMENTWISE[name](*numbers)


def _inner_first(node: ast.expr) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not (isinstance(node, ast.Call) and child is node.func):
            yield from _inner_first(child)
    yield node


def _depth(tree: ast.AST) -> int:
    return 1 + max(map(_depth, ast.iter_child_nodes(tree)), default=0)
