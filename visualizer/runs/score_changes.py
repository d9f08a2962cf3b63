"""The change of the scores that the settings ask for, in the attention that the masks are chosen for."""

from __future__ import annotations

from dataclasses import replace

from headlight.masks.language import MaskExpressionError, parse_score
from model import MultiHeadAttention, TracedModule
from model.texts import texts_of
from visualizer.runs.paths import in_layer
from visualizer.settings.settings import Settings, masked_attention

say = texts_of(__name__)


def change_scores(model: TracedModule, settings: Settings) -> None:
    """Have the attentions of a model that is this run's alone change their scores."""
    change = parse_score(settings.score) if settings.score else None
    for path in changed_attentions(settings):
        attention = model.get_submodule(path)
        if isinstance(attention, MultiHeadAttention):
            attention.score_mod = change


def changed_attentions(settings: Settings) -> tuple[str, ...]:
    """The paths of the attentions whose scores are changed; none where no change is asked for."""
    if not settings.score:
        return ()
    return tuple(in_layer(masked_attention(settings.architecture), layer) for layer in range(settings.depth))


def readable_change(settings: Settings) -> tuple[Settings, tuple[str, ...]]:
    """The settings without a change that cannot be read, and one sentence if there is one."""
    if not settings.score:
        return settings, ()
    try:
        parse_score(settings.score)
    except MaskExpressionError as error:
        return replace(settings, score=""), (say("left_out", change=settings.score, error=error),)
    return settings, ()
