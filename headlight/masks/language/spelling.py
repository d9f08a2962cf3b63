"""The first reading of a mask, symbol by symbol: what is misspelt or out of place is pointed at here.

What passes is ASCII, on one line, and made of this language's own words and signs, in an order that is Python's.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from model.texts import texts_of

say = texts_of(__name__)

LONGEST = 2000
"""The largest number of characters in an expression."""

DEEPEST = 50
"""The largest number of parts of an expression that may stand inside one another."""

LARGEST = 2**62
"""No number may become larger than this, so that sums and products never leave 64 bits."""

_FUNCTIONS = ("is_pad", "segment", "token", "abs")
_VALUES = ("q", "k", "n_queries", "n_keys", "h", "b", "same_token", "True", "False")
_CONNECTIVES = ("and", "or")
_WORDS = (*_VALUES, *_FUNCTIONS, *_CONNECTIVES, "not")


def _spellings(table: str) -> Mapping[str, str]:
    """Each spelling of a table, with its key."""
    tables = tomllib.loads(Path(__file__).with_name("spelling.toml").read_text(encoding="utf-8"))
    return {spelling: key for key, spellings in tables[table].items() for spelling in spellings.split()}


_MEANT = _spellings("meant")
_INSTEAD = _spellings("instead")
_SYMBOL = re.compile(
    r"""(?P<space>\s+)
    | (?P<word>[^\W\d]\w*)
    | (?P<number>[0-9][\w.]*)
    | (?P<refused>===|=>|=<|<>|\*\*|&&|\|\|)
    | (?P<sign><=|>=|==|!=|//|[-+*%<>()])
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


class MaskExpressionError(ValueError):
    """An expression that cannot be read or worked out; ``str`` of it is one sentence that says why.

    Attributes:
        start: the first column, counted from 0, of the part of the text that it is about.
        end: the column after the last.
    """

    def __init__(self, sentence: str, start: int, end: int) -> None:
        super().__init__(sentence)
        self.start = start
        self.end = end


class _Symbol(NamedTuple):
    """A word, a number or a sign; "" is the beginning or the end of the text."""

    text: str
    start: int

    @property
    def ends_a_value(self) -> bool:
        return self.text == ")" or self.text in (*_VALUES, *_FUNCTIONS) or self.text.isdigit()

    @property
    def starts_a_value(self) -> bool:
        return self.text[:1] in ("(", "+", "-") or (self.text[:1].isalnum() and self.text not in _CONNECTIVES)

    def refuse(self, sentence: str, last: _Symbol | None = None) -> MaskExpressionError:
        """The refusal of this symbol, or of all up to the last."""
        end = last or self
        return MaskExpressionError(sentence, self.start, end.start + len(end.text))


def check_spelling(text: str) -> str:
    """The text with every white space, line breaks too, as one blank each, so that columns stay what they are.

    Raises:
        MaskExpressionError: a sign or a word is unknown, or stands where it cannot stand.
    """
    if not text.strip():
        raise MaskExpressionError(say("empty"), 0, len(text))
    check_length(text)
    symbols = [_Symbol("", 0)]
    for found in _SYMBOL.finditer(text):
        symbol = _Symbol(found.group(), found.start())
        match found.lastgroup:
            case "word":
                _check_word(symbol)
            case "number":
                _check_number(symbol)
            case "refused" | "other":
                raise symbol.refuse(_cannot_be_used(symbol.text))
        if found.lastgroup != "space":
            symbols.append(symbol)
    _check_brackets(symbols)
    for before, after in pairwise([*symbols, _Symbol("", len(text))]):
        _check_neighbours(before, after)
    return re.sub(r"\s", " ", text)


def check_length(text: str) -> None:
    """Refuse a text that is too long.

    Raises:
        MaskExpressionError: it is.
    """
    if len(text) > LONGEST:
        raise MaskExpressionError(say("too_long", n=len(text), most=LONGEST), LONGEST, len(text))


def check_signs(text: str) -> None:
    """Refuse signs that Python does not have, such as &&, and say what to write.

    Raises:
        MaskExpressionError: there is one.
    """
    for found in _SYMBOL.finditer(text):
        symbol = _Symbol(found.group(), found.start())
        if symbol.text in _INSTEAD and symbol.text not in "=&|~^**/.,'\"[]{}":
            raise symbol.refuse(_cannot_be_used(symbol.text))


def shortened(text: str) -> str:
    """A part of an expression as it is quoted in a sentence."""
    return text if len(text) <= 40 else f"{text[:37]}..."


def too_deep(start: int, end: int) -> MaskExpressionError:
    """The refusal of an expression whose parts stand inside one another more than ``DEEPEST`` times."""
    return MaskExpressionError(say("too_deep", most=DEEPEST), start, end)


def meant_by(word: str) -> str | None:
    """Guess the word that an unknown one was meant to be."""
    return _MEANT.get(word) or next(iter(difflib.get_close_matches(word, _WORDS, n=1)), None)


def _cannot_be_used(sign: str) -> str:
    if sign in _INSTEAD:
        return say("refused_sign", sign=sign, instead=_INSTEAD[sign])
    return say("unknown_sign", name=sign if sign.isprintable() else say("character", code=ord(sign)))


def _check_word(word: _Symbol) -> None:
    if word.text not in _WORDS:
        meant = meant_by(word.text)
        known = say("meant", meant=meant) if meant else say("names", names=", ".join((*_VALUES, *_FUNCTIONS)))
        raise word.refuse(say("unknown_word", word=shortened(word.text), known=known))


def _check_number(number: _Symbol) -> None:
    said = shortened(number.text)
    if not (number.text.isascii() and number.text.isdigit()):
        raise number.refuse(say("no_whole_number", number=said))
    if number.text.startswith("0") and len(number.text) > 1:
        raise number.refuse(say("starts_with_zero", number=said))
    if int(number.text) > LARGEST:
        raise number.refuse(say("too_large", number=said))


def _check_brackets(symbols: list[_Symbol]) -> None:
    opened: list[_Symbol] = []
    for symbol in symbols:
        if symbol.text == "(":
            opened.append(symbol)
            if len(opened) > DEEPEST:
                raise too_deep(symbol.start, symbol.start + 1)
        elif symbol.text == ")":
            if not opened:
                raise symbol.refuse(say("closes_nothing"))
            opened.pop()
    if opened:
        raise opened[-1].refuse(say("never_closed"))


def _check_neighbours(before: _Symbol, after: _Symbol) -> None:
    """Values and operators take turns."""
    if before.ends_a_value:
        opens_a_call = before.text in _FUNCTIONS and after.text == "("
        if after.starts_a_value and after.text not in "+-" and not opens_a_call:
            raise before.refuse(say("no_operator", before=before.text, after=after.text), after)
    elif not after.text:
        raise before.refuse(say("no_value_after", before=before.text))
    elif after.text == "not" and before.text not in ("", "(", "not", *_CONNECTIVES):
        raise after.refuse(say("not_needs_brackets", before=before.text))
    elif not after.starts_a_value and before.text:
        raise before.refuse(say("no_value_between", before=before.text, after=after.text), after)
    elif not after.starts_a_value:
        raise after.refuse(say("no_value_before", after=after.text))
