"""The dials in a picture of all heads: what can be turned or pressed there, and what that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from model.texts import texts_of
from visualizer.components.dials import Dial, Pressed
from visualizer.settings.fields import MAX_TOKENS, PRETRAINED, RECORDED, TRAINED, WORKED_EXAMPLES, changed
from visualizer.settings.fitting import fitted, usual_mask
from visualizer.settings.settings import FIELDS, Selection, Settings, in_mask_order, masked_attention
from visualizer.settings.temperature import LEAST, MOST, at_temperature, temperature_of

say = texts_of(__name__)

SIZES = {"sliding_window": "window", "prefix": "prefix", "strided": "stride"}
"""The masks that have a size, each with its parameter."""

MASKS_OF_BOTH = ("mask_a", "mask_b")
"""The masks that are compared, which are looked at and no settings."""

TEMPERATURE = "temperature"
_SAID = {TEMPERATURE: ("score",), "n_heads": ("n_heads", "d_model")}
"""The name of a dial in the address, where that is not its own name: heads have to share the width."""


def dials_of(
    settings: Settings, kind: str, n_queries: int, n_keys: int, *, asked_width: int = 0
) -> tuple[Dial | Pressed, ...]:
    """Return the dials of an attention: its heads, its masks and their sizes, its temperature, the padding.

    Args:
        settings: what is run.
        kind: the attention, without a layer: ``encoder.self_attention``.
        n_queries: Tq, with the padding.
        n_keys: Tk, with the padding.
        asked_width: the width that the model returns to as soon as its heads can share it; 0 for the one it has.
    """
    if settings.weights in (*WORKED_EXAMPLES, RECORDED):
        return ()
    is_masked = kind == masked_attention(settings.architecture)
    found: list[Dial | Pressed] = []
    if is_masked:
        found.append(pressed_masks("mask", settings.mask))
    if settings.weights not in (TRAINED, PRETRAINED):
        found.append(_heads(settings, asked_width or settings.d_model))
    temperature = temperature_of(settings.score)
    is_pretrained = settings.weights == PRETRAINED
    if is_masked and temperature is not None and not is_pretrained:
        found.append(Dial(TEMPERATURE, say("temperature"), say("temperature_help"), temperature, LEAST, MOST))
    if is_masked:
        sizes = [name for mask, name in SIZES.items() if mask in settings.mask]
        found += [_whole(settings, name, max(n_queries, n_keys)) for name in sizes]
    if "padding" in settings.mask and not is_pretrained:
        found.append(_whole(settings, "pad", MAX_TOKENS - max(n_queries, n_keys) + settings.pad))
    return tuple(found)


def _heads(settings: Settings, width: int) -> Dial:
    field = FIELDS["n_heads"]
    counts = range(int(field.least), int(field.most) + 1)
    fitting = [fitted(replace(settings, n_heads=n_heads, d_model=width)).d_model for n_heads in counts]
    parameters = tuple(f"n_heads={n}&d_model={d_model}" for n, d_model in zip(counts, fitting, strict=True))
    ends = (field.least, field.most)
    return Dial("n_heads", field.label, field.help, settings.n_heads, *ends, parameters, is_foremost=True)


def pressed_masks(name: str, chosen: tuple[str, ...], *, is_folded: bool = False) -> Pressed:
    """The masks to press, of the field ``name``."""
    field = FIELDS[name]
    return Pressed(name, field.parameter, field.label, field.help, chosen, field.choices, is_folded=is_folded)


def has_masks_in_picture(settings: Settings, selection: Selection) -> bool:
    """True if the heads and the masks are turned in the picture of a view, and not beside it."""
    kind = selection.stage.rpartition(".")[0]
    is_masked = settings.architecture != "encoder-decoder" or kind == masked_attention(settings.architecture)
    return selection.view == "heads" and is_masked and not selection.hidden


def _whole(settings: Settings, name: str, most: int) -> Dial:
    field, value = FIELDS[name], getattr(settings, name)
    ends = (field.least, min(field.most, max(most, value)))
    return Dial(name, field.label, field.help, value, *ends, is_foremost=True)


def before_turning(
    settings: Settings, selection: Selection, dials: Sequence[Dial | Pressed]
) -> tuple[Settings, Selection]:
    """Both without what the dials say, for an address to which they add it."""
    names = [name for dial in dials for name in _SAID.get(dial.name, (dial.name,))]
    unsaid = {name: FIELDS[name].default for name in names}
    of_selection = {name: unsaid.pop(name) for name in MASKS_OF_BOTH if name in unsaid}
    settings = replace(settings, **unsaid)
    if "mask" in names:
        settings = replace(settings, mask=usual_mask(settings))
    return settings, changed(selection, **of_selection)


def turned(event: object, dials: Sequence[Dial | Pressed]) -> dict[str, Any]:
    """Return the changes of the settings by an event of the picture; none for what is no place of a dial."""
    said = event.get("turned") if isinstance(event, Mapping) else None
    values = said if isinstance(said, Mapping) else {}
    changes: dict[str, Any] = {}
    for dial in dials:
        if dial.name in values:
            changes |= _changes(dial, values[dial.name])
    return changes


def _changes(dial: Dial | Pressed, value: object) -> dict[str, Any]:
    if isinstance(dial, Pressed):
        return {dial.name: in_mask_order(map(str, value))} if isinstance(value, list) else {}
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {}
    if dial.name == TEMPERATURE:
        score = at_temperature(value)
        return {} if score is None else {"score": score}
    return {dial.name: int(value)} if dial.least <= value <= dial.most else {}
