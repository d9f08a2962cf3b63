"""A text as the sequences that it holds."""

from __future__ import annotations


def lines_of(text: str) -> tuple[str, ...]:
    """The sequences that a text is: its lines without the blank ones; an empty one where there is no other."""
    if "\n" not in text:
        return (text,)
    return tuple(line for line in text.replace("\r\n", "\n").split("\n") if line.strip()) or ("",)
