"""FlexAttention's way to write a mask, as an expression of this language.

A ``mask_mod`` says ``q_idx`` and ``kv_idx`` for the positions, and ``&``, ``|`` and ``~`` for and, or and not. It
is read as it is pasted: what it returns alone, a lambda, or whole functions with comments, constants and names of
their own, also where a field of one line has made blanks of their line breaks. Nothing of it is ever run.
"""

from __future__ import annotations

import ast
import re

from headlight.masks.language.parsing import require
from headlight.masks.language.pasted import Reader
from headlight.masks.language.pasted_text import PastedText
from headlight.masks.language.spelling import LONGEST, too_deep

_SIGNS_OF_IT = re.compile(r"[&|~^#\[.]|\b(q_idx|kv_idx|return|lambda|def|and_masks|or_masks)\b")


def from_mask_mod(text: str) -> str:
    """The expression that a ``mask_mod``, or what it returns, comes to.

    A text without anything of FlexAttention's comes back as it is.

    Raises:
        MaskExpressionError: it cannot be read, or asks for what is not known here; its place is one in ``text``.
    """
    if not _SIGNS_OF_IT.search(text) or len(text) > 4 * LONGEST:
        return text
    try:
        found = Reader(PastedText(text)).read()
        require("condition", found)
        return ast.unparse(found)
    except (RecursionError, MemoryError):
        raise too_deep(0, len(text)) from None
