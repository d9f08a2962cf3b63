"""The sorts of what a mask should be, by name; ``intents`` says how a mask differs from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from model.texts import texts_of

say = texts_of(__name__)


@dataclass(frozen=True)
class IntentKind:
    """One sort of intention.

    Attributes:
        title: what it is called.
        number: what its number means; "" where it has none.
        words: the number, and where the queries stand -> the intention in words.
        expression: its cells, as an expression of the number ``{n}`` and a query's position ``{q}``; "" where all
            cells are open.
        least: the smallest number that it can have.
        follows_position: whether it depends on how many keys stand before the first query.
    """

    title: str
    number: str = ""
    words: Callable[[int, str], str] = lambda n, at: ""
    expression: str = ""
    least: int = 1
    follows_position: bool = True


INTENT_KINDS: Mapping[str, IntentKind] = {
    "causal": IntentKind(say("causal"), words=lambda n, at: say("causal_words", at=at), expression="k <= {q}"),
    "bidirectional": IntentKind(
        say("bidirectional"), words=lambda n, at: say("bidirectional_words"), follows_position=False
    ),
    "window": IntentKind(
        say("window"),
        say("window_number"),
        lambda n, at: say("window_words", n=n, at=at, before=n - 1),
        "0 <= {q} - k < {n}",
    ),
    "window_both": IntentKind(
        say("window_both"),
        say("window_both_number"),
        lambda n, at: say("window_both_words", n=n, at=at),
        "abs({q} - k) < {n}",
    ),
    "prefix": IntentKind(
        say("prefix"),
        say("prefix_number"),
        lambda n, at: say("prefix_words", n=n, at=at),
        "k < {n} or k <= {q}",
        least=0,
    ),
    "block_causal": IntentKind(
        say("block_causal"),
        say("block_causal_number"),
        lambda n, at: say("block_causal_words", n=n, at=at),
        "k // {n} <= ({q}) // {n}",
    ),
    "cached": IntentKind(
        say("cached"),
        say("cached_number"),
        lambda n, at: say("after_keys", n=n),
        "k <= q + {n}",
        least=0,
        follows_position=False,
    ),
    "expression": IntentKind(say("expression"), follows_position=False),
    "painted": IntentKind(say("painted"), words=lambda n, at: say("painted_words"), follows_position=False),
    "array": IntentKind(say("array"), words=lambda n, at: say("array_words"), follows_position=False),
}
"""Every sort of intention by name."""

CELLS_OF_THEIR_OWN = ("painted", "array")
"""Those whose cells are given, not said."""
