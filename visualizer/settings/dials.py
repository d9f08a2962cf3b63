"""The dials in a picture of all heads: what can be turned there, and what turning it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from model.texts import texts_of
from visualizer.components.dials import Dial
from visualizer.settings.fields import MAX_TOKENS, TRAINED, WORKED_EXAMPLES
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import FIELDS, Settings, masked_attention
from visualizer.settings.temperature import LEAST, MOST, at_temperature, temperature_of

say = texts_of(__name__)

SIZES = {"sliding_window": "window", "prefix": "prefix", "strided": "stride"}
"""The masks that have a size, each with its parameter."""

TEMPERATURE = "temperature"
_SAID = {TEMPERATURE: ("score",), "n_heads": ("n_heads", "d_model")}
"""What a dial says in the address, where that is not its own name: heads have to share the width."""


def dials_of(
    settings: Settings, kind: str, n_queries: int, n_keys: int, *, asked_width: int = 0
) -> tuple[Dial, ...]:
    """What can be turned for an attention: its heads, its temperature, the sizes of its masks, the padding.

    Args:
        settings: what is run.
        kind: the attention, without a layer: ``encoder.self_attention``.
        n_queries: Tq, with the padding.
        n_keys: Tk, with the padding.
        asked_width: the width that the model returns to as soon as its heads can share it; 0 for the one it has.
    """
    if settings.weights in WORKED_EXAMPLES:
        return ()
    found = [] if settings.weights == TRAINED else [_heads(settings, asked_width or settings.d_model)]
    is_masked = kind == masked_attention(settings.architecture)
    temperature = temperature_of(settings.score)
    if is_masked and temperature is not None:
        found.append(
            Dial(
                TEMPERATURE,
                say("temperature"),
                say("temperature_help"),
                temperature,
                LEAST,
                MOST,
            )
        )
    if is_masked:
        sizes = [name for mask, name in SIZES.items() if mask in settings.mask]
        found += [_whole(settings, name, max(n_queries, n_keys)) for name in sizes]
    if "padding" in settings.mask:
        found.append(_whole(settings, "pad", MAX_TOKENS - max(n_queries, n_keys) + settings.pad))
    return tuple(found)


def _heads(settings: Settings, width: int) -> Dial:
    field = FIELDS["n_heads"]
    counts = range(int(field.least), int(field.most) + 1)
    fitting = [fitted(replace(settings, n_heads=n_heads, d_model=width)).d_model for n_heads in counts]
    parameters = tuple(f"n_heads={n}&d_model={d_model}" for n, d_model in zip(counts, fitting, strict=True))
    ends = (field.least, field.most)
    return Dial("n_heads", field.label, field.help, settings.n_heads, *ends, parameters, is_foremost=True)


def _whole(settings: Settings, name: str, most: int) -> Dial:
    field, value = FIELDS[name], getattr(settings, name)
    return Dial(name, field.label, field.help, value, field.least, min(field.most, max(most, value)))


def before_turning(settings: Settings, dials: Sequence[Dial]) -> Settings:
    """The settings without what the dials say, for an address to which they add it."""
    names = [name for dial in dials for name in _SAID.get(dial.name, (dial.name,))]
    return replace(settings, **{name: FIELDS[name].default for name in names})


def turned(event: object, dials: Sequence[Dial]) -> dict[str, Any]:
    """What an event of the picture changes in the settings; nothing where it is no place of a dial."""
    given = event if isinstance(event, Mapping) else {}
    dial = next((dial for dial in dials if dial.name == given.get("dial")), None)
    value = given.get("value")
    if dial is None or isinstance(value, bool) or not isinstance(value, int | float):
        return {}
    if dial.name == TEMPERATURE:
        score = at_temperature(value)
        return {} if score is None else {"score": score}
    return {dial.name: int(value)} if dial.least <= value <= dial.most else {}
