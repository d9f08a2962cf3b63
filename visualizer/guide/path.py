"""A path as data: read from a file and checked, and written to one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from visualizer.guide.words import problem_of_condition, problem_of_line
from visualizer.safe_text import visible
from visualizer.settings.settings import View

FORMAT = 1
MAX_BYTES = 100_000
MOST_STOPS = 40
LONGEST_TITLE = 80
LONGEST_LINE = 600
MOST_LINES = 12

LIGHTS: Mapping[View, tuple[str, ...]] = {
    "way": ("stream", "head", "feed_forward", "prediction"),
    "step": ("cell", "row", "column"),
    "heads": ("head",),
}
"""The views that a stop can show, and what can be lit in each."""

_FIELDS = ("title", "view", "stage", "layer", "head", "query", "key", "light", "if", "words", "try")
_PLACES = {"layer": 11, "head": 15, "query": 511, "key": 100_000}


@dataclass(frozen=True)
class Stop:
    """One screen: where to look, what is lit, and what is said.

    Attributes:
        title: what it is about.
        view: the view that it shows.
        light: what is lit in the picture, one of ``LIGHTS``.
        words: what is said; see ``words.told``.
        trial: what to try.
        stage: the end of the path of a stage, such as ``self_attention.weights``; empty for none in particular.
        condition: what must hold of a run for it to have this stop; empty for nothing.
        layer: the layer, counted from 0; the first where it is not said.
        head: the head; the one that is looked at where it is not said. So with the query.
        query: the token that looks.
        key: the column; one that says something where it is not said.
    """

    title: str
    view: View
    light: str
    words: tuple[str, ...]
    trial: tuple[str, ...] = ()
    stage: str = ""
    condition: str = ""
    layer: int = 0
    head: int | None = None
    query: int | None = None
    key: int | None = None


@dataclass(frozen=True)
class GuidedPath:
    """A title, and stops in their order."""

    title: str
    stops: tuple[Stop, ...]


def read_path(data: bytes) -> GuidedPath:
    """The path of a file.

    Raises:
        ValueError: one sentence on what is wrong with it, and where.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"A path has at most {MAX_BYTES:,} bytes, and this file has {len(data):,}.")
    try:
        given = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("A path is a text file in UTF-8, and this is none.") from None
    except (json.JSONDecodeError, RecursionError) as error:
        where = f" (line {error.lineno}: {error.msg})" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"A path is a JSON file, and this cannot be read as one{where}.") from None
    if not isinstance(given, dict) or given.get("headlight_path") != FORMAT:
        raise ValueError(f'A path begins with {{"headlight_path": {FORMAT}, "title": ..., "stops": [...]}}.')
    if extra := given.keys() - {"headlight_path", "title", "stops"}:
        raise ValueError(f"A path has a title and stops, but no “{visible(min(extra))}”.")
    stops = given.get("stops")
    if not isinstance(stops, list) or not 1 <= len(stops) <= MOST_STOPS:
        raise ValueError(f"“stops” is a list of 1 to {MOST_STOPS} stops.")
    title = _title(given.get("title"), "The path")
    return GuidedPath(title, tuple(_stop(stop, f"Stop {i}") for i, stop in enumerate(stops, start=1)))


def write_path(path: GuidedPath) -> str:
    """The text of the file."""
    stops = [_written(stop) for stop in path.stops]
    return json.dumps({"headlight_path": FORMAT, "title": path.title, "stops": stops}, ensure_ascii=False, indent=2)


def _stop(given: object, where: str) -> Stop:
    if not isinstance(given, dict):
        raise ValueError(f"{where} is not an object with a title, a view and words.")
    if extra := given.keys() - set(_FIELDS):
        raise ValueError(f"{where} has “{visible(min(extra))}”, which is none of {', '.join(_FIELDS)}.")
    title = _title(given.get("title"), where)
    view = next((view for view in LIGHTS if view == given.get("view")), None)
    if view is None:
        raise ValueError(f"The view of {where.lower()} is none of {', '.join(LIGHTS)}.")
    light = given.get("light", LIGHTS[view][0])
    if light not in LIGHTS[view]:
        raise ValueError(f"What {where.lower()} lights is none of {', '.join(LIGHTS[view])}.")
    stage, condition = given.get("stage", ""), given.get("if", "")
    if not isinstance(stage, str) or len(stage) > LONGEST_TITLE or (view == "step" and not stage):
        raise ValueError(f"{where} needs the name of a stage, such as self_attention.weights.")
    if not isinstance(condition, str) or (condition and problem_of_condition(condition)):
        raise ValueError(f"The “if” of {where.lower()} {_about_condition(condition)}.")
    words = _lines(given.get("words"), f"“words” of {where.lower()}")
    if not words:
        raise ValueError(f"{where} has no words.")
    trial = _lines(given.get("try", ()), f"“try” of {where.lower()}")
    places = {name: _place(given[name], name, where) for name in _PLACES if name in given}
    return Stop(title, view, light, words, trial, stage, condition, **places)


def _about_condition(condition: object) -> str:
    return problem_of_condition(condition) if isinstance(condition, str) else "is no text"


def _title(given: object, where: str) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > LONGEST_TITLE:
        raise ValueError(f"{where} needs a title of at most {LONGEST_TITLE} characters.")
    return given.strip()


def _lines(given: object, where: str) -> tuple[str, ...]:
    """One text, or several."""
    lines = [given] if isinstance(given, str) else given
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        raise ValueError(f"{where} is neither a text nor a list of texts.")
    if len(lines) > MOST_LINES or any(len(line) > LONGEST_LINE for line in lines):
        raise ValueError(f"{where} has over {MOST_LINES} texts, or one of over {LONGEST_LINE} characters.")
    for line in lines:
        if problem := problem_of_line(line):
            raise ValueError(f"{where} {problem}.")
    return tuple(lines)


def _place(given: object, name: str, where: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= _PLACES[name]:
        raise ValueError(f"The {name} of {where.lower()} is no whole number from 0 to {_PLACES[name]:,}.")
    return given


def _written(stop: Stop) -> dict[str, Any]:
    """A stop as it stands in a file, without what need not be said."""
    said = {
        "title": stop.title,
        "view": stop.view,
        "stage": stop.stage,
        "layer": stop.layer or None,
        "head": stop.head,
        "query": stop.query,
        "key": stop.key,
        "light": stop.light,
        "if": stop.condition,
        "words": list(stop.words),
        "try": list(stop.trial),
    }
    return {name: value for name, value in said.items() if value not in (None, "", [])}
