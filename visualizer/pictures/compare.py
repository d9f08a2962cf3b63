"""The picture of Compare: the weights of one attention in two runs, and what blocks their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headlight.masks.intent_kinds import CELLS_OF_THEIR_OWN
from headlight.masks.intents import Intent
from model.texts import texts_of
from visualizer.components.attention_heads.element import payload
from visualizer.components.packing import Precision
from visualizer.pictures.heads import HeadsPicture, cell_of
from visualizer.runs.intended import as_meant, chosen_intent
from visualizer.settings.attentions import attention_named
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.settings import Selection, Settings, mask_title

say = texts_of(__name__)


def compared_settings(settings: Settings, selection: Selection) -> tuple[Settings, Settings]:
    """The settings of A, which is never edited, and of B: of a worked example without its mask and with it."""
    if settings.weights in WORKED_EXAMPLES:
        return replace(settings, mask=()), replace(settings, mask=Settings().mask)
    intent = intent_of_b(settings, selection)
    attention = attention_named(selection.attention, settings.architecture)
    b = replace(settings, mask=selection.mask_b) if intent is None else as_meant(settings, intent, attention)
    return replace(settings, mask=selection.mask_a, edits=""), b


def intent_of_b(settings: Settings, selection: Selection) -> Intent | None:
    """Return the intention that B carries out; None where B is not the mask as it should be."""
    if settings.weights in WORKED_EXAMPLES or not selection.against_intent:
        return None
    intent = chosen_intent(selection, attention_named(selection.attention, settings.architecture))
    return None if intent is None or intent.kind in CELLS_OF_THEIR_OWN else intent


def title_of_side(side: str, masks: Sequence[str], *, is_edited: bool = False) -> str:
    """Return the title of A or B: its masks, and whether it was edited."""
    title = f"{side.upper()} · {mask_title(masks)}"
    return say("edited", title=title) if is_edited else title


@dataclass(frozen=True, eq=False)
class ComparePicture:
    """The same layers and heads in two runs.

    Attributes:
        a: of the first run.
        b: of the second.
    """

    a: HeadsPicture
    b: HeadsPicture

    def exact_at(self, places: Sequence[int]) -> dict[str, NDArray[np.float32]]:
        """The weights of one cell in A and in B, as ``HeadsPicture.exact_at``."""
        return {"a": cell_of(self.a.weights, places), "b": cell_of(self.b.weights, places)}

    def packed(self, precision: Precision) -> bytes:
        """The bytes that the browser draws, with the numbers of the layers in the header."""
        rows, columns = self.a.axes
        sides = {"blocked_a": self.a, "blocked_b": self.b}
        return payload(
            {"a": self.a.weights, "b": self.b.weights},
            {name: side.blocked for name, side in sides.items()},
            rows=rows,
            columns=columns,
            head_names=self.b.edited_names,
            header={
                "layers": list(self.a.layers),
                "n_layers": self.a.n_layers,
                "blocked_by": {"a": list(self.a.blocked_by), "b": list(self.b.blocked_by)},
                "titles": {
                    name: title_of_side(name, side.blocked_by, is_edited=bool(side.run.interventions))
                    for name, side in (("a", self.a), ("b", self.b))
                },
                "shared": [name for name, side in sides.items() if side.masks_are_shared],
            },
            precision=precision,
        )
