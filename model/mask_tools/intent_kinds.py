"""The sorts of what a mask should be, by name; ``intents`` says how a mask differs from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class IntentKind:
    """One sort of intention.

    Attributes:
        title: what it is called.
        number: what its number means; "" where it has none.
        words: the number, and where the queries stand -> the intention in words.
        expression: the number, and how a query's position is written -> its cells, as an expression; "" where all
            cells are open.
        least: the smallest number that it can have.
        follows_position: whether it depends on how many keys stand before the first query.
    """

    title: str
    number: str
    words: Callable[[int, str], str]
    expression: Callable[[int, str], str]
    least: int = 1
    follows_position: bool = True


INTENT_KINDS: Mapping[str, IntentKind] = {
    "causal": IntentKind("Causal", "", lambda n, at: f"causal{at}", lambda n, q: f"k <= {q}"),
    "bidirectional": IntentKind(
        "Bidirectional", "", lambda n, at: "bidirectional", lambda n, q: "", follows_position=False
    ),
    "window": IntentKind(
        "Causal window",
        "Tokens seen, itself included",
        lambda n, at: f"causal{at}, window {n} (itself and {n - 1} before)",
        lambda n, q: f"0 <= {q} - k < {n}",
    ),
    "window_both": IntentKind(
        "Window on both sides",
        "Less than this far away",
        lambda n, at: f"a window on both sides: keys less than {n} away{at}",
        lambda n, q: f"abs({q} - k) < {n}",
    ),
    "prefix": IntentKind(
        "Prefix",
        "Tokens that all queries see",
        lambda n, at: f"a prefix of {n}, then causal{at}",
        lambda n, q: f"k < {n} or k <= {q}",
        least=0,
    ),
    "block_causal": IntentKind(
        "Block-causal",
        "Tokens in a block",
        lambda n, at: f"causal between blocks of {n}, open within one{at}",
        lambda n, q: f"k // {n} <= {f'({q})' if ' ' in q else q} // {n}",
    ),
    "cached": IntentKind(
        "Cached decoding",
        "Tokens in the cache",
        lambda n, at: f"causal after {n} {'key' if n == 1 else 'keys'} in the cache",
        lambda n, q: f"k <= q + {n}",
        least=0,
        follows_position=False,
    ),
    "expression": IntentKind("An expression", "", lambda n, at: "", lambda n, q: "", follows_position=False),
    "painted": IntentKind(
        "As painted", "", lambda n, at: "what is painted", lambda n, q: "", follows_position=False
    ),
    "array": IntentKind(
        "Another array", "", lambda n, at: "the other array", lambda n, q: "", follows_position=False
    ),
}
"""Every sort of intention by name."""

CELLS_OF_THEIR_OWN = ("painted", "array")
"""Those whose cells are given, not said."""
