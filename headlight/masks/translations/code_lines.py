"""The parts of every snippet: its sections, comments and long lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill

from headlight.masks.translations.mask_to_translate import MaskToTranslate
from model.texts import listed, texts_of

say = texts_of(__name__)

WIDTH = 108
"""The longest line, but for code that cannot be broken."""

_MOST_NAMED = 6


def snippet(convention: str, imports: Sequence[str] = (), *parts: Iterable[str]) -> str:
    """A whole piece of Python: the convention as a comment, the imports, and the lines of the parts."""
    body = "\n".join(line for part in parts for line in part)
    sections = (comment(convention), "\n".join(imports), body)
    return "\n\n".join(section for section in sections if section) + "\n"


def comment(text: str) -> str:
    """A comment of as many lines as it takes."""
    return fill(text, WIDTH, initial_indent="# ", subsequent_indent="# ")


def commented(code: str, text: str) -> list[str]:
    """Code with a comment behind it, or above it where the line would be too long."""
    line = f"{code}  # {text}"
    return [line] if len(line) <= WIDTH else [comment(text), code]


def wrapped(items: str) -> str:
    """The items of a list as lines of their own."""
    return fill(items, WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False)


def arguments(names: Iterable[str]) -> str:
    """Variables passed by arguments of the same names."""
    return ", ".join(f"{name}={name}" for name in names)


def without_keys(mask: MaskToTranslate, consequence: str) -> list[str]:
    """A comment that names the queries without a key and says what they get; none where every query has one."""
    heads = mask.allowed if mask.is_per_head else mask.allowed[:1]
    named = [
        (say("query_of_head", query=query, head=head) if mask.is_per_head else say("query", query=query))
        + (say("padding") if mask.query_is_padding[query] else "")
        for head, query in (~heads.any(-1)).nonzero().tolist()
    ]
    if not named:
        return []
    queries = listed(named, _MOST_NAMED)
    return [comment(say("no_key_left", queries=queries, consequence=consequence))]
