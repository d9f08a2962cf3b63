"""The limits of what can be drawn, checked before anything is computed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from model.texts import listed, texts_of
from visualizer.runs.needed_memory import bytes_for
from visualizer.runs.refusals import WayOut
from visualizer.runs.tokens import Encoded, encode, first_tokens, target_lines, tokenize
from visualizer.settings.fields import MAX_SEQUENCES, MAX_TEXT, MAX_TOKENS, TRAINED
from visualizer.settings.lines import lines_of
from visualizer.settings.settings import Settings, TokenKind

say = texts_of(__name__)

MAX_BYTES = 2**30
"""The most memory that one recorded run may take."""

_MIB = 2**20


def problem_with_size(settings: Settings, encoded: Encoded, n_bytes: int) -> str | None:
    """Say in one sentence why these tokens cannot be run in ``n_bytes``, and what to do; None where they can."""
    if not encoded.sources[0]:
        return say("nothing")
    return _too_much_memory(settings, encoded, n_bytes)


def problem_with_text(settings: Settings) -> str | None:
    """Say why a text cannot be read, before anything is kept of it: it is too long, or its lines do not fit."""
    for name in ("text", "target"):
        length = len(getattr(settings, name))
        if length > MAX_TEXT:
            return say("too_long", name=name, length=length, most=MAX_TEXT, most_tokens=MAX_TOKENS)
    if problem := _too_many_lines(settings) or _lines_without_partner(settings):
        return problem
    return None if settings.weights == TRAINED else _too_many_tokens(settings)


def way_out(settings: Settings) -> WayOut | None:
    """The settings with as much of the text and the target as can be drawn; None where that is all of them."""
    if settings.weights == TRAINED:
        return None
    n_most = _tokens_that_fit(settings)
    shorter = _shortened(settings, n_most)
    n_lines = _lines_that_fit(shorter)
    fitting = replace(shorter, text=_lines(shorter.text, n_lines), target=_lines(shorter.target, n_lines))
    changes = {name: getattr(fitting, name) for name in ("text", "target")}
    changes = {name: text for name, text in changes.items() if text != getattr(settings, name)}
    if not changes:
        return None
    if n_lines < len(lines_of(settings.text)):
        return WayOut(say("use_lines", n=n_lines), changes)
    return use_tokens(n_most, n_lines, changes)


def use_tokens(n_tokens: int, n_lines: int, changes: Mapping[str, Any]) -> WayOut:
    """The way out that leaves so many tokens of each line."""
    label = say("use_tokens_of_each", n=n_tokens) if n_lines > 1 else say("use_tokens", n=n_tokens)
    return WayOut(label, changes)


def _tokens_that_fit(settings: Settings) -> int:
    """Return the most tokens of each line that can be drawn if one line is to fit into memory; all if none fits."""
    most = MAX_TOKENS - settings.pad
    if problem_with_text(_shortened(settings, most)):
        return most

    def bytes_of_one(n_tokens: int) -> int:
        shorter = _shortened(settings, n_tokens)
        return bytes_for(shorter, encode(shorter), 1)

    if bytes_of_one(most) <= MAX_BYTES:
        return most
    return bisect_right(range(1, most), MAX_BYTES, key=bytes_of_one) or most


def _shortened(settings: Settings, n_tokens: int) -> Settings:
    """The settings with so many tokens of each line at most; a target has one less, behind its start token."""
    shorter = replace(settings, text=_beginning(settings.text, settings.tokens, n_tokens))
    if settings.architecture != "encoder-decoder":
        return shorter
    return replace(shorter, target=_beginning(settings.target, settings.tokens, n_tokens - 1))


def _lines_that_fit(settings: Settings) -> int:
    """Return the number of lines of a text that fit into memory together; all where that cannot be told yet."""
    n_lines = len(lines_of(settings.text))
    if n_lines == 1 or problem_with_text(settings):
        return n_lines
    return _sequences_that_fit(settings, encode(settings))


def _sequences_that_fit(settings: Settings, encoded: Encoded) -> int:
    n_lines = len(encoded.sources)
    return next((n for n in range(n_lines, 1, -1) if bytes_for(settings, encoded, n) <= MAX_BYTES), 1)


def _lines(text: str, n_lines: int) -> str:
    lines = lines_of(text)
    return text if len(lines) <= n_lines else "\n".join(lines[:n_lines])


def _beginning(text: str, kind: TokenKind, n_tokens: int) -> str:
    """The first lines of a text that can be drawn, each up to so many tokens; the text itself where that is all."""
    lines = lines_of(text[:MAX_TEXT])
    shortened = [first_tokens(line, kind, n_tokens) for line in lines[:MAX_SEQUENCES]]
    is_all = len(text) <= MAX_TEXT and tuple(shortened) == lines
    return text if is_all else "\n".join(shortened)


def _too_many_lines(settings: Settings) -> str | None:
    n_lines = len(lines_of(settings.text))
    return say("too_many_lines", n_lines=n_lines, most=MAX_SEQUENCES) if n_lines > MAX_SEQUENCES else None


def _lines_without_partner(settings: Settings) -> str | None:
    if settings.architecture != "encoder-decoder" or settings.weights == TRAINED:
        return None
    try:
        target_lines(settings)
    except ValueError as error:
        return str(error)
    return None


def _too_many_tokens(settings: Settings) -> str | None:
    starts = {"text": 0, "target": 1} if settings.architecture == "encoder-decoder" else {"text": 0}
    for name, n_start in starts.items():
        lines = lines_of(getattr(settings, name))
        n_tokens = max(_count_if_many(line, settings.tokens) for line in lines) + n_start + settings.pad
        if n_tokens > MAX_TOKENS:
            what = name if len(lines) == 1 else say("longest_line", name=name)
            how = _SHORTEN[settings.tokens]
            if settings.pad:
                return say("too_many_padded", what=what, n_tokens=n_tokens, most=MAX_TOKENS, how=how)
            return say("too_many_tokens", what=what, n_tokens=n_tokens, most=MAX_TOKENS, how=how)
    return None


def _count_if_many(line: str, kind: TokenKind) -> int:
    """The number of tokens of a line; 0 where these are so few characters that they cannot be too many."""
    most = len(line) * (_MOST_BYTES if kind == "bytes" else 1)
    return len(tokenize(line, kind)) if most > MAX_TOKENS // 2 else 0


_MOST_BYTES = 4  # of a character in UTF-8
_SHORTEN = {
    "words": say("shorten"),
    "characters": say("shorten_or_words"),
    "bytes": say("shorten_or_coarser"),
}


def _too_much_memory(settings: Settings, encoded: Encoded, needed: int) -> str | None:
    if needed <= MAX_BYTES:
        return None
    n_lines, n_fitting = len(encoded.sources), _sequences_that_fit(settings, encoded)
    if n_fitting < n_lines:
        advice = say("fewer_lines", n_fitting=n_fitting, n_lines=n_lines)
    else:
        changes = _fewer_layers(settings, encoded)
        advice = say("fewer_layers", changes=changes) if changes else say("less")
    return say("too_much_memory", needed=needed / _MIB, most=MAX_BYTES // _MIB, advice=advice)


def _fewer_layers(settings: Settings, encoded: Encoded) -> str:
    """Say how far to lower ``n_layers``, and ``n_decoder_layers`` where it is apart; empty for single layers."""
    deepest = max(settings.n_layers, settings.depth)
    fewer = (_at_most(settings, n_layers) for n_layers in range(deepest - 1, 0, -1))
    less = next((less for less in fewer if bytes_for(less, encoded) <= MAX_BYTES), _at_most(settings, 1))
    numbers = ((name, getattr(settings, name), getattr(less, name)) for name in ("n_layers", "n_decoder_layers"))
    return listed(say("change", name=name, now=now, less=to) for name, now, to in numbers if now != to)


def _at_most(settings: Settings, n_layers: int) -> Settings:
    return replace(
        settings,
        n_layers=min(settings.n_layers, n_layers),
        n_decoder_layers=min(settings.n_decoder_layers, n_layers),
    )
