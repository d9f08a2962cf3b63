"""The text about a stage, with sentences that are told only where facts of the run hold."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

OfAttention = Literal[
    "self", "cross", "memory", "one_head", "several_heads", "projected", "unprojected", "scaled", "unscaled"
]
OfMask = Literal[
    # how an attention is masked, of which exactly one holds; the last two are mask bugs
    "unmasked", "blocks_nothing", "masked", "scores_zeroed", "masked_late",
    "several_masks", "keyless", "causal", "padding", "sliding_window", "prefix", "strided", "custom",
]  # fmt: skip
OfPart = Literal[
    "dropout", "no_dropout", "in_layer", "alone", "pre_norm", "post_norm", "relu", "gelu",
    "after_self_attention", "after_cross_attention", "after_feed_forward",
]  # fmt: skip
OfPositions = Literal["sinusoidal", "learned", "without_positions", "some_positions", "counted_from_first"]
OfWeights = Literal["trained", "untrained", "hand_built", "random"]
OfOutput = Literal["output_bias", "answers_in_place", "expects_next"]
Fact = OfAttention | OfMask | OfPart | OfPositions | OfWeights | OfOutput
"""A fact that may hold of a stage in a run, and so may be told."""


TEXTS: Mapping[str, Mapping[str, Mapping[str, str]]] = tomllib.loads(
    (Path(__file__).parent / "explanations.toml").read_text(encoding="utf-8")
)
"""The plain and the exact text of every stage, by part of the paper and name."""

_FACTS = frozenset(fact for facts in get_args(Fact) for fact in get_args(facts))
_CONDITION = re.compile(r"([a-z_]+(?: and [a-z_]+)*): (.*)")


class Sentence(NamedTuple):
    """A sentence, or some, and the facts that all must hold for it to be told."""

    facts: frozenset[str]
    text: str


@cache
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text whose lines may begin with the facts under which they are told, up to the next such.

    Raises:
        ValueError: a line begins with what is no fact.
    """
    found: list[Sentence] = []
    for line in text.strip().split("\n"):
        condition = _CONDITION.match(line.strip())
        if condition:
            facts = frozenset(condition[1].split(" and ")) - {"always"}
            if not facts <= _FACTS:
                raise ValueError(f"{sorted(facts - _FACTS)} are no facts: {line.strip()!r}")
            found.append(Sentence(facts, condition[2]))
        elif found:
            found[-1] = Sentence(found[-1].facts, f"{found[-1].text} {line.strip()}")
        else:
            found.append(Sentence(frozenset(), line.strip()))
    return tuple(found)


@dataclass(frozen=True)
class Facts:
    """The facts that hold of a stage in a run.

    Attributes:
        holding: the facts that hold.
        values: what the placeholders of the texts stand for.
    """

    holding: frozenset[Fact] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, other: Facts) -> Facts:
        return Facts(self.holding | other.holding, {**self.values, **other.values})


def explanation(text: str, facts: Facts) -> str:
    """Return the sentences of a text that are told where ``facts`` hold.

    Args:
        text: sentences. A line that begins with facts, such as ``masked and keyless:``, begins some that are told
            only where all of them hold; one that begins with ``always:`` goes on with others. ``{d_k}`` stands for
            a number of the run, ``[words]`` or ``[words](entry)`` for words that open an entry of the glossary.
        facts: what is true of the stage.
    """
    found = [sentence.text for sentence in sentences(text) if facts.holding >= sentence.facts]
    return " ".join(found).format_map(facts.values)
