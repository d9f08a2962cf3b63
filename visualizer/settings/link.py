"""The link that carries everything chosen: read, with a sentence for each value to change, and written."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

from headlight.masks.intent_kinds import INTENT_KINDS
from model.texts import texts_of
from visualizer.safe_text import visible_whole
from visualizer.settings.fields import (
    EXPRESSION,
    MAX_TOKENS,
    NO_MASK,
    PRETRAINED,
    TRAINED,
    UNSAID,
    Field,
    Kind,
    by_any_name,
    changed,
    fields_of,
    value_in,
)
from visualizer.settings.fitting import EXAMPLE_TEXT, fitted, usual_mask, width_to_come_back_to
from visualizer.settings.interventions import read_interventions, write_interventions
from visualizer.settings.painted_mask import read_planes, write_planes
from visualizer.settings.settings import FIELDS, Selection, Settings, default_stage, in_mask_order
from visualizer.settings.sources import view_in
from visualizer.settings.trained_models import TRAINED_MODELS

say = texts_of(__name__)

MAX_URL_TEXT = 8_000
"""The longest text in a link, counted percent-encoded: six of them stay below the 64 KB servers accept."""


_OF_THE_PAGE = ("embed", "embed_options")
"""The parameters that Streamlit reads itself, such as the theme; they say nothing of a run."""


_SHOWN = 40


_REPEATS_READ = 8


def read_query(query: Mapping[str, Sequence[str]]) -> tuple[Settings, Selection, tuple[str, ...]]:
    """Read a link.

    A bad value becomes the nearest good one, or the default where none is near. Unknown parameters are ignored.

    Args:
        query: every parameter with its values, as often as it is given.

    Returns:
        The settings, the selection, and one plain sentence for each parameter that was changed. The sentences
        quote what was given with everything invisible made visible, but still need ``markdown_safe`` to be drawn.
    """
    first, _ = read_part(query, Settings())
    settings, notices = read_part(query, _unsaid(first))
    chosen = fitted(settings)
    if chosen.d_model != settings.d_model and query.get("d_model"):
        width = _values_of(query, "d_model")[0]
        shared = say("width_not_shared", n_heads=settings.n_heads)
        complaint = say("width_not_even") if settings.head_dim else shared
        notices["d_model"] = _notice("d_model", width, complaint, say("used", value=chosen.d_model))
    defaults = Selection(stage=default_stage(chosen.architecture))
    selection, more_notices = read_part(query, defaults)
    asked = width_to_come_back_to(settings) or selection.asked_width
    wish = replace(chosen, d_model=asked)
    if asked and not (width_to_come_back_to(wish) and fitted(wish) == chosen):
        complaint = say("width_not_stood_for", width=chosen.d_model)
        more_notices["asked_width"] = _notice("asked_width", str(asked), complaint, say("left_out"))
        asked = 0
    view = view_in(selection.source, selection.view)
    if view != selection.view:
        more_notices["view"] = _notice("view", selection.view, say("no_such_view"), say("used", value=view))
    return chosen, replace(selection, asked_width=asked, view=view), (*notices.values(), *more_notices.values())


def read_unchanged(query: Mapping[str, Sequence[str]], fields: Iterable[Field]) -> tuple[Settings, Selection]:
    """Read a link of which no value has to be changed.

    Args:
        query: every parameter with its values, as often as it is given.
        fields: the parameters that may be there.

    Raises:
        ValueError: what is wrong with it, in one sentence.
    """
    if problem := _problem_in(query, fields):
        raise ValueError(problem)
    settings, selection, notices = read_query(query)
    if notices:
        raise ValueError(f"{notices[0].rpartition(': ')[0]}.")
    return settings, selection


def _problem_in(query: Mapping[str, Sequence[str]], fields: Iterable[Field]) -> str | None:
    """Say in one sentence what is wrong with one parameter; None where each by itself is good."""
    known = by_any_name(fields)
    for name in query:
        values = _values_of(query, name)
        if name in _OF_THE_PAGE:
            continue
        if name not in known:
            nearest = _nearest(name, known)
            near = say("unknown_but_near", name=_shown(name), nearest=nearest)
            return near if nearest else say("unknown", name=_shown(name))
        if len(values) > 1:
            return say("repeated", name=name)
        if complaint := _READERS[known[name].kind](known[name], values[0], known[name].default).complaint:
            bad = say("bad", name=name, text=_shown(values[0]), complaint=complaint)
            return bad if values[0] else say("empty", name=name)
    return None


def chosen_in(event: object, names: Iterable[str]) -> dict[str, Any]:
    """Read some fields of ``Selection`` from an event of a component, each written as in a link.

    A browser can send anything: what is missing or no text is left out, what is bad becomes what a link would make
    of it.
    """
    link = event if isinstance(event, Mapping) else {}
    texts = {name: link[name] for name in names if isinstance(link.get(name), str)}
    return {
        name: _READERS[FIELDS[name].kind](FIELDS[name], text, FIELDS[name].default).value
        for name, text in texts.items()
    }


def write_query(settings: Settings, selection: Selection) -> dict[str, str]:
    """The parameters of the link, only those that differ from the defaults.

    What ``left_out_of_link`` names is not in it: its reader gets the default there.
    """
    left_out = left_out_of_link(settings)
    return {name: text for name, text in write_whole(settings, selection).items() if name not in left_out}


def write_whole(settings: Settings, selection: Selection) -> dict[str, str]:
    """The same with what is too long for a link, as a file can hold it."""
    query = write_part(settings, _unsaid(settings))
    return query | write_part(selection, Selection(stage=default_stage(settings.architecture)))


def _unsaid(settings: Settings) -> Settings:
    """The fields that a link with these weights need not say: defaults, or those of a shipped model."""
    plain = _with_mask(usual_mask(settings))
    if settings.weights == PRETRAINED:
        return replace(plain, text=EXAMPLE_TEXT, target="")
    if settings.weights != TRAINED:
        return plain
    trained = TRAINED_MODELS[settings.task]
    return replace(plain, text=trained.example, **trained.shape)


@lru_cache(maxsize=64)
def _with_mask(mask: tuple[str, ...]) -> Settings:
    """The defaults, but for the masks."""
    return Settings(mask=mask)


def left_out_of_link(settings: Settings) -> tuple[str, ...]:
    """The names of the fields that are too long for a link (``MAX_URL_TEXT``)."""
    long = (field.name for field in fields_of(Settings).values() if field.kind in ("text", "cells"))
    return tuple(name for name in long if _length_in_link(getattr(settings, name)) > MAX_URL_TEXT)


if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Part = TypeVar("_Part", bound="DataclassInstance")


class _Reading(NamedTuple):
    """A good value and, where it is not what was given, what is wrong with that and what is taken."""

    value: Any
    complaint: str = ""
    taken: str = ""


def read_part(query: Mapping[str, Sequence[str]], defaults: _Part) -> tuple[_Part, dict[str, str]]:
    """The defaults with what a link gives of their fields, and by its field one sentence on each bad value."""
    values: dict[str, Any] = {}
    notices: dict[str, str] = {}
    for field in fields_of(type(defaults)).values():
        given = field.parameter if field.parameter in query else field.name
        texts = _values_of(query, given) if given in query else ()
        if texts:
            values[field.name], notice = _read_field(field, given, texts, value_in(defaults, field.name))
            if notice:
                notices[field.name] = notice
    return changed(defaults, **values), notices


def _values_of(query: Mapping[str, Sequence[str]], name: str) -> Sequence[str]:
    values = query.get(name, ())
    return (values,) if isinstance(values, str) else values[:_REPEATS_READ]


def _read_field(field: Field, given: str, values: Sequence[str], default: Any) -> tuple[Any, str]:  # noqa: ANN401
    """The value of a parameter, by the name that is given, and the notice it calls for or nothing."""
    readings = [_READERS[field.kind](field, text, default) for text in values]
    reading = next((reading for reading in readings if not reading.complaint), readings[0])
    if len(values) == 1 and not reading.complaint:
        return reading.value, ""
    shown = _shown(as_text(field, reading.value))
    taken = reading.taken or say("used", value=shown)
    if len(values) == 1:
        return reading.value, _notice(given, values[0], reading.complaint, taken)
    if reading.complaint:
        return reading.value, say("repeated_and_bad", name=given, taken=taken)
    return reading.value, say("repeated_and_good", name=given, value=shown)


def _notice(name: str, text: str, complaint: str, taken: str) -> str:
    bad = say("bad_so", name=name, text=_shown(text), complaint=complaint, taken=taken)
    return bad if text else say("empty_so", name=name, taken=taken)


def _shown(text: str) -> str:
    if not text:
        return say("none")
    return visible_whole(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")


def _read_integer(field: Field, text: str, default: int) -> _Reading:
    number = _number(text)
    if number is None:
        return _Reading(default, say("no_number"))
    clamped = _clamped(field, number)
    nearest = round(clamped)
    if nearest != clamped:
        return _Reading(nearest, say("no_whole_number"))
    return _Reading(nearest, _range_complaint(field, number))


def _read_fraction(field: Field, text: str, default: float) -> _Reading:
    number = _number(text)
    if number is None:
        return _Reading(default, say("no_number"))
    return _Reading(_clamped(field, number), _range_complaint(field, number))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _clamped(field: Field, number: float) -> float:
    return float(min(max(field.least, number), field.most))


def _range_complaint(field: Field, number: float) -> str:
    return "" if field.least <= number <= field.most else say("out_of_range", least=field.least, most=field.most)


def _read_choice(field: Field, text: str, default: str) -> _Reading:
    if text in field.choices:
        return _Reading(text)
    return _Reading(_nearest(text, field.choices) or default, say("no_choice", choices=", ".join(field.choices)))


def _nearest(text: str, choices: Iterable[str]) -> str | None:
    """The choice spelled most like what was given; None where none is like it."""
    matches = difflib.get_close_matches(text[:_SHOWN].strip().casefold(), list(choices), n=1)
    return matches[0] if matches else None


_SWITCH = {"on": True, "off": False}


_LOOSE_SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False} | _SWITCH


def _read_switch(_field: Field, text: str, default: bool) -> _Reading:
    if text in _SWITCH:
        return _Reading(_SWITCH[text])
    return _Reading(_LOOSE_SWITCH.get(text.strip().casefold(), default), say("no_switch"))


def _read_names(field: Field, text: str, _default: tuple[str, ...]) -> _Reading:
    if text == NO_MASK:
        return _Reading(())
    names = text.split(",", len(field.choices))
    nearest = in_mask_order(name for name in (_nearest(name, field.choices) for name in names) if name)
    if sorted(names) == sorted(nearest):
        return _Reading(nearest)
    return _Reading(nearest, say("no_masks", none=NO_MASK, choices=", ".join(field.choices)))


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _read_text(_field: Field, text: str, _default: str) -> _Reading:
    if len(text) > MAX_URL_TEXT:
        first = _without_surrogates(text[:MAX_URL_TEXT])
        return _Reading(first, say("too_long"), say("first_used", most=MAX_URL_TEXT))
    whole = _without_surrogates(text)
    return _Reading(whole, "" if whole == text else say("halves"))


def _without_surrogates(text: str) -> str:
    """The text with the replacement character for lone surrogates, which no link and no browser can hold."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _read_cells(_field: Field, text: str, default: str) -> _Reading:
    if len(text) > MAX_URL_TEXT:
        return _Reading(default, say("too_long"))
    try:
        canonical = write_planes(read_planes(text))
    except ValueError as error:
        return _Reading(default, str(error))
    return _Reading(canonical, "" if canonical == text else say("not_shortest"))


