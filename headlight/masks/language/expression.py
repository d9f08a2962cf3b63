"""An expression that was read, and what can be made of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from headlight.masks.language.code import mask_code
from headlight.masks.language.context import MaskContext
from headlight.masks.language.evaluation import check_64_bits, evaluate
from headlight.masks.language.parsing import read, uses_flex_attention
from headlight.masks.language.spelling import MaskExpressionError, check_length, check_spelling
from headlight.masks.language.tree import MASKS, SCORES, names_in, parts_of
from model.texts import texts_of

say = texts_of(__name__)


@dataclass(frozen=True)
class Expression:
    """A mask: a condition on a query and a key.

    Attributes:
        text: the expression as it was written.
        tree: the expression as it was read, checked (``tree.py``).
    """

    text: str
    tree: ast.expr = field(compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        """The facts that it asks for, by the names that its code uses.

        Some of q, k, h, b, n_queries, n_keys, query_token, key_token, query_segment, key_segment, query_is_padding
        and key_is_padding.
        """
        return frozenset(names_in(self.tree))

    def evaluate(self, context: MaskContext, queries: Tensor | None = None) -> Tensor:
        """The cells, (Tq, Tk) bool, True = may attend.

        Args:
            context: the facts about the queries and the keys.
            queries: the positions of the queries to evaluate it for, int64 (Tq,); None for all.

        Raises:
            MaskExpressionError: a cell divides by zero (where Python would come to divide: ``q > 0 and k % q == 0``
                is fine), or a number could go beyond 2**62.
        """
        facts = context.facts()
        if queries is not None:
            facts = {name: cells[queries] if name[0] == "q" else cells for name, cells in facts.items()}
        check_64_bits(self.tree, facts)
        allowed = evaluate(self.tree, facts, torch.ones((), dtype=torch.bool))
        return allowed.expand(len(facts["q"]), context.n_keys).clone()

    def torch_code(self) -> str:
        """The expression as one line of PyTorch, whose value broadcasts to (Tq, Tk).

        ``q`` and ``k`` are integer tensors that broadcast (or scalars, as in a FlexAttention ``mask_mod``);
        ``n_queries`` and ``n_keys`` are Python integers; ``query_token``, ``key_segment``, ``key_is_padding`` and
        the like are 1-D tensors. ``names`` says which of them it needs, besides ``torch``, and ``k`` in any case.
        """
        return mask_code(self.tree)


@dataclass(frozen=True)
class ScoreExpression:
    """A change of the scores before the softmax: a number for each head, query and key.

    Attributes:
        text: the expression in the words of this language.
        tree: the expression as it was read, checked (``tree.py``).
    """

    text: str
    tree: ast.expr = field(compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        """The names that it asks for: some of score, q, k, h, ..., and of the functions."""
        return frozenset(node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name))

    def __call__(self, scores: Tensor) -> Tensor:
        """The changed scores, as many as ``scores``, (B, H, Tq, Tk), which are scaled and not masked yet.

        With fewer queries than keys, as beside a key/value cache, the last query stands beside the last key.
        """
        return _changed(self.tree, scores)

    def parts(self, scores: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Each part that something is computed in, in words and its value at each score; the whole last."""
        for node in _innermost_first(self.tree):
            if node is self.tree or not isinstance(node, ast.Constant | ast.Name):
                yield ast.unparse(node), _changed(node, scores)


def parse(text: str) -> Expression:
    """Read a mask.

    Raises:
        MaskExpressionError: the text is no condition of this language; nothing else is ever raised.
    """
    return Expression(text, read(check_spelling(text), MASKS))


def from_mask_mod(text: str) -> str:
    """The mask that a FlexAttention ``mask_mod``, or what it returns, comes to, in the words of this language.

    A text without anything of FlexAttention's comes back as it is.

    Raises:
        MaskExpressionError: it cannot be read, or asks for what is not known here; its place is one in ``text``.
    """
    return ast.unparse(read(text, MASKS)) if uses_flex_attention(text) else text


def parse_score(text: str) -> ScoreExpression:
    """Read a change of scores, or a pasted ``score_mod``.

    Raises:
        MaskExpressionError: it is no finite number for any score; its place is one in ``text``.
    """
    if not text.strip():
        raise MaskExpressionError(say("empty"), 0, 0)
    check_length(text)
    tree = read(text, SCORES)
    if not _changed(tree, torch.linspace(-8, 8, 18).view(1, 2, 3, 3)).isfinite().all():
        raise MaskExpressionError(say("not_finite"), 0, len(text))
    return ScoreExpression(ast.unparse(tree), tree)


def _changed(tree: ast.expr, scores: Tensor) -> Tensor:
    n_heads, n_queries, n_keys = scores.shape[-3:]
    like: Mapping[str, Any] = {"dtype": scores.dtype, "device": scores.device}  # what they are counted in, no input
    positions = torch.arange(n_keys, **like)
    names: Mapping[str, Tensor] = {
        "score": scores,
        "q": positions[n_keys - n_queries :, None],
        "k": positions,
        "h": torch.arange(n_heads, **like)[:, None, None],
        "n_queries": torch.tensor(n_keys, **like),
        "n_keys": torch.tensor(n_keys, **like),
        "n_heads": torch.tensor(n_heads, **like),
    }
    live = torch.ones((), dtype=torch.bool, device=scores.device)
    return evaluate(tree, names, live).expand(scores.shape)


def _innermost_first(tree: ast.expr) -> Iterator[ast.expr]:
    for part in parts_of(tree):
        yield from _innermost_first(part)
    yield tree
