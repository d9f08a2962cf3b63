"""The attentions that have masks of their own, and the settings as each of them sees them.

The list of masks is for the self-attention of an encoder or a decoder. Beside a decoder, the encoder and the
cross-attention take the padding mask alone, as in the paper, since the others order the tokens that the decoder
writes; each of the three can have a painting, and "Painted" in the list puts all of them in force.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from model.config import Architecture
from visualizer.components.axis import SequenceName
from visualizer.settings.settings import Settings, in_mask_order, masked_attention
from visualizer.settings.view_choices import AttentionName


@dataclass(frozen=True)
class MaskedAttention:
    """One of them.

    Attributes:
        name: its name in a link, where a model has several.
        path: its path, without a layer.
        queries: the tokens that look.
        keys: the tokens that are looked at.
        called: what a sentence calls it.
        painting: the field of its painting.
        intent: the field of what its mask should be.
        padding: the switch of its padding mask; "" where the list of masks decides.
    """

    name: AttentionName
    path: str
    queries: SequenceName
    keys: SequenceName
    called: str
    painting: str = "custom"
    intent: str = "intent"
    padding: str = ""

    @property
    def has_the_list(self) -> bool:
        """True if the list of masks is for this one."""
        return not self.padding

    @property
    def crosses(self) -> bool:
        """True if its queries and keys are different tokens."""
        return self.queries != self.keys

    def n_layers(self, settings: Settings) -> int:
        """In how many layers it is."""
        return settings.n_layers if self.name == "encoder" else settings.depth


_BESIDE = {
    "encoder": MaskedAttention(
        *("encoder", "encoder.self_attention", "source", "source", "the encoder"),
        *("custom_encoder", "intent_encoder", "encoder_padding"),
    ),
    "cross": MaskedAttention(
        *("cross", "decoder.cross_attention", "target", "source", "the cross-attention"),
        *("custom_cross", "intent_cross", "cross_padding"),
    ),
}
_DECODER = MaskedAttention("decoder", "decoder.self_attention", "target", "target", "the decoder")


def attentions_of(architecture: Architecture) -> tuple[MaskedAttention, ...]:
    """The attentions of a model that have masks, in the order of their names in a link."""
    if architecture == "encoder-decoder":
        return _BESIDE["encoder"], _DECODER, _BESIDE["cross"]
    return (MaskedAttention("decoder", masked_attention(architecture), "source", "source", "the model"),)


def attention_named(name: AttentionName, architecture: Architecture) -> MaskedAttention:
    """The attention of that name, or the only one of a model."""
    found = attentions_of(architecture)
    return next((attention for attention in found if attention.name == name), found[0])


def seen_by(attention: MaskedAttention, settings: Settings) -> Settings:
    """The settings with the masks and the painting of one attention in place of those of the list."""
    if attention.has_the_list:
        is_of_others = not settings.custom and bool(_painted_beside(attention, settings))
        return _without_painted(settings) if is_of_others else settings
    painting: str = getattr(settings, attention.painting)
    has_padding = "padding" in settings.mask and getattr(settings, attention.padding)
    is_painted = "custom" in settings.mask and bool(painting)
    mask = ("padding",) * has_padding + ("custom",) * is_painted
    return replace(settings, mask=mask, custom=painting)


def changed_for(attention: MaskedAttention, settings: Settings, seen: Settings) -> Settings:
    """The settings after what one attention sees of them was changed."""
    if attention.has_the_list:
        keeps = "custom" in settings.mask and bool(_painted_beside(attention, settings))
        mask = in_mask_order((*seen.mask, "custom")) if keeps else seen.mask
        return replace(settings, mask=mask, custom=seen.custom)
    changes: dict[str, Any] = {attention.painting: seen.custom}
    if "padding" in settings.mask:
        changes[attention.padding] = "padding" in seen.mask
    changed = replace(settings, **changes)
    if "custom" in seen.mask:
        return replace(changed, mask=in_mask_order((*settings.mask, "custom")))
    is_last = not (seen.custom or changed.custom or _painted_beside(attention, changed))
    return _without_painted(changed) if is_last else changed


def unpadded(settings: Settings) -> tuple[MaskedAttention, ...]:
    """The attentions that go without the padding mask, though it is among the masks."""
    return tuple(
        attention
        for attention in attentions_of(settings.architecture)
        if "padding" in settings.mask and attention.padding and not getattr(settings, attention.padding)
    )


def paintings_in(settings: Settings) -> dict[str, str]:
    """The painting of each attention of a model, by its field."""
    return {
        attention.painting: getattr(settings, attention.painting)
        for attention in attentions_of(settings.architecture)
    }


def _painted_beside(attention: MaskedAttention, settings: Settings) -> list[str]:
    """The paintings of the other attentions."""
    return [text for field, text in paintings_in(settings).items() if text and field != attention.painting]


def _without_painted(settings: Settings) -> Settings:
    return replace(settings, mask=tuple(name for name in settings.mask if name != "custom"))
