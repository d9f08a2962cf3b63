"""What a mask should be, as a link names it and as settings that have it."""

from __future__ import annotations

from dataclasses import replace

from model.mask_tools.intent_kinds import INTENT_KINDS
from model.mask_tools.intents import Intent
from visualizer.settings.attentions import MaskedAttention, changed_for, seen_by
from visualizer.settings.fields import GUESSED
from visualizer.settings.settings import Selection, Settings

EXTRAS = {"documents": "Documents isolated", "padding": "Padding ignored"}
"""What can be said beside the kind of an intention, by its name in a link."""


def read_intent(text: str) -> Intent:
    """The intention that a link names, ``window:4+padding``."""
    name, *extras = text.split("+")
    kind, _, number = name.partition(":")
    return Intent(kind, int(number or 0), "documents" in extras, "padding" in extras)


def write_intent(intent: Intent) -> str:
    """An intention as a link names it."""
    number = f":{intent.number}" if INTENT_KINDS[intent.kind].number else ""
    extras = [name for name in EXTRAS if getattr(intent, name)]
    return "+".join([f"{intent.kind}{number}", *extras])


def keys_before(selection: Selection, attention: MaskedAttention) -> int | None:
    """How many keys stand before query 0; None: as many as there are more keys than queries.

    Where queries and keys are different tokens there is no cache: unless it is said, none stands before.
    """
    if selection.keys_before >= 0:
        return selection.keys_before
    return 0 if attention.crosses else None


def chosen_intent(selection: Selection, attention: MaskedAttention) -> Intent | None:
    """What was said that the mask of an attention should be; None where nothing was."""
    said: str = getattr(selection, attention.intent)
    if said == GUESSED:
        return None
    intent = read_intent(said)
    is_placed = attention.crosses and intent.follows_position
    return replace(intent, cache=keys_before(selection, attention)) if is_placed else intent


def as_meant(settings: Settings, intent: Intent, attention: MaskedAttention) -> Settings:
    """The masks of an attention as they should be in every layer and head, in place of those that are chosen."""
    if intent.kind == "prefix" and attention.has_the_list and not intent.documents:
        mask = ("padding", "prefix") if intent.padding else ("prefix",)  # counts from the first token of each text
        return replace(settings, mask=mask, custom="", prefix=intent.number)
    expression = intent.expression
    seen = seen_by(attention, settings)
    meant = replace(seen, mask=("custom",) if expression else (), custom=expression)
    return changed_for(attention, settings, meant)
