"""A path as data: read from a file and checked, and written to one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from model.texts import texts_of
from visualizer.guide.words import MEASURES, problem_of_condition, problem_of_line
from visualizer.safe_text import visible

say = texts_of(__name__)

FORMAT = 1
MAX_BYTES = 2**20
MOST_STOPS = 40
LONGEST_TITLE = 80
LONGEST_LINE = 600
MOST_LINES = 12

LIGHTS: Mapping[str, tuple[str, ...]] = {
    "way": ("stream", "head", "feed_forward", "prediction"),
    "step": ("cell", "row", "column"),
    "heads": ("head", "map"),
}
"""The views that a stop can show, and what can be lit in each."""

_FIELDS = ("title", "view", "stage", "layer", "head", "query", "key", "measure", "light", "if", "words", "try")
_WRITTEN = {"condition": "if", "trial": "try"}
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
        measure: the layer and head are those with the most of it; empty for those above.
    """

    title: str
    view: str
    light: str
    words: tuple[str, ...]
    trial: tuple[str, ...] = ()
    stage: str = ""
    condition: str = ""
    layer: int = 0
    head: int | None = None
    query: int | None = None
    key: int | None = None
    measure: str = ""


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
        raise ValueError(say("too_long", most=MAX_BYTES, n_bytes=len(data)))
    try:
        entry = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(say("not_utf8")) from None
    except json.JSONDecodeError as error:
        raise ValueError(say("not_json_at", line=error.lineno, problem=error.msg)) from None
    except RecursionError:
        raise ValueError(say("not_json")) from None
    if not isinstance(entry, dict) or entry.get("headlight_path") != FORMAT:
        raise ValueError(say("beginning", format=FORMAT))
    if extra := entry.keys() - {"headlight_path", "title", "stops"}:
        raise ValueError(say("extra", name=visible(min(extra))))
    stops = entry.get("stops")
    if not isinstance(stops, list) or not 1 <= len(stops) <= MOST_STOPS:
        raise ValueError(say("stops", most=MOST_STOPS))
    title = _title(entry.get("title"), say("path_title", most=LONGEST_TITLE))
    return GuidedPath(title, tuple(_stop(stop, i) for i, stop in enumerate(stops, start=1)))


def write_path(path: GuidedPath) -> str:
    """The text of the file."""
    stops = [_written(stop) for stop in path.stops]
    return json.dumps({"headlight_path": FORMAT, "title": path.title, "stops": stops}, ensure_ascii=False, indent=2)


def _stop(entry: object, number: int) -> Stop:
    if not isinstance(entry, dict):
        raise ValueError(say("no_object", number=number))
    if extra := entry.keys() - set(_FIELDS):
        raise ValueError(say("extra_of_stop", number=number, name=visible(min(extra)), fields=", ".join(_FIELDS)))
    title = _title(entry.get("title"), say("stop_title", number=number, most=LONGEST_TITLE))
    view = next((view for view in LIGHTS if view == entry.get("view")), None)
    if view is None:
        raise ValueError(say("view", number=number, views=", ".join(LIGHTS)))
    light = entry.get("light", LIGHTS[view][0])
    if light not in LIGHTS[view]:
        raise ValueError(say("light", number=number, lights=", ".join(LIGHTS[view])))
    stage, condition = entry.get("stage", ""), entry.get("if", "")
    if not isinstance(stage, str) or len(stage) > LONGEST_TITLE or (view == "step" and not stage):
        raise ValueError(say("stage", number=number))
    if not isinstance(condition, str):
        raise ValueError(say("condition_no_text", number=number))
    if condition and (problem := problem_of_condition(condition)):
        raise ValueError(say("condition", number=number, problem=problem))
    measure = entry.get("measure", "")
    if measure not in ("", *MEASURES):
        raise ValueError(say("measure", number=number, measures=", ".join(MEASURES)))
    words = _lines(entry.get("words"), say("words", number=number))
    if not words:
        raise ValueError(say("no_words", number=number))
    trial = _lines(entry.get("try", ()), say("trial", number=number))
    places = {name: _place(entry[name], name, number) for name in _PLACES if name in entry}
    return Stop(title, view, light, words, trial, stage, condition, measure=measure, **places)


def _title(value: object, refusal: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TITLE:
        raise ValueError(refusal)
    return value.strip()


def _lines(value: object, where: str) -> tuple[str, ...]:
    """One text, or several."""
    lines = [value] if isinstance(value, str) else value
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        raise ValueError(say("no_texts", where=where))
    if len(lines) > MOST_LINES or any(len(line) > LONGEST_LINE for line in lines):
        raise ValueError(say("too_many", where=where, most=MOST_LINES, longest=LONGEST_LINE))
    for line in lines:
        if problem := problem_of_line(line):
            raise ValueError(say("line", where=where, problem=problem))
    return tuple(lines)


def _place(value: object, name: str, number: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _PLACES[name]:
        raise ValueError(say("place", name=name, number=number, most=_PLACES[name]))
    return value


def _written(stop: Stop) -> dict[str, Any]:
    """A stop as it stands in a file, without what need not be said."""
    said = {
        _WRITTEN.get(field.name, field.name): value
        for field in fields(stop)
        if (value := getattr(stop, field.name)) != field.default
    }
    return {name: said[name] for name in _FIELDS if name in said}
