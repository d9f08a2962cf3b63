"""The words of a stop: lines that are told where something holds, with numbers of the run in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from model.texts import texts_of
from visualizer.glossary import Piece, pieces

say = texts_of(__name__)

Condition = Literal[
    "expects_next", "answers_in_place", "hand_built", "random", "trained", "untrained", "repeated", "positions",
    "masked", "blocked", "sees_all", "causal", "padding", "one_head", "several_heads", "one_layer",
    "several_layers", "one_text", "two_texts", "at_end", "inside", "relu", "unmasked", "repeats", "predicts",
    "foremost", "another_head", "sums_to_one", "hides",
]  # fmt: skip
CONDITIONS = frozenset[str](get_args(Condition))
"""The conditions that may stand behind ``if`` before a line, and behind ``"if"`` in a stop."""

Measure = Literal["previous_token", "first_token", "induction"]
MEASURES: tuple[str, ...] = get_args(Measure)
"""The measures that a stop can look for among the heads, and name the mean of."""

Value = Literal[
    "token", "position", "n_tokens", "id", "vocabulary", "d_model", "d_k", "d_ff", "n_heads", "head", "head_name",
    "layer", "n_layers", "n_keys", "n_seen", "n_blocked", "key", "key_position", "score", "weight", "written",
    "n_active", "answer", "probability", "token_at", "key_at", "next", "embedding_scale", "scaled_score", "earlier",
    "earlier_at", "n_earlier",
]  # fmt: skip
VALUES = frozenset[str]((*get_args(Value), *MEASURES))
"""The names that may stand in braces: a word or a number of the run."""

_OF_A_PERSON = frozenset({"token", "key", "answer", "next", "earlier"})
_CONDITION = re.compile(r"if ([a-z_]+(?: and [a-z_]+)*): (.*)", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class PathFacts:
    """The facts at a stop of a run: the conditions that hold, and what stands for each name in braces."""

    holding: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)


class Said(NamedTuple):
    """A part of a line: its text, the entry of the glossary that it opens, and whether it is a token."""

    text: str
    entry: str = ""
    is_token: bool = False


def problem_of_line(line: str) -> str:
    """Say what is wrong with a line, as the end of a sentence; empty where nothing is."""
    condition, text = _parts(line)
    if unknown := sorted(condition - CONDITIONS):
        return say("unknown_condition", name=unknown[0], known=", ".join(sorted(CONDITIONS)))
    for name in _BRACES.findall(text):
        if name not in VALUES:
            return say("unknown_value", name=name, known=", ".join(sorted(VALUES)))
    if re.search(r"[{}]", _BRACES.sub("", text)):
        return say("brace")
    return ""


def problem_of_condition(condition: str) -> str:
    """The same for what stands behind ``"if"`` in a stop."""
    return problem_of_line(f"if {condition}: ") if _CONDITION.match(f"if {condition}: ") else say("no_condition")


def holds(condition: str, facts: PathFacts) -> bool:
    """True if a condition, such as ``masked and causal``, holds; an empty one does."""
    return not condition or facts.holding >= set(condition.split(" and "))


def words_of_stop(lines: Sequence[str], facts: PathFacts, known_entries: frozenset[str]) -> tuple[Said, ...]:
    """Join the lines that are told: those whose conditions hold and whose values the run has, one after the other.

    The words are never markup: what stands in square brackets opens the glossary where it has such an entry.
    """
    found: list[Said] = []
    for line in lines:
        condition, text = _parts(line)
        if facts.holding >= condition and facts.values.keys() >= set(_BRACES.findall(text)):
            found += [Said(" ")] if found else []
            for piece in pieces(text):
                found += _filled(piece if piece.entry in known_entries else _unmarked(piece), facts)
    return tuple(found)


def _parts(line: str) -> tuple[frozenset[str], str]:
    """The conditions of a line, and the line without them."""
    match = _CONDITION.match(line)
    return (frozenset(match[1].split(" and ")), match[2]) if match else (frozenset(), line)


def _unmarked(piece: Piece) -> Piece:
    return Piece(f"[{piece.text}]") if piece.entry else piece


def _filled(piece: Piece, facts: PathFacts) -> list[Said]:
    """A part with the values in place of their names; those that a person typed are parts of their own."""
    if piece.entry:
        return [Said(piece.text, piece.entry)]
    found, end = [], 0
    for name in _BRACES.finditer(piece.text):
        found.append(Said(piece.text[end : name.start()]))
        found.append(Said(facts.values[name[1]], is_token=name[1] in _OF_A_PERSON))
        end = name.end()
    return [said for said in (*found, Said(piece.text[end:])) if said.text]
