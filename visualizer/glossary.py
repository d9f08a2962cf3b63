"""Every symbol and every term of the page, explained in a sentence or two, as ``glossary.toml`` has them.

In the explanations ``[words]`` or ``[words](entry)`` stands for words that open an entry.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from model.texts import texts_of
from visualizer.masks import MASK_KINDS

say = texts_of(__name__)


@dataclass(frozen=True)
class Entry:
    """One symbol or term.

    Attributes:
        name: in words, lower-case but for names; what opens it.
        text: one or two sentences. ``[words](entry)`` opens another entry.
        symbol: how formulas and shapes write it; empty for a term without one.
        size: the axis or number whose size in a run belongs to it, such as ``D``; empty for none.
        section: where "Attention Is All You Need" has it, or who else does; empty where nobody in particular.
        latex: how formulas write it in LaTeX, without spaces, braces and indices.
        also: other words that a person may look for.
    """

    name: str
    text: str
    symbol: str = ""
    size: str = ""
    section: str = ""
    latex: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class Piece(NamedTuple):
    """A part of a text, and the name of the entry that it opens; empty for plain words."""

    text: str
    entry: str = ""


def pieces(marked: str) -> tuple[Piece, ...]:
    """A text with marks as its parts."""
    found: list[Piece] = []
    end = 0
    for mark in _MARK.finditer(marked):
        found += [Piece(marked[end : mark.start()]), Piece(mark[1], mark[2] or mark[1].lower())]
        end = mark.end()
    return tuple(piece for piece in (*found, Piece(marked[end:])) if piece.text)


def shape_pieces(shape: str) -> tuple[Piece, ...]:
    """``(B H*Dh) = (1, 64)`` with each symbol of an axis as a part that opens its entry."""
    symbolic, equals, sizes = shape.partition(") = ")
    parts = [Piece(part, AXES.get(part, "")) for part in re.split(r"([A-Za-z]+)", symbolic) if part]
    return (*parts, Piece(equals + sizes)) if equals else (Piece(shape),)


def axes_in_words(shape: str) -> str:
    """``B batch, H heads`` for the symbols of the axes of a shape."""
    symbols = dict.fromkeys(re.findall(r"[A-Za-z]+", shape.partition(") = ")[0].rpartition("(")[2]))
    return ", ".join(f"{symbol} {AXES[symbol]}" for symbol in symbols if symbol in AXES)


def mask_piece(mask: str) -> Piece:
    """The name of a mask, such as ``sliding_window``, as words that open its entry."""
    kind = MASK_KINDS[mask]
    return Piece(kind.label.lower(), kind.term)


def masks_explained() -> str:
    """Describe each mask in a list in Markdown."""
    names = [kind.term for kind in MASK_KINDS.values()]
    said = ("".join(piece.text for piece in pieces(GLOSSARY[name].text)) for name in names)
    lines = (f"- **{name.capitalize()}**: {text}" for name, text in zip(names, said, strict=True))
    return "\n".join((say("all_masks"), "", *lines))


def entries_of_formula(latex: str) -> tuple[Entry, ...]:
    """The entries of the symbols of a formula, in order, each once.

    Raises:
        KeyError: no entry has one of them.
    """
    for letters, name in _TOGETHER.items():
        latex = latex.replace(letters, rf"\operatorname{{{name}}}")
    return tuple(dict.fromkeys(_BY_LATEX[symbol] for symbol in _symbols(_WORDS.sub(" ", latex))))


def _symbols(latex: str) -> Iterator[str]:
    """The symbols of a formula: with their indices where they mean something together, else one after the other."""
    for name, symbol, indices in _SYMBOL.findall(latex):
        if name:
            if name not in _ORDINARY:
                yield name
            continue
        parts = _INDEX.findall(indices)
        known = next((n for n in range(len(parts), -1, -1) if _bare(symbol, *parts[:n]) in _BY_LATEX), 0)
        if symbol not in _ORDINARY:
            yield _bare(symbol, *parts[:known])
        yield from _symbols(" ".join(parts[known:]))


def _bare(*latex: str) -> str:
    return re.sub(r"[{}\s]", "", "".join(latex))


_MARK = re.compile(r"\[([^\]]+)\](?:\(([^)]+)\))?")
_WORDS = re.compile(r"\\text\s*\{[^}]*\}|\\(?:begin|end)\{[^}]*\}")
_INDEX = re.compile(r"[_^](?:\{(?:[^{}]|\{[^{}]*\})*\}|\w|\\[A-Za-z]+)")
_SYMBOL = re.compile(
    r"\\operatorname\{(\w+)\}"
    r"|(\\(?:hat|tilde)\s*[A-Za-z]|\\[A-Za-z]+|[A-Za-z]'?)"
    rf"((?:{_INDEX.pattern})*)"
)
_TOGETHER = {r"\sqrt{d_k}": "scaling", r"\text{head } h": "head", r"\mathbb{R}": "R"}
"""The words that mean something only as they are written, as the name of a function."""
_ORDINARY = (
    *(
        r"\in",
        r"\times",
        r"\frac",
        r"\sqrt",
        r"\dots",
        r"\max",
        r"\cdot",
        r"\left",
        r"\right",
        r"\lfloor",
        r"\rfloor",
    ),
    *(r"\le", r"\ge", r"\ne", r"\land", r"\lor", r"\lnot", r"\bmod"),
    *("max", "min", "tanh", "sigmoid", "exp", "log", "sqrt", "bucket", "causalbucket"),
)
"""Signs that mean what they mean everywhere."""


def _read(path: Path) -> dict[str, tuple[Entry, ...]]:
    """The entries of a file by their kind: ``axis``, ``tensor`` and ``term``."""
    kinds = tomllib.loads(path.read_text(encoding="utf-8")).items()
    return {kind: tuple(_entry(**described) for described in entries) for kind, entries in kinds}


def _entry(*, latex: Sequence[str] = (), also: Sequence[str] = (), **texts: str) -> Entry:
    return Entry(**texts, latex=tuple(latex), also=tuple(also))


_READ = _read(Path(__file__).with_name("glossary.toml"))

GLOSSARY: Mapping[str, Entry] = {entry.name: entry for entries in _READ.values() for entry in entries}
"""Every entry by its name."""

AXES: Mapping[str, str] = {entry.symbol: entry.name for entry in _READ["axis"]}
"""The entry of each axis of shapes by its symbol."""


_BY_LATEX = {latex: entry for entry in GLOSSARY.values() for latex in entry.latex}
