"""Text made visible and safe to draw, whatever it holds."""

from __future__ import annotations

import html
import re
import string
import unicodedata
from collections.abc import Iterator

MAX_LABEL = 24
"""The most characters, as a person counts them, of a token as it is drawn."""


_MAX_CLUSTER = 16


_PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)


_STYLED_PICTOGRAPH = f"{_PICTOGRAPH}[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?"


_EMOJI = re.compile(
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"  # the flag of a part of a country
    f"|{_STYLED_PICTOGRAPH}(?:\u200d{_STYLED_PICTOGRAPH})*"
    "|[\U0001f1e6-\U0001f1ff]{2}"
    "|[0-9#*]\ufe0f?\u20e3"
)


_SYLLABLE = "[\u1100-\u115f]+[\u1160-\u11ff]*|[\uac00-\ud7a3][\u1160-\u11ff]+"  # Korean, letter by letter


_TOGETHER = re.compile(f"{_EMOJI.pattern}|{_SYLLABLE}|\r\n")


_JOINERS = "\u200c\u200d"


def graphemes(text: str) -> list[str]:
    """Split a text into characters as a person sees them.

    Follows the grapheme clusters of Unicode's annex 29 for combining marks, emoji sequences, flags, Korean
    syllables and line ends. Joined, the parts are the text.
    """
    return list(_graphemes(text))


def _graphemes(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        together = _TOGETHER.match(text, start)
        end = together.end() if together else start + 1
        if not _is_control(text[start]):
            while end < len(text) and _extends(text[end]):
                end += 1
        yield text[start:end]
        start = end


def _extends(character: str) -> bool:
    """True if a character belongs to the one before it."""
    return character >= "\u0300" and (character in _JOINERS or unicodedata.category(character)[0] == "M")


_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


_HIDDEN_CATEGORIES = _CONTROL_CATEGORIES | {"Co", "Cn", "Zs"}


_BLANK = re.compile(  # fillers and selectors that Unicode counts among letters, symbols and marks
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


_SIGNS = {"\n": "↵", "\r\n": "↵", "\t": "⇥"}


def visible(token: str) -> str:
    """A token as it is drawn: ``visible_whole``, shortened with an ellipsis where it is very long."""
    if len(token) <= MAX_LABEL and _is_plain(token):
        return visible_whole(token)
    enough = token[: (MAX_LABEL + 1) * _MAX_CLUSTER]
    clusters = graphemes(visible_whole("".join(map(_shortened, _graphemes(enough)))))
    return "".join(clusters if len(clusters) <= MAX_LABEL else [*clusters[: MAX_LABEL - 1], "…"])


def visible_whole(text: str) -> str:
    """A text of any length in which nothing is hidden, still to be drawn as text and not as markup.

    Characters that leave no mark on the screen or control something become escapes such as ⟨200B⟩, line ends ↵,
    tabs ⇥, leading and trailing spaces ·, and no text at all ∅. Emoji sequences stay whole. Applied to its own
    result it changes nothing.
    """
    inner = text.strip(" ")
    if not inner:
        return "·" * len(text) or "∅"
    before, _, after = text.partition(inner)
    seen = inner if _is_plain(inner) else "".join(map(_visible_cluster, _graphemes(inner)))
    return "·" * len(before) + seen + "·" * len(after)


def _is_plain(text: str) -> bool:
    """True if every character is one that a plain keyboard has: most texts are, and are known at once."""
    return text.isascii() and text.isprintable()


def markdown_safe(text: str) -> str:
    """``visible_whole`` for ``st.markdown``, labels, captions and options: drawn as typed, never as markup.

    A backslash stops Markdown. It does not stop what Streamlit does afterwards with arrows, dashes, addresses and
    ``:streamlit:``; an invisible word joiner in front of the character that completes one does.
    """
    return _MARKDOWN.sub(r"\\\g<0>", _REWRITTEN.sub("\u2060\\g<0>", visible_whole(text)))


def as_code(text: str) -> str:
    """Text as code within a line of Markdown, whatever backticks it holds."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{visible_whole(text)}{space}{fence}"


def plotly_safe(text: str) -> str:
    """``visible_whole`` for ticks, titles and hovers of Plotly, which reads some HTML, LaTeX and ``%{...}``."""
    escaped = html.escape(visible_whole(text), quote=False)
    return escaped.replace("$", "&#36;").replace("%{", "%&#123;")


_MARKDOWN = re.compile(f"[{re.escape(string.punctuation)}]")


_REWRITTEN = re.compile(r"(?<=[-<])-|(?<=-)>|(?<=[<>~])=|(?<=\S)[:@]|(?<=[wW]{3})\.")


def _shortened(cluster: str) -> str:
    """A character without the marks that would cover everything around it."""
    return cluster if len(cluster) <= _MAX_CLUSTER else f"{cluster[:_MAX_CLUSTER]}…"


def _visible_cluster(cluster: str) -> str:
    if cluster in _SIGNS:
        return _SIGNS[cluster]
    emoji = _EMOJI.match(cluster)
    intact = emoji.group() if emoji else ""
    rest = "".join(f"⟨{ord(c):04X}⟩" if _is_hidden(c) else c for c in cluster[len(intact) :])
    is_mark_alone = unicodedata.category(rest[:1] or " ")[0] == "M" and not intact
    return f"◌{rest}" if is_mark_alone else intact + rest


def _is_hidden(character: str) -> bool:
    """True if a character leaves no mark of its own on the screen."""
    if " " <= character <= "~":
        return False
    return bool(_BLANK.match(character)) or unicodedata.category(character) in _HIDDEN_CATEGORIES


def _is_control(character: str) -> bool:
    """True if a character ends what came before and takes no combining mark."""
    return not " " <= character <= "~" and unicodedata.category(character) in _CONTROL_CATEGORIES
