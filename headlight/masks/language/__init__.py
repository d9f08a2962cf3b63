"""A small language for masks, both ways: from an expression to the cells, and from the cells to an expression.

An expression says of each pair of a query and a key whether the query may attend to the key::

    k <= q and segment(q) == segment(k) and not is_pad(k)

condition:  True, False, same_token, is_pad(x), comparisons (< <= == != >= >, chained too), and, or, not
number:     whole numbers, q, k, h, b, n_queries, n_keys, token(x), segment(x), abs(number), + - * // %

where ``q`` and ``k`` are the positions of the query and of the key, counted from 0, and ``x`` is one of the two.
``h`` and ``b`` are the numbers of the head and of the sequence in the batch. A FlexAttention ``mask_mod`` is such
an expression too, once ``from_mask_mod`` has read it. How scores are changed is said in the same way (``scores``).
The meaning is Python's in all respects; Python's parser reads it, and nothing is ever run by Python itself.
"""

from headlight.masks.language.context import TOKEN_FACTS, MaskContext
from headlight.masks.language.description import express, position
from headlight.masks.language.expression import Expression, ScoreExpression, from_mask_mod, parse, parse_score
from headlight.masks.language.ready import READY, READY_SCORES, ReadyExpression
from headlight.masks.language.spelling import MaskExpressionError

__all__ = [
    "READY",
    "READY_SCORES",
    "TOKEN_FACTS",
    "Expression",
    "MaskContext",
    "MaskExpressionError",
    "ReadyExpression",
    "ScoreExpression",
    "express",
    "from_mask_mod",
    "parse",
    "parse_score",
    "position",
]
