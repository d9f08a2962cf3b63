"""An expression that was read, and what can be made of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from torch import Tensor

from headlight.masks.language.code import code_of
from headlight.masks.language.context import MaskContext
from headlight.masks.language.evaluation import evaluate
from headlight.masks.language.parsing import names_in, read


@dataclass(frozen=True)
class Expression:
    """A condition on a query and a key.

    Attributes:
        text: the expression as it was written.
        condition: the expression as it was read: Python's own tree, checked (``parsing``).
    """

    text: str
    condition: ast.expr = field(compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        """The facts that it asks for, by the names that its code uses.

        Some of q, k, n_queries, n_keys, query_token, key_token, query_segment, key_segment, query_is_padding
        and key_is_padding.
        """
        return frozenset(names_in(self.condition))

    def evaluate(self, context: MaskContext) -> Tensor:
        """The cells, (Tq, Tk) bool, True = may attend.

        Raises:
            MaskExpressionError: a cell divides by zero (where Python would come to divide: ``q > 0 and k % q == 0``
                is fine), or a number could go beyond 2**62.
        """
        return evaluate(self.condition, self.text, context)

    def torch_code(self) -> str:
        """The expression as one line of PyTorch, whose value broadcasts to (Tq, Tk).

        ``q`` and ``k`` are integer tensors that broadcast (or scalars, as in a FlexAttention ``mask_mod``);
        ``n_queries`` and ``n_keys`` are Python integers; ``query_token``, ``key_segment``, ``key_is_padding`` and
        the like are 1-D tensors. ``names`` says which of them it needs, besides ``torch``, and ``k`` in any case.
        """
        return code_of(self.condition)


def parse(text: str) -> Expression:
    """Read an expression.

    Raises:
        MaskExpressionError: the text is no condition of this language; nothing else is ever raised.
    """
    return Expression(text, read(text))
