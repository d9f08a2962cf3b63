"""The picture of Compare: the weights of one attention in two runs, and what blocks their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs

import numpy as np
from numpy.typing import NDArray

from headlight.masks.intent_kinds import CELLS_OF_THEIR_OWN
from headlight.masks.intents import Intent
from model.texts import texts_of
from visualizer.components.attention_heads.element import payload
from visualizer.components.axis import Axis
from visualizer.components.compare_grids.element import compare_grids
from visualizer.components.looks import Looks
from visualizer.components.packing import Precision
from visualizer.components.picture import Picture
from visualizer.pictures.heads import HeadsPicture, cell_of
from visualizer.runs.intended import as_meant, chosen_intent
from visualizer.settings.attentions import attention_named
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.fitting import fitted
from visualizer.settings.link import read_query
from visualizer.settings.settings import Selection, Settings, mask_title

say = texts_of(__name__)


def compared_settings(settings: Settings, selection: Selection) -> tuple[Settings, Settings]:
    """The settings of A and of B: what was kept and what is chosen, or the same under two masks.

    Of two masks A is never edited; of a worked example A is without its mask and B with it.
    """
    if (baseline := baseline_of(selection)) is not None:
        return baseline, settings
    if settings.weights in WORKED_EXAMPLES:
        return replace(settings, mask=()), replace(settings, mask=Settings().mask)
    intent = intent_of_b(settings, selection)
    attention = attention_named(selection.lab.attention, settings.architecture)
    masks = selection.compare
    b = replace(settings, mask=masks.mask_b) if intent is None else as_meant(settings, intent, attention)
    return replace(settings, mask=masks.mask_a, edits=""), b


def baseline_of(selection: Selection) -> Settings | None:
    """The settings that were kept to be compared with; None where two masks are compared, or asked about."""
    if selection.hidden or not selection.compare.baseline:
        return None
    return fitted(read_query(parse_qs(selection.compare.baseline, keep_blank_values=True))[0])


def intent_of_b(settings: Settings, selection: Selection) -> Intent | None:
    """Return the intention that B carries out; None where B is not the mask as it should be."""
    if settings.weights in WORKED_EXAMPLES or not selection.compare.against_intent:
        return None
    intent = chosen_intent(selection, attention_named(selection.lab.attention, settings.architecture))
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

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The queries and the keys; where they are other tokens in B, those of both."""
        rows, columns = (
            replace(of_a, labels=tuple(map(_both, of_a.labels, of_b.labels)))
            for of_a, of_b in zip(self.a.axes, self.b.axes, strict=True)
        )
        return rows, columns

    @property
    def head_names(self) -> tuple[tuple[str, ...], ...]:
        """The names of the heads for each layer; where they differ, that of each side."""
        layers = zip(self.a.edited_names, self.b.edited_names, strict=True)
        return tuple(tuple(map(_name_of_both, *names)) for names in layers)

    def exact_at(self, places: Sequence[int]) -> dict[str, NDArray[np.float32]]:
        """The weights of one cell in A and in B, as ``HeadsPicture.exact_at``."""
        return {"a": cell_of(self.a.weights, places), "b": cell_of(self.b.weights, places)}

    def packed(self, precision: Precision) -> bytes:
        """The bytes that the browser draws, with the numbers of the layers in the header."""
        rows, columns = self.axes
        sides = {"blocked_a": self.a, "blocked_b": self.b}
        return payload(
            {"a": self.a.weights, "b": self.b.weights},
            {name: side.blocked for name, side in sides.items()},
            rows=rows,
            columns=columns,
            head_names=self.head_names,
            header={
                "layers": list(self.a.layers),
                "blocked_by": {"a": list(self.a.blocked_by), "b": list(self.b.blocked_by)},
                "titles": {
                    name: title_of_side(name, side.blocked_by, is_edited=bool(side.run.interventions))
                    for name, side in (("a", self.a), ("b", self.b))
                },
                "shared": [name for name, side in sides.items() if side.masks_are_shared],
            },
            precision=precision,
        )


def draw_compared(
    picture: ComparePicture,
    selection: Selection,
    titles: tuple[str, str],
    *,
    looks: Looks,
    key: str,
    address: str | None = None,
    **others: Any,  # noqa: ANN401 - what else ``compare_grids`` takes
) -> Picture:
    """The picture as a component, at the layer that is selected.

    titles: of A and of B. address: where the browser finds the numbers; None sends them along.
    """
    a, b = picture.a, picture.b
    rows, columns = picture.axes
    return compare_grids(
        address or (a.weights, b.weights),
        blocked_a=None if address else a.blocked,
        blocked_b=None if address else b.blocked,
        blocked_by_a=a.blocked_by,
        blocked_by_b=b.blocked_by,
        title_a=titles[0],
        title_b=titles[1],
        rows=rows,
        columns=columns,
        head_names=picture.head_names,
        layer=min(selection.layer, len(a.layers) - 1),
        looks=looks,
        key=key,
        **others,
    )


def _both(of_a: str, of_b: str) -> str:
    return of_a if of_a == of_b else f"{of_a} / {of_b}"


def _name_of_both(of_a: str, of_b: str) -> str:
    """``next token``, ``next token (B: left out)`` or ``A: next token, B: left out``."""
    if of_a == of_b:
        return of_a
    for side, bare, noted in (("B", of_a, of_b), ("A", of_b, of_a)):
        if bare and noted.startswith(note := f"{bare} ("):
            return f"{note}{side}: {noted.removeprefix(note)}"
    return ", ".join(f"{side}: {name}" for side, name in (("A", of_a), ("B", of_b)) if name)