def _read_interventions(_field: Field, text: str, default: str) -> _Reading:
    try:
        canonical = write_interventions(read_interventions(text[:MAX_URL_TEXT]))
    except ValueError as error:
        return _Reading(default, str(error))
    return _Reading(canonical, "" if canonical == text else say("not_shortest"))


_STAGE = re.compile(r"[\w.:-]{1,200}")


def _read_stage(_field: Field, text: str, default: str) -> _Reading:
    if _STAGE.fullmatch(text):
        return _Reading(text)
    near = text.strip()
    return _Reading(near if _STAGE.fullmatch(near) else default, say("no_stage"))


_IDENTIFIER = re.compile(r"[a-z0-9]{0,40}")


def _read_identifier(_field: Field, text: str, default: str) -> _Reading:
    if _IDENTIFIER.fullmatch(text):
        return _Reading(text)
    return _Reading(default, say("no_identifier"))


_PLACES = re.compile(r"\d{1,3}(,\d{1,3}){0,63}")


def _read_places(field: Field, text: str, default: tuple[int, ...]) -> _Reading:
    if not _PLACES.fullmatch(text):
        return _Reading(default, say("no_places"), say("all_used"))
    places = sorted({int(place) for place in text.split(",") if field.least <= int(place) <= field.most})
    if ",".join(map(str, places)) == text:
        return _Reading(tuple(places))
    complaint = say("places_not_in_order", least=field.least, most=field.most)
    return _Reading(tuple(places), complaint, "" if places else say("all_used"))


