"""A table of attentions: the mask of each in words, and what is wrong with it, printed or in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from headlight.findings import Judged
from headlight.mask_words import bias_in_words
from headlight.masks.lint import Finding
from headlight.masks.mask_case import counted

_COLUMNS = ("attention", "heads", "queries and keys", "mask", "bias")


@dataclass(frozen=True, eq=False)
class Report:
    """The result of ``check``; printed, a table.

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

    @property
    def summary(self) -> str:
        """A sentence on how much was seen, and how much of it is wrong."""
        if not self.rows:
            return "No attention was seen."
        n_errors, n_warnings = (
            sum(finding.severity == severity for _, finding in self.findings) for severity in ("error", "warning")
        )
        seen = f"{count_of(len(self.rows), 'attention')} seen"
        return f"{seen}: {count_of(n_errors, 'error')}, {count_of(n_warnings, 'warning')}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings, each once with all that it holds for, and the notes."""
        said = (f"{named(paths)}: {_sentence(finding)}" for paths, finding in said_once(self.findings))
        return (*said, *self.notes)

    def __str__(self) -> str:
        lines = [*_aligned([_COLUMNS, *(cells_of(row) for row in self.rows)]), ""] if self.rows else []
        return "\n".join([*lines, self.summary, *self.sentences])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:left'>{html.escape(column)}</th>" for column in _COLUMNS)
        rows = "".join(
            f"<tr>{''.join(f'<td style=text-align:left>{html.escape(cell)}</td>' for cell in cells_of(row))}</tr>"
            for row in self.rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if self.rows else ""
        return f"{table}{self.said_html()}"

    def said_html(self) -> str:
        """The summary and the sentences as HTML."""
        items = "".join(f"<li>{html.escape(text)}</li>" for text in self.sentences)
        return f"<p>{html.escape(self.summary)}</p><ul>{items}</ul>"


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
    return heads if n_keys >= n_heads else f"{heads} share {n_keys} key/value head{'s' if n_keys > 1 else ''}"


def _sizes(row: Judged) -> str:
    _, _, n_queries, n_keys = row.attention.shape
    n_sinks = row.attention.sinks
    sinks = f" and {'a sink' if n_sinks == 1 else f'{n_sinks} sinks'}" if n_sinks else ""
    other = " of another sequence" if row.attention.is_cross else ""
    return f"{counted('query', n_queries)}, {counted('key', n_keys - n_sinks)}{sinks}{other}"


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


def count_of(number: int, name: str) -> str:
    """``no errors``, ``1 error`` or ``2 errors``."""
    return f"{number or 'no'} {name}{'' if number == 1 else 's'}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows of a table with columns of one width, those that are empty left out."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(len(cell) for cell in column) for column in columns]
    lines = zip(*columns, strict=True)
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
