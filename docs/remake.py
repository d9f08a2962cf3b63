"""Writes the tables of ``link.md``, which follow from the settings: ``python -m docs.remake``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from visualizer.settings.fields import NO_MASK, Field, fields_of
from visualizer.settings.settings import Selection, Settings
from visualizer.settings.training_settings import TRAINING
from visualizer.settings.watched_settings import WATCHED


def _held_by(holder: str) -> list[Field]:
    """The parameters of one value in ``Selection``; of "" its own."""
    return [field for field in fields_of(Selection).values() if field.holder == holder]


PAGE = Path(__file__).with_name("link.md")
_MADE = re.compile(r"(<!-- made -->\n).*?(<!-- end -->)", re.DOTALL)
_PARTS: Mapping[str, Iterable[Field]] = {
    "Model and masks": fields_of(Settings).values(),
    "View and place": _held_by(""),
    "Looks of the heads": _held_by("heads"),
    "Compare": _held_by("compare"),
    "Mask lab": _held_by("lab"),
    "Generate": _held_by("generate"),
    "Train": TRAINING.values(),
    "Pretrained models and recordings": WATCHED.values(),
}
_FREE = {
    "text": "any text",
    "cells": "an expression, or painted cells as the app writes them",
    "stage": "the path of a stage",
    "identifier": "small letters and digits",
    "interventions": "a stage's path, `-h1` for a head, `-r2` for a row, `-zero`, `-mean` or `-other`; `~` between",
    "intent": "`unsaid`, `causal`, `window:4+padding`, `expression:k <= q`, …",
}


def with_parameters(page: str) -> str:
    """A page whose tables are as the settings are now."""
    return _MADE.sub(lambda found: f"{found[1]}{parameters()}{found[2]}", page)


def parameters() -> str:
    """The parameters of a link as tables in Markdown."""
    lines: list[str] = []
    for title, fields in _PARTS.items():
        lines += [f"### {title}", "", "| parameter | default | values | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{each.parameter}` | {_default(each)} | {_values(each)} | {_meaning(each)} |" for each in fields
        ]
        lines.append("")
    return "\n".join(lines)


def _meaning(field: Field) -> str:
    label = field.label if field.label.endswith("?") else f"{field.label}."
    return _cell(f"{label} {field.help}")


def _default(field: Field) -> str:
    match field.kind:
        case "switch":
            return "`on`" if field.default else "`off`"
        case "names":
            return f"`{','.join(field.default) or NO_MASK}`"
        case "fraction":
            return f"`{field.default:g}`"
        case _:
            return f"`{_cell(str(field.default))}`" if field.default not in ("", ()) else ""


def _values(field: Field) -> str:
    match field.kind:
        case "integer" | "fraction":
            return f"{field.least:,g} to {field.most:,.15g}"
        case "switch":
            return "`on`, `off`"
        case "choice":
            return ", ".join(f"`{choice}`" for choice in field.choices)
        case "names":
            return f"`{NO_MASK}`, or with commas: {', '.join(f'`{choice}`' for choice in field.choices)}"
        case "places":
            return f"numbers from 0 to {field.most:g}, with commas"
        case _:
            return _cell(_FREE[field.kind])


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<pad>", "`<pad>`").replace("<s>", "`<s>`").replace(" * ", r" \* ")


if __name__ == "__main__":
    PAGE.write_text(with_parameters(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
