"""The facts said of the tokens of a loaded array: which are padding, and which document each is of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headlight.masks.intents import plain_context
from headlight.masks.language import MaskContext
from model.texts import texts_of

say = texts_of(__name__)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class TokensSaid:
    """The tokens of an array, as two texts say them.

    Attributes:
        documents: the number of each token's document, or the lengths of the documents; "" for one document.
        padding: how many tokens each sequence has, or 1 for each token and 0 for each padding; "" for none.
    """

    documents: str = ""
    padding: str = ""

    def context(self, n_queries: int, n_keys: int, before: int, sequence: int = 0, head: int = 0) -> MaskContext:
        """The facts of the tokens of one mask.

        Args:
            n_queries: Tq.
            n_keys: Tk.
            before: beside which key query 0 stands.
            sequence: which of a batch.
            head: which head.

        Raises:
            ValueError: the texts do not fit so many keys; one sentence says why.
        """
        plain = plain_context(n_queries, n_keys)
        pads = _padding(_row(self.padding, sequence), n_keys, sequence, is_left="left" in self.padding)
        documents = _documents(_row(self.documents, sequence), n_keys)
        beside = [min(before + query, n_keys - 1) for query in range(n_queries)]
        return MaskContext(
            plain.query_tokens,
            plain.key_tokens,
            tuple(pads[key] for key in beside),
            tuple(pads),
            tuple(documents[key] for key in beside),
            tuple(documents),
            head=head,
            sequence=sequence,
        )


def _row(text: str, sequence: int) -> list[int]:
    """The numbers of one sequence: its own, or those for all."""
    rows = [[int(number) for number in _NUMBER.findall(row)] for row in re.split(r"[;\n]|\]\s*,\s*\[", text)]
    numbers = [row for row in rows if row]
    if len(numbers) > 1 and sequence >= len(numbers):
        raise ValueError(say("too_few_sequences", text=text, n_sequences=len(numbers)))
    return numbers[sequence if len(numbers) > 1 else 0] if numbers else []


def _documents(numbers: Sequence[int], n_keys: int) -> list[int]:
    """The document of each key."""
    if not numbers or len(numbers) == n_keys:
        return list(numbers) or [0] * n_keys
    if sum(numbers) == n_keys:
        return [document for document, length in enumerate(numbers) for _ in range(length)]
    raise ValueError(say("documents", n_numbers=len(numbers), sum=sum(numbers), n_keys=n_keys))


def _padding(numbers: Sequence[int], n_keys: int, sequence: int, *, is_left: bool) -> list[bool]:
    """Read the padding of each key from flags, from a number of tokens, or from one number for each sequence."""
    if not numbers:
        return [False] * n_keys
    if len(numbers) == n_keys and set(numbers) <= {0, 1} and n_keys > 1:
        return [number == 0 for number in numbers]
    are_lengths = len(numbers) == 1 or (sequence < len(numbers) and max(numbers) > 1)
    if are_lengths and max(numbers) <= n_keys:
        pads = [key >= numbers[sequence % len(numbers)] for key in range(n_keys)]
        return pads[::-1] if is_left else pads
    raise ValueError(say("padding", n_numbers=len(numbers), n_keys=n_keys))
