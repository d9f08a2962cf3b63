"""The intention of a mask, as a link names it and as settings that have it."""

from __future__ import annotations

from dataclasses import replace

from headlight.masks.intent_kinds import INTENT_KINDS
from headlight.masks.intents import Intent
from model.texts import texts_of
from visualizer.settings.attentions import MaskedAttention, changed_for, seen_by
from visualizer.settings.fields import EXPRESSION, UNSAID
from visualizer.settings.settings import Selection, Settings

say = texts_of(__name__)

EXTRAS = {"documents": say("documents"), "padding": say("padding")}
"""The additions that can be made to the kind of an intention, by their names in a link."""


def kind_of(text: str) -> str:
    """The kind that a link names, with or without what belongs to it; ``UNSAID`` where it names none."""
    return text.partition(":")[0].partition("+")[0]


def read_intent(text: str) -> Intent | None:
    """The intention that a link names, ``window:4+padding``; None where it is not said, or not to its end."""
    if text.startswith(EXPRESSION):
        try:
            return Intent("expression", condition=text.removeprefix(EXPRESSION))
        except ValueError:
            return None
    name, *extras = text.split("+")
    kind, _, number = name.partition(":")
    if kind == UNSAID or (INTENT_KINDS[kind].number and not number):
        return None
    return Intent(kind, int(number or 0), "documents" in extras, "padding" in extras)


def keys_before(selection: Selection, attention: MaskedAttention) -> int | None:
    """Return the number of keys before query 0; None: as many as there are more keys than queries.

    Where queries and keys are different tokens there is no cache: unless it is said, none stands before.
    """
    if selection.lab.keys_before >= 0:
        return selection.lab.keys_before
    return 0 if attention.crosses else None


def chosen_intent(selection: Selection, attention: MaskedAttention) -> Intent | None:
    """Return the stated intention of an attention's mask; None where nothing was said."""
    intent = read_intent(getattr(selection.lab, attention.intent))
    is_placed = intent is not None and attention.crosses and intent.follows_position
    return replace(intent, cache=keys_before(selection, attention)) if intent is not None and is_placed else intent


def as_meant(settings: Settings, intent: Intent, attention: MaskedAttention) -> Settings:
    """The masks of an attention as they should be in every layer and head, in place of those that are chosen."""
    if intent.kind == "prefix" and attention.has_the_list and not intent.documents:
        mask = ("padding", "prefix") if intent.padding else ("prefix",)  # counts from the first token of each text
        return replace(settings, mask=mask, custom="", prefix=intent.number)
    expression = intent.expression
    seen = seen_by(attention, settings)
    meant = replace(seen, mask=("custom",) if expression else (), custom=expression)
    return changed_for(attention, settings, meant)
