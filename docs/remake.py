"""Writes what follows from the code in ``link.md`` and ``library.md``: ``python -m docs.remake``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import headlight
from visualizer.settings.fields import NO_MASK, Field
from visualizer.settings.settings import FIELDS
from visualizer.settings.training_settings import TRAINING
from visualizer.settings.watched_settings import WATCHED

DOCS = Path(__file__).parent
_MADE = re.compile(r"(<!-- made -->\n).*?(<!-- end -->)", re.DOTALL)
_PARTS: Mapping[str, Iterable[Field]] = {
    "Model, masks and view": FIELDS.values(),
    "Train": TRAINING.values(),
    "Any model": WATCHED.values(),
}
_FREE = {
    "text": "any text",
    "cells": "an expression, or painted cells as the app writes them",
    "stage": "the path of a stage",
    "identifier": "small letters and digits",
    "intent": "`unsaid`, `causal`, `window:4+padding`, `expression:k <= q`, …",
}


def with_made(page: Path) -> str:
    """A page whose made part is as the code is now."""
    text = page.read_text(encoding="utf-8")
    made = {"link.md": parameters, "library.md": library}[page.name]
    return _MADE.sub(lambda found: f"{found[1]}{made()}{found[2]}", text)


def parameters() -> str:
    """The parameters of a link as tables in Markdown."""
    lines: list[str] = []
    for title, fields in _PARTS.items():
        lines += [f"### {title}", "", "| parameter | default | values | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{field.name}` | {_default(field)} | {_values(field)} | {_meaning(field)} |" for field in fields
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


def library() -> str:
    """The public names of ``headlight`` with their docstrings, in Markdown."""
    functions = [name for name in headlight.__all__ if inspect.isfunction(getattr(headlight, name))]
    classes = [name for name in headlight.__all__ if name not in functions]
    return "\n".join(line for name in (*functions, *classes) for line in _entry(name))


def _entry(name: str) -> Iterator[str]:
    described = getattr(headlight, name)
    yield f"### `headlight.{name}`\n"
    if inspect.isfunction(described):
        yield f"```text\nheadlight.{name}({', '.join(_signature(described))})\n```\n"
    yield _in_markdown(described)
    if not inspect.isclass(described):
        return
    members = [(key, value) for key, value in vars(described).items() if not key.startswith("_")]
    for key, member in members:
        documented = member.fget if isinstance(member, property) else member
        if inspect.isfunction(documented):
            first = (inspect.getdoc(documented) or "").partition("\n\n")[0].replace("\n", " ")
            call = "" if isinstance(member, property) else f"({', '.join(_signature(member))})"
            yield f"- `{key}{call}`: {first}"
    if members:
        yield ""


def _signature(function: object) -> Iterator[str]:
    """The parameters of a function without their types."""
    found = inspect.signature(function)  # type: ignore[arg-type]
    is_by_name = False
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_by_name:
            is_by_name = True
            if not any(each.kind is each.VAR_POSITIONAL for each in found.parameters.values()):
                yield "*"
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else stars
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        yield f"{stars}{parameter.name}{default}"


_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$")


def _in_markdown(described: object) -> str:
    """A docstring whose sections are lists."""
    lines: list[str] = []
    section = ""
    for line in (inspect.getdoc(described) or "").split("\n"):
        if found := _SECTION.match(line):
            section = found[1]
            lines += [f"**{'Arguments' if section == 'Args' else section}**", ""]
        elif section and line.startswith("        "):
            lines[-1] += f" {line.strip()}"
        elif section and line.startswith("    "):
            name, colon, text = line.strip().partition(": ")
            is_named = section not in ("Returns", "Yields") and colon
            lines.append(f"- `{name}`: {text}" if is_named else f"- {line.strip()}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for page in (DOCS / "link.md", DOCS / "library.md"):
        page.write_text(with_made(page), encoding="utf-8")
