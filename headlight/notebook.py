"""A trace in a notebook: each attention with its mask, all its heads, and what is wrong with it.

The images are PNG files inside the HTML, written here: they are seen where no script runs, as on a page that shows
a saved notebook.
"""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import adaptive_max_pool2d

from headlight.attentions import Attention
from headlight.findings import Judged, judge, remarks_on
from headlight.inputs import Inputs
from headlight.patterns import Folded
from headlight.report import Report, cells_of
from model.masks import with_leading_axes

_MOST_PIXELS = 96
"""A longer side is shown by the largest of the weights that share a pixel."""
_MOST_IMAGES = 512
_BLOCKED = 255
_LIGHT, _DARK, _GREY = (255, 255, 255), (74, 28, 150), (205, 205, 212)
_STEPS = [
    tuple(round(a + (b - a) * (i / 254) ** 0.7) for a, b in zip(_LIGHT, _DARK, strict=True)) for i in range(255)
]
_PALETTE = bytes(part for color in (*_STEPS, _GREY) for part in color)
_IMAGE = "width:96px;height:96px;object-fit:contain;image-rendering:pixelated;border:1px solid #8888"


def said_of(attentions: Sequence[Attention], notes: Sequence[str], inputs: Inputs) -> str:
    """Say what is wrong with some attentions, as HTML.

    Args:
        attentions: those of a trace.
        notes: what could not be seen, a sentence each.
        inputs: what the model was called with.
    """
    rows = judge(attentions, inputs.padding, None, inputs.model)
    return Report(rows, (*notes, *remarks_on(attentions))).said_html()


def images_of(attentions: Sequence[Attention], inputs: Inputs, tokens: Sequence[str] = ()) -> str:
    """The images of some attentions as HTML, of the first sequence where they are of several.

    Args:
        attentions: those of a trace.
        inputs: what the model was called with.
        tokens: the text of each token; places are numbered where they are not as many as queries or keys.
    """
    most_heads = max(1, _MOST_IMAGES // max(1, len(attentions)))
    rows = judge(attentions, inputs.padding, None, inputs.model)
    pictures = "".join(_row(row, tokens, most_heads) for row in rows)
    return f"<div>{_LEGEND if pictures else ''}{pictures}</div>"


def said_of_steps(n_operations: int, steps: Sequence[Folded]) -> str:
    """Say how many operations were kept, and which of them are known steps, as HTML; "" where none was."""
    if not n_operations:
        return ""
    times = Counter(step.pattern.title for step in steps)
    n_folded = sum(len(step.stages) for step in steps)
    named = ", ".join(f"{title} × {n}" for title, n in times.most_common())
    which = f"{len(steps):,} known step{'' if len(steps) == 1 else 's'}: {named}"
    known = f"; {n_folded:,} of them are {which}" if steps else ""
    return f"<p><small>{n_operations:,} operations were kept{html.escape(known)}.</small></p>"


_LEGEND = (
    "<p><small>White is a weight of 0, dark a weight of 1, grey is blocked; rows are queries, columns keys. "
    "Point at a picture for its largest weight.</small></p>"
)


def _row(row: Judged, tokens: Sequence[str], most_heads: int) -> str:
    path, *about = cells_of(row)
    said = " · ".join(html.escape(text) for text in about if text)
    title = f"<b>{html.escape(path)}</b> <small>{said}{_left_out(row, most_heads)}</small>"
    return (
        f"<p style='margin:8px 0 2px'>{title}</p>"
        f"<div style='display:flex;flex-wrap:wrap;gap:6px'>{''.join(_figures(row, tokens, most_heads))}</div>"
    )


def _left_out(row: Judged, most_heads: int) -> str:
    """Say which part of an attention has no picture."""
    weights = row.attention.weights
    if weights is None:
        return " · weights not kept"
    n_items, n_heads = weights.shape[:2]
    sequences = f" · sequence 1 of {n_items}" if n_items > 1 else ""
    return f"{sequences} · {most_heads} of {n_heads} heads shown" if n_heads > most_heads else sequences


def _figures(row: Judged, tokens: Sequence[str], most_heads: int) -> list[str]:
    """The mask, where there is one, and the weights of each head."""
    attention = row.attention
    allowed = None if attention.allowed is None else _of_first_sequence(attention.allowed, attention)
    figures = []
    if allowed is not None:
        figures += [
            _figure(allowed[head].float(), allowed[head], name, f"{name}: grey is blocked")
            for head, name in _masks(allowed)[:most_heads]
        ]
    if attention.weights is not None:
        for head, weights in enumerate(_of_first_sequence(attention.weights, attention)[:most_heads]):
            may_attend = None if allowed is None else allowed[min(head, len(allowed) - 1)]
            figures.append(_figure(weights, may_attend, f"head {head}", _largest(weights, head, tokens)))
    return figures


def _masks(allowed: Tensor) -> list[tuple[int, str]]:
    """The number and name of each head's mask, (1 or H, Tq, Tk); of one mask where all heads have the same."""
    if bool((allowed == allowed[:1]).all()):
        return [(0, "mask")]
    return [(head, f"mask of head {head}") for head in range(len(allowed))]


def _of_first_sequence(values: Tensor, attention: Attention) -> Tensor:
    """(1 or H, Tq, Tk) on the CPU, out of what broadcasts to (B, H, Tq, Tk)."""
    return with_leading_axes(values.detach().cpu())[0].expand(-1, *attention.shape[2:])


def _largest(weights: Tensor, head: int, tokens: Sequence[str]) -> str:
    """Say where the largest weight of a head is."""
    finite = weights.float().nan_to_num(-1.0)
    query, key = divmod(int(finite.argmax()), weights.shape[1])
    named = [tokens[i] if len(tokens) == n else str(i) for i, n in zip((query, key), weights.shape, strict=True)]
    return f"head {head}: largest weight {float(finite[query, key]):.3f}, query {named[0]} to key {named[1]}"


def _figure(values: Tensor, allowed: Tensor | None, name: str, title: str) -> str:
    data = base64.b64encode(png(_colors(values, allowed))).decode()
    said = html.escape(title, quote=True)
    return (
        f"<figure style='margin:0;text-align:center'><img style='{_IMAGE}' alt='{said}' title='{said}' "
        f"src='data:image/png;base64,{data}'><figcaption><small>{name}</small></figcaption></figure>"
    )


def _colors(values: Tensor, allowed: Tensor | None) -> Tensor:
    """The number of each pixel's colour, uint8."""
    size = [min(side, _MOST_PIXELS) for side in values.shape]
    weights = adaptive_max_pool2d(values.float().nan_to_num(0.0)[None], size)[0]
    steps = (weights.clamp(0, 1) * 254).round().to(torch.uint8)
    if allowed is None:
        return steps
    is_open = adaptive_max_pool2d(allowed.float()[None], size)[0] > 0
    return steps.masked_fill(~is_open, _BLOCKED)


def png(colors: Tensor) -> bytes:
    """A PNG file with a colour of the palette for each pixel, (rows, columns) uint8 (ISO/IEC 15948:2004, 11.2)."""
    n_rows, n_columns = colors.shape
    lines = b"".join(b"\0" + bytes(row) for row in colors.tolist())  # each begins with its filter: none
    header = struct.pack(">IIBBBBB", n_columns, n_rows, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", _PALETTE), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(kind, content) for kind, content in parts)


def _part(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
