"""The texts that the Mask lab itself prints: pictures of cells, and the code that it translates a mask to.

The code is looked through for its lines, which are known, and not run: conditions are read by the mask language.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from headlight.masks.language import MaskContext, MaskExpressionError, from_mask_mod, parse
from model.texts import texts_of
from visualizer.views.lab.mask_files.entries import Array, check_side

say = texts_of(__name__)
Cells = NDArray[np.bool_]

_ROWS = re.compile(r'"""\s*([1.]+(?:\s+[1.]+)*)\s*"""')
_HEADS = re.compile(r"^heads = \[(\d+(?:, \d+)*)\]", re.MULTILINE)
_ALLOWED = re.compile(r"^allowed = (.+?)(?:  # .*)?$", re.MULTILINE)
_RETURNED = re.compile(r"^def mask_mod\(b, h, q, k\):\s*return (.+)$", re.MULTILINE)
_SIZE = re.compile(
    r"^(?:T = (\d{1,4})|Tq, Tk = (\d{1,4}), (\d{1,4}))$|Q_LEN=(\d{1,4}), KV_LEN=(\d{1,4})", re.MULTILINE
)
_VECTOR = re.compile(r"^(\w+) = (?:torch\.tensor|np\.array)\(\[([\d,\s]+)\]", re.MULTILINE)
_TURNED = re.compile(r"^\w+ = ~allowed\b", re.MULTILINE)
_FILLED = re.compile(r"^\w+ = \w+\.where\(allowed, 0\.0, (-torch\.inf|-np\.inf|lowest)\)", re.MULTILINE)
_ASKED = {
    "query_token[q]": "token(q)",
    "key_token[k]": "token(k)",
    "query_is_padding[q]": "is_pad(q)",
    "key_is_padding[k]": "is_pad(k)",
    "query_segment[q]": "segment(q)",
    "key_segment[k]": "segment(k)",
}


def is_snippet(text: str) -> bool:
    """True if a text is such code, or a picture of cells with ones and dots."""
    return _is_picture(text) or bool(_ALLOWED.search(text) or _RETURNED.search(text) or _padding_of(text))


def read_snippet(text: str) -> Array:
    """The array that the code passes on, or the cells of a picture, True = 1.

    Raises:
        ValueError: it cannot be read.
    """
    if _is_picture(text):
        return _picture(text)
    padding = _padding_of(text)
    if not _ALLOWED.search(text) and not _RETURNED.search(text):
        return _vector(text, padding)[None]
    allowed = _pictured(text) if _ROWS.search(text) else _computed(text)
    if padding.endswith("key_padding_mask"):
        allowed = allowed & (_vector(text, padding) == 0)
    filled = _FILLED.search(text)
    if filled:
        lowest = np.finfo(np.float32).min if filled[1] == "lowest" else -np.inf
        return np.where(allowed, np.float32(0), np.float32(lowest))
    return ~allowed if _TURNED.search(text) else allowed


def _is_picture(text: str) -> bool:
    """Lines of ones and dots that are not numbers such as ``1.``."""
    lines = text.split("\n")
    is_of_cells = len(lines) > 1 and len(lines[0]) > 1 and len({len(line) for line in lines}) == 1
    return (
        is_of_cells
        and all(set(line) <= {"1", "."} for line in lines)
        and any(".." in line or len(lines) == len(line) for line in lines)
    )


def _picture(text: str) -> Cells:
    lines = text.split()
    check_side(len(lines), len(lines[0]))
    if len({len(line) for line in lines}) > 1:
        raise ValueError(say("uneven_rows"))
    return np.array([[cell == "1" for cell in line] for line in lines])


def _pictured(text: str) -> Cells:
    """The cells of the pictures, (H, Tq, Tk) where there is one for each head."""
    pictures = [_picture(found) for found in _ROWS.findall(text)]
    heads = _HEADS.search(text)
    if heads is None:
        return pictures[0]
    chosen = [int(index) for index in heads[1].split(", ")]
    if len({picture.shape for picture in pictures}) > 1 or max(chosen) >= len(pictures):
        raise ValueError(say("uneven_heads"))
    return np.stack([pictures[index] for index in chosen])


def _computed(text: str) -> Cells:
    """The cells of the condition on q and k."""
    size = _SIZE.search(text)
    condition = _RETURNED.search(text) or _ALLOWED.search(text)
    if size is None or condition is None:
        raise ValueError(say("no_size"))
    numbers = [int(number) for number in size.groups() if number]
    n_queries, n_keys = (numbers * 2)[:2]
    check_side(n_queries, n_keys)
    source = re.sub(r"^\((.*)\)\.expand\(.*\)$|^np\.broadcast_to\((.*), \(.*\)\)$", r"\1\2", condition[1])
    for asked, spelled in _ASKED.items():
        source = source.replace(asked, spelled)
    try:
        return parse(from_mask_mod(source)).evaluate(_context(text, n_queries, n_keys)).numpy()
    except MaskExpressionError as error:
        raise ValueError(say("no_condition", error=error)) from None


def _context(text: str, n_queries: int, n_keys: int) -> MaskContext:
    """Return what the code says of the tokens; nothing where it asks nothing."""
    facts = {
        name: tuple(_vector(text, name).tolist())
        for name in dict(_VECTOR.findall(text))
        if name[:3] in ("que", "key")
    }
    queries, keys = (0,) * n_queries, (0,) * n_keys
    try:
        return MaskContext(
            query_tokens=facts.get("query_token", queries),
            key_tokens=facts.get("key_token", keys),
            query_is_padding=tuple(map(bool, facts.get("query_is_padding", queries))),
            key_is_padding=tuple(map(bool, facts.get("key_is_padding", keys))),
            query_segments=facts.get("query_segment", queries),
            key_segments=facts.get("key_segment", keys),
        )
    except ValueError:
        raise ValueError(say("uneven_tokens")) from None


def _padding_of(text: str) -> str:
    """The name of the mask that has one number for each key; "" where there is none."""
    names = [name for name, _ in _VECTOR.findall(text) if name.endswith("mask")]
    return names[-1] if names else ""


def _vector(text: str, name: str) -> NDArray[np.integer] | Cells:
    """One number for each token, as the code says them: booleans where they are padding."""
    numbers = next(numbers for found, numbers in _VECTOR.findall(text) if found == name)
    vector = np.array([int(number) for number in numbers.replace("\n", " ").split(",") if number.strip()])
    return vector.astype(np.bool_) if name.endswith(("padding", "key_padding_mask")) else vector
