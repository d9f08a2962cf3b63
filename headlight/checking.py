"""A table of every attention of a model: its mask in words, and what is wrong with it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headlight.findings import Judged, judge
from headlight.inputs import padding_of, tokens_of
from headlight.watching import watch
from headlight.words import bias_in_words
from model.mask_tools.lint import Finding
from model.mask_tools.mask_case import counted

_COLUMNS = ("attention", "heads", "queries and keys", "mask", "bias")


@dataclass(frozen=True, eq=False)
class Report:
    """What ``check`` found; printed, a table.

    Attributes:
        rows: each attention, in the order computed.
        notes: what could not be seen, and what holds for the whole model, a sentence each.
    """

    rows: tuple[Judged, ...]
    notes: tuple[str, ...]

    @property
    def findings(self) -> tuple[tuple[str, Finding], ...]:
        """Everything that was found, each with the path of its attention."""
        return tuple((row.attention.path, finding) for row in self.rows for finding in row.findings)

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors, a sentence each."""
        return tuple(
            f"{path}: {finding.title}. {finding.why}"
            for path, finding in self.findings
            if finding.severity == "error"
        )

    def __str__(self) -> str:
        lines = _aligned([_COLUMNS, *(cells_of(row) for row in self.rows)]) if self.rows else []
        said = [f"{named(paths)}: {_sentence(finding)}" for paths, finding in said_once(self.findings)]
        summary = _summary(self)
        return "\n".join([*lines, *([""] if lines else []), summary, *said, *self.notes])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:left'>{html.escape(column)}</th>" for column in _COLUMNS)
        rows = "".join(
            f"<tr>{''.join(f'<td style=text-align:left>{html.escape(cell)}</td>' for cell in cells_of(row))}</tr>"
            for row in self.rows
        )
        said = [f"{named(paths)}: {_sentence(finding)}" for paths, finding in said_once(self.findings)]
        items = "".join(f"<li>{html.escape(text)}</li>" for text in (*said, *self.notes))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if self.rows else ""
        return f"{table}<p>{html.escape(_summary(self))}</p><ul>{items}</ul>"


def check(
    model: nn.Module,
    *args: Any,  # noqa: ANN401 - what any model is called with
    padding: Tensor | None = None,
    causal: bool | None = None,
    **kwargs: Any,  # noqa: ANN401
) -> Report:
    """Run a model once and say of each attention what its mask is and what is wrong with it. Raises nothing.

    Padding is read from inputs by their names: ``attention_mask`` (0 is padding), ``src_key_padding_mask`` (True is
    padding) and their like. An error that the model raises becomes a note, beside what was seen until then.

    Args:
        model: any module, as it is: in training, dropout is on.
        args: what it is called with.
        padding: (B, T) bool, True = padding, where the inputs do not say it; it is not passed to the model.
        causal: whether no token may see a later one; None judges it by the masks, and by a name such as
            ``LlamaForCausalLM``.
        kwargs: what the model is called with by name.
    """
    notes = []
    with torch.no_grad(), watch(model, to="cpu") as trace:
        try:
            model(*args, **kwargs)
        except Exception as error:
            notes.append(f"The model raised {type(error).__name__}: {error}")
    known = padding_of(kwargs, padding)
    rows = judge(trace, known, causal, type(model).__name__)
    tokens = tokens_of(args, kwargs)
    if tokens is not None and (along := _along_the_batch(rows, tokens, knows_padding=known.encoder is not None)):
        notes.append(along)
    return Report(rows, (*notes, *trace.notes))


def _along_the_batch(rows: Sequence[Judged], tokens: Tensor, *, knows_padding: bool) -> str:
    """A sentence where attention goes along the first axis of (B, T) ids, as if it were that of the tokens."""
    batch, length = tokens.shape[:2]
    if batch == length or (tokens.is_floating_point() and not knows_padding):
        return ""
    for row in rows:
        n_sequences, _, n_queries, n_keys = row.attention.shape
        if n_queries == n_keys == batch and n_sequences == length:
            return (
                f"{row.attention.path} attends along the first axis of the input, whose size is {batch}, and not "
                f"along the second, {length}: if the first one is the batch, sequences see each other and tokens "
                "do not; nn.MultiheadAttention and nn.Transformer need batch_first=True for that."
            )
    return ""


def cells_of(row: Judged) -> tuple[str, ...]:
    """Path, heads, sizes, mask and bias of an attention in words; "" where it has no bias."""
    attention = row.attention
    masks = [f"{where}: {said.words}" if where else said.words for where, said in row.descriptions[:3]]
    if (more := len(row.descriptions) - 3) > 0:
        masks.append(f"{more} more")
    bias = bias_in_words(attention.bias, attention.allowed)
    return attention.path, _heads(row), _sizes(row), "; ".join(masks), bias


def _heads(row: Judged) -> str:
    n_heads, n_keys = row.attention.n_heads, row.attention.key_heads
    heads = f"{n_heads} head{'s' if n_heads > 1 else ''}"
    return heads if n_keys == n_heads else f"{heads} share {n_keys} key/value head{'s' if n_keys > 1 else ''}"


def _sizes(row: Judged) -> str:
    _, _, n_queries, n_keys = row.attention.shape
    return f"{counted('query', n_queries)}, {counted('key', n_keys)}"


def said_once(findings: Sequence[tuple[str, Finding]]) -> list[tuple[tuple[str, ...], Finding]]:
    """The findings, each with the paths of its attentions: those that say the same of several as one."""
    paths: dict[str, list[str]] = {}
    first: dict[str, Finding] = {}
    for path, finding in findings:
        paths.setdefault(_sentence(finding), []).append(path)
        first.setdefault(_sentence(finding), finding)
    return [(tuple(where), first[sentence]) for sentence, where in paths.items()]


def named(paths: Sequence[str]) -> str:
    """The names of some attentions, of many the first and how many more."""
    return ", ".join(paths) if len(paths) < 4 else f"{paths[0]} and {len(paths) - 1} more"


def _sentence(finding: Finding) -> str:
    return f"{finding.severity}: {finding.title}. {finding.why} {finding.mend}"


def _summary(report: Report) -> str:
    n_errors, n_warnings = (
        sum(finding.severity == severity for _, finding in report.findings) for severity in ("error", "warning")
    )
    seen = f"{len(report.rows)} attention{'' if len(report.rows) == 1 else 's'} seen"
    if not report.rows:
        return "No attention was seen."
    return f"{seen}: {_count(n_errors, 'error')}, {_count(n_warnings, 'warning')}."


def _count(number: int, name: str) -> str:
    return f"{number or 'no'} {name}{'' if number == 1 else 's'}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows of a table with columns of one width, those that are empty left out."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(len(cell) for cell in column) for column in columns]
    lines = zip(*columns, strict=True)
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
