"""What a mask should be, as a link names it and as settings that have it."""

from __future__ import annotations

from dataclasses import replace

from model.mask_tools.intent_kinds import INTENT_KINDS
from model.mask_tools.intents import Intent
from visualizer.settings.settings import Settings

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


def as_meant(settings: Settings, intent: Intent) -> Settings:
    """The masks of every layer and head as they should be, in place of those that are chosen."""
    expression = intent.expression
    return replace(settings, mask=("custom",) if expression else (), custom=expression)
