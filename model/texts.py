"""Sentences, labels and helps, which stand in ``texts.toml`` beside the modules that say them.

A table of such a file is called like its module; ``{n_heads}`` in a text is a number or a word of the run, and
``{n_heads:head|heads}`` the number with its word.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

_ROOT = Path(__file__).parents[__name__.count(".")]  # in the wheel a package stands around ours


@dataclass(frozen=True)
class Texts:
    """The texts of one module, by name."""

    named: Mapping[str, str]

    def __call__(self, name: str, /, **given: object) -> str:
        """A text, with what it leaves open.

        Raises:
            KeyError: no text has the name, or something that it leaves open is not given.
        """
        return _COUNTING.vformat(self.named[name], (), given)


class _Counting(Formatter):
    """Writes a number with its word: ``1 head``, ``12 heads``."""

    def format_field(self, value: Any, format_spec: str) -> Any:  # noqa: ANN401 - as in what it extends
        one, has_words, several = format_spec.partition("|")
        return f"{value:,} {one if value == 1 else several}" if has_words else super().format_field(value, one)


_COUNTING = _Counting()


def texts_of(module: str) -> Texts:
    """The texts of a module, for ``say = texts_of(__name__)``."""
    package, _, name = module.rpartition(".")
    return Texts(_of_package(package)[name])


@cache
def _of_package(package: str) -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(_ROOT.joinpath(*package.split("."), "texts.toml").read_text(encoding="utf-8"))


def listed(parts: Iterable[object], most: int | None = None) -> str:
    """``a``, ``a and b``, ``a, b and c``; of more than ``most`` the first ones, as ``a, b and 1,200 more``."""
    named = [*map(str, parts)] or [""]
    if most is not None and len(named) > most:
        named[most:] = [f"{len(named) - most:,} more"]
    *others, last = named
    return f"{', '.join(others)} and {last}" if others else last


def capitalized(text: object) -> str:
    """A text as a sentence begins."""
    said = str(text)
    return said[:1].upper() + said[1:]
