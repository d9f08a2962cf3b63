"""The place where an expression is wrong: the line that it is in, and a mark below the place."""

from __future__ import annotations

import streamlit as st

from headlight.masks.language import MaskContext, MaskExpressionError, from_mask_mod, parse
from model.texts import capitalized
from visualizer.safe_text import markdown_safe

_WIDEST = 38
"""Characters of a line that a narrow screen shows without wrapping."""


def complain(text: str, context: MaskContext | None, outcome: str = "") -> None:
    """Draw what is wrong with an expression as it stands, where, and in a sentence what comes of it."""
    if not text.strip():
        return
    expression = text
    try:
        expression = from_mask_mod(text)
        read = parse(expression)
        if context is not None:
            read.evaluate(context)
    except MaskExpressionError as error:
        point_out(expression, error, outcome)


def point_out(text: str, error: MaskExpressionError, outcome: str = "") -> None:
    """Draw an error and its place, and in a sentence what comes of it."""
    st.code(pointed_at(text, error), language=None)
    sentence = f"{capitalized(error)}{'' if str(error).endswith('?') else '.'}"
    said = f":red[{markdown_safe(sentence)}] {outcome}"
    st.markdown(f":small[{said}]")  # beside the code it would be cut; a caption would pale the red


def pointed_at(text: str, error: MaskExpressionError) -> str:
    """Two lines: what stands around the place of the error, and ``^`` below it.

    Args:
        text: what was written, of one line or several.
        error: what is wrong with it.
    """
    start = min(error.start, len(text))
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    line = text[first : len(text) if last < 0 else last].replace("\t", " ").replace("\r", " ")
    column, end = start - first, max(start + 1, error.end) - first
    if len(line) <= _WIDEST:
        return _marked(line, column, end)
    skipped = max(0, min(column - 8, len(line) - _WIDEST))
    shown = line[skipped : skipped + _WIDEST]
    before, after = "…" if skipped else "", "…" if skipped + _WIDEST < len(line) else ""
    return _marked(before + shown + after, column - skipped + len(before), end - skipped + len(before))


def _marked(line: str, start: int, end: int) -> str:
    return f"{line}\n{' ' * start}{'^' * max(1, min(end, len(line)) - start)}"
