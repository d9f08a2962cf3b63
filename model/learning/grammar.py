"""A small English with its German: sentences drawn at random, what may come next in one, and its translation.

The words and the patterns stand in ``grammar.toml``. Both sides of a pattern are filled at once (a synchronous
grammar, Aho and Ullman 1969), so that each German word is known to come from one English word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import torch

NOWHERE = -1
"""The place of a word that comes from no other."""

END = ""
"""The empty word that may come after the last one of a sentence."""

_FILE = Path(__file__).parent / "grammar.toml"
_SLOT = re.compile(r"\{(\w+)(?:\.(\w+)|:(\w+)|<(\w+))?\}")
_OPTION = re.compile(r"\[([^]]*)\]")
_MOST_CHOICES = 12
_PRONOUNS = {"der": "er", "die": "sie", "das": "es"}
_DATIVES = {"der": "dem", "die": "der", "das": "dem"}


@dataclass(frozen=True)
class Sentence:
    """A sentence in both languages.

    Attributes:
        english: its words and marks.
        german: the same of its translation.
        read_from: for each German word the place of the English word that decides it, or ``NOWHERE``.
    """

    english: tuple[str, ...]
    german: tuple[str, ...]
    read_from: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Entry:
    """A word of the lexicon: its forms in both languages by name, and the adjectives that are reasons for it."""

    english: Mapping[str, str]
    german: Mapping[str, str]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slot:
    """A place of a pattern that an entry fills: in a form, in the number of another, as a reason for another."""

    name: str
    form: str = ""
    number_of: str = ""
    reason_of: str = ""


@dataclass(frozen=True)
class Pattern:
    """A kind of sentence: words, and slots that are filled in both languages alike."""

    english: tuple[str | Slot, ...]
    german: tuple[str | Slot, ...]
    weight: float


Option = TypeVar("Option")
Filled = Mapping[str, Entry]
"""The entries of the slots that are filled, by the names of the slots."""


def draw_sentences(n: int, generator: torch.Generator) -> list[Sentence]:
    """Return so many random sentences."""
    chances = torch.rand(n, _MOST_CHOICES, dtype=torch.float64, generator=generator).tolist()
    return [_drawn(iter(row)) for row in chances]


def next_words(words: Sequence[str]) -> frozenset[str]:
    """The English words that may come after these in some sentence; ``END`` where one is complete."""
    states = _states(words)
    complete = {END for pattern, _ in states if len(pattern.english) == len(words)}
    open_states = (state for state in states if len(state[0].english) > len(words))
    return frozenset(
        complete.union(*(_options(pattern.english[len(words)], filled) for pattern, filled in open_states))
    )


def sentence_of(english: Sequence[str]) -> Sentence | None:
    """The sentence with these English words; None where the grammar makes no such sentence."""
    return next(
        (_written(pattern, filled) for pattern, filled in _states(english) if len(pattern.english) == len(english)),
        None,
    )


@cache
def english_words() -> tuple[str, ...]:
    """Every word and mark of the English side, in alphabetical order."""
    return _words_of("english")


@cache
def german_words() -> tuple[str, ...]:
    """The same of the German side."""
    return _words_of("german")


def _words_of(language: str) -> tuple[str, ...]:
    literal = {token for pattern in _patterns() for token in getattr(pattern, language) if isinstance(token, str)}
    entries = (entry for entries in _lexicon().values() for entry in entries)
    used = {word for entry in entries for word in getattr(entry, language).values()}
    return tuple(sorted(literal | used))


# Filling a pattern.


def _options(token: str | Slot, filled: Filled) -> dict[str, Filled]:
    """The words that may stand at a place, each with the slots that are filled then."""
    if isinstance(token, str):
        return {token: filled}
    if token.form or token.name in filled:
        return {filled[token.name].english[token.form]: filled}
    return {entry.english[""]: {**filled, token.name: entry} for entry in _candidates(token, filled)}


def _candidates(slot: Slot, filled: Filled) -> list[Entry]:
    """The entries that may fill a slot: none twice in a sentence, and as a reason those for what it explains."""
    entries = [entry for entry in _lexicon()[_kinds()[slot.name]] if entry not in filled.values()]
    if not slot.reason_of:
        return entries
    reasons = filled[slot.reason_of].reasons
    return sorted(
        (one for one in entries if one.english[""] in reasons), key=lambda one: reasons.index(one.english[""])
    )


def _states(words: Sequence[str]) -> list[tuple[Pattern, Filled]]:
    """Every pattern that may begin with these words, with the slots that they fill."""
    states: list[tuple[Pattern, Filled]] = [(pattern, {}) for pattern in _patterns()]
    for place, word in enumerate(words):
        reached = (
            (pattern, _options(pattern.english[place], filled))
            for pattern, filled in states
            if place < len(pattern.english)
        )
        states = [(pattern, options[word]) for pattern, options in reached if word in options]
    return states


def _drawn(chances: Iterator[float]) -> Sentence:
    pattern = _pick(_patterns(), [pattern.weight for pattern in _patterns()], next(chances))
    filled: Filled = {}
    for token in pattern.english:
        if isinstance(token, Slot) and not token.form and token.name not in filled:
            candidates = _candidates(token, filled)
            weights = [1 / (1 + rank) if token.reason_of else 1.0 for rank in range(len(candidates))]
            filled = {**filled, token.name: _pick(candidates, weights, next(chances))}
    return _written(pattern, filled)


def _pick(options: Sequence[Option], weights: Sequence[float], chance: float) -> Option:
    left = chance * sum(weights)
    for option, weight in zip(options, weights, strict=True):
        left -= weight
        if left < 0:
            return option
    return options[-1]


def _written(pattern: Pattern, filled: Filled) -> Sentence:
    english = tuple(
        token if isinstance(token, str) else filled[token.name].english[token.form] for token in pattern.english
    )
    german = tuple(token if isinstance(token, str) else _german(token, filled) for token in pattern.german)
    return Sentence(english, german, _read_from(pattern))


def _german(slot: Slot, filled: Filled) -> str:
    form = filled[slot.number_of].german["number"] if slot.number_of else slot.form
    return filled[slot.name].german[form]


@cache
def _read_from(pattern: Pattern) -> tuple[int, ...]:
    return tuple(_source_of(place, pattern) for place in range(len(pattern.german)))


def _source_of(place: int, pattern: Pattern) -> int:
    """The English place that a German word is read from; the first of like ones from the first, and so on."""
    token = pattern.german[place]
    if isinstance(token, str) and not token.isalpha():
        return NOWHERE
    wanted = _data()["aligned"].get(token, token) if isinstance(token, str) else Slot(token.name, token.form)
    plain = [Slot(one.name, one.form) if isinstance(one, Slot) else one for one in pattern.english]
    if wanted not in plain:
        wanted = Slot(token.name) if isinstance(token, Slot) else wanted
    places = [i for i, one in enumerate(plain) if one == wanted]
    earlier = pattern.german[:place].count(token)
    return places[min(earlier, len(places) - 1)] if places else NOWHERE


# Reading the file.


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@cache
def _patterns() -> tuple[Pattern, ...]:
    return tuple(variant for pattern in _data()["patterns"] for variant in _variants(**pattern))


def _variants(english: str, german: str, weight: float = 1.0) -> list[Pattern]:
    """A pattern with and without each of the pieces in brackets."""
    n_options = len(_OPTION.findall(english))
    choices = list(product((True, False), repeat=n_options))
    return [
        Pattern(_tokens(_chosen(english, choice)), _tokens(_chosen(german, choice)), weight / len(choices))
        for choice in choices
    ]


def _chosen(text: str, choice: Sequence[bool]) -> str:
    choices = iter(choice)
    return _OPTION.sub(lambda found: found[1] if next(choices) else "", text)


def _tokens(text: str) -> tuple[str | Slot, ...]:
    return tuple(
        Slot(*(part or "" for part in found.groups())) if (found := _SLOT.fullmatch(token)) else token
        for token in text.split()
    )


def _kinds() -> Mapping[str, str]:
    kinds: Mapping[str, str] = _data()["kinds"]
    return kinds


@cache
def _lexicon() -> Mapping[str, tuple[Entry, ...]]:
    """The entries of each kind."""
    words = {kind: tuple(_same(*pair) for pair in pairs.items()) for kind, pairs in _data()["words"].items()}
    return words | {kind: tuple(read(_data()[f"{kind}s"])) for kind, read in _READERS.items()}


def _same(english: str, german: str) -> Entry:
    return Entry({"": english}, {"": german})


def _nouns(section: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[Entry]:
    """Two entries for each noun, one of each number."""
    for gender, nouns in section.items():
        for singular, (plural, article, noun, nouns_german, dative_plural) in nouns.items():
            pronoun = _PERSONS[gender]
            yield Entry(
                {"": singular, "it": pronoun, "was": "was", "has": "has"},
                {
                    **{"": noun, "der": article, "dem": _DATIVES[article], "dative": noun},
                    **{"es": _PRONOUNS[article], "was": "war", "has": "hat", "number": "singular"},
                },
            )
            yield Entry(
                {"": plural, "it": "they", "was": "were", "has": "have"},
                {
                    **{"": nouns_german, "der": "die", "dem": "den", "dative": dative_plural},
                    **{"es": "sie", "was": "waren", "has": "haben", "number": "plural"},
                },
            )


_PERSONS = {"animal": "it", "man": "he", "woman": "she"}


def _names(section: Mapping[str, Sequence[str]]) -> Iterator[Entry]:
    for gender, names in section.items():
        for name in names:
            yield Entry({"": name, "it": _PERSONS[gender]}, {"": name, "es": "er" if gender == "man" else "sie"})


def _with_article(form: str) -> Callable[[Mapping[str, Sequence[str]]], Iterator[Entry]]:
    """Read nouns that stand in one case alone; the form of their article is called as in the patterns."""

    def read(section: Mapping[str, Sequence[str]]) -> Iterator[Entry]:
        for english, (article, noun) in section.items():
            yield Entry({"": english}, {"": noun, form: article})

    return read


def _postures(section: Mapping[str, Sequence[str]]) -> Iterator[Entry]:
    for english, (singular, plural, *reasons) in section.items():
        yield Entry({"": english}, {"singular": singular, "plural": plural}, tuple(reasons))


def _with_reasons(section: Mapping[str, Sequence[str]]) -> Iterator[Entry]:
    for english, (german, *reasons) in section.items():
        yield Entry({"": english}, {"": german}, tuple(reasons))


def _adjectives(section: Mapping[str, Sequence[str]]) -> Iterator[Entry]:
    for english, forms in section.items():
        yield Entry({"": english}, {"": forms[0], "singular": f"{forms[-1]}e", "plural": f"{forms[-1]}en"})


_READERS: Mapping[str, Callable[[Any], Iterator[Entry]]] = {
    "noun": _nouns,
    "name": _names,
    "place": _with_article("dem"),
    "shop": _with_article("zum"),
    "food": _with_article("den"),
    "thing": _with_article("einen"),
    "posture": _postures,
    "participle": _with_reasons,
    "infinitive": _with_reasons,
    "adjective": _adjectives,
}