_INTENT = re.compile(r"([a-z_]{1,20})(?::(\d{1,3}))?(\+documents)?(\+padding)?")


def _read_intent(_field: Field, text: str, default: str) -> _Reading:
    """``causal``, ``window:4+documents+padding``, ``window`` without its number yet, ``expression:k <= q``."""
    if text == UNSAID:
        return _Reading(text)
    if text.startswith(EXPRESSION):
        condition = _without_surrogates(text[:MAX_URL_TEXT])
        return _Reading(condition, "" if condition == text else say("too_long"))
    found = _INTENT.fullmatch(text)
    if found is None or found[1] not in INTENT_KINDS:
        return _Reading(default, say("no_intent"))
    kind = INTENT_KINDS[found[1]]
    if found[2] and not (kind.number and kind.least <= int(found[2]) <= MAX_TOKENS):
        return _Reading(default, say("no_number_for_intent"))
    number = "" if found[2] is None else f":{int(found[2])}"
    canonical = f"{found[1]}{number}{found[3] or ''}{found[4] or ''}"
    return _Reading(canonical, "" if canonical == text else say("not_shortest"))


_READERS: Mapping[Kind, Callable[[Field, str, Any], _Reading]] = {
    "integer": _read_integer,
    "fraction": _read_fraction,
    "choice": _read_choice,
    "switch": _read_switch,
    "names": _read_names,
    "text": _read_text,
    "cells": _read_cells,
    "stage": _read_stage,
    "identifier": _read_identifier,
    "places": _read_places,
    "intent": _read_intent,
    "interventions": _read_interventions,
}


def write_part(part: _Part, defaults: _Part) -> dict[str, str]:
    """The parameters of a link for the fields that differ from the defaults."""
    others = (
        field
        for field in fields_of(type(part)).values()
        if value_in(part, field.name) != value_in(defaults, field.name)
    )
    return {field.parameter: as_text(field, value_in(part, field.name)) for field in others}


def as_text(field: Field, value: Any) -> str:  # noqa: ANN401
    """A value as a link holds it."""
    match field.kind:
        case "switch":
            return "on" if value else "off"
        case "names":
            return ",".join(value) or NO_MASK
        case "places":
            return ",".join(map(str, value))
        case "fraction":
            return repr(value).removesuffix(".0")
        case _:
            return _without_surrogates(str(value))


def _length_in_link(text: str) -> int:
    """Return the length of a text in a link, or, where it is too long anyway, at least."""
    return len(text) if len(text) > MAX_URL_TEXT else _length_quoted(text)


@lru_cache(maxsize=64)
def _length_quoted(text: str) -> int:
    return len(quote(_without_surrogates(text), safe=""))
