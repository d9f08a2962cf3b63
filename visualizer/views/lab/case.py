"""The case that every part of the Mask lab works on: the mask of one head, and the tokens it is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headlight.masks.language import MaskContext
from model import CombinedMask
from visualizer.components.axis import Axis
from visualizer.masks import OWN
from visualizer.runs.masks_in_force import as_expression, as_source, mask_context, masks_of_list
from visualizer.runs.paths import in_layer
from visualizer.runs.run import Run
from visualizer.runs.tokens import TokenSequence
from visualizer.settings.attentions import MaskedAttention, attention_named, attentions_of, changed_for, seen_by
from visualizer.settings.painted_mask import Scope
from visualizer.settings.settings import Selection, Settings
from visualizer.state import state
from visualizer.views.lab import mask_edits
from visualizer.work.cache import recalled


@dataclass(frozen=True, eq=False)
class Case:
    """One head of one layer of the attention whose mask is edited.

    Attributes:
        recall: the finished run; what waits for a click keeps the case, which must not keep all of its numbers.
        selection: what is looked at; its layer, head, query and key are ones that the run has.
        attention: which attention that is.
        module: the path of the attention in the layer.
        masks: the masks chosen for it, also where the model is broken on purpose and does without.
    """

    recall: Callable[[], Run]
    selection: Selection
    attention: MaskedAttention
    module: str
    masks: CombinedMask

    @property
    def run(self) -> Run:
        """The finished run, of one sequence."""
        return self.recall().alone()

    @property
    def queries(self) -> TokenSequence:
        """The tokens that look."""
        return self.run.tokens[self.attention.queries]

    @property
    def keys(self) -> TokenSequence:
        """The tokens that are looked at."""
        return self.run.tokens[self.attention.keys]

    @property
    def size(self) -> tuple[int, int]:
        """Tq and Tk."""
        return len(self.queries), len(self.keys)

    @property
    def settings(self) -> Settings:
        """The settings with the masks and the painting of this attention as the only ones."""
        return seen_by(self.attention, self.run.settings)

    @property
    def expression(self) -> str:
        """All masks in force on the head as one expression; "" where there is none."""
        settings, selection, context = self.settings, self.selection, self.context
        if OWN in self.masks.names:
            return as_expression(as_source(self.allowed, context), context)
        if self.run.attentions:  # the masks that a checkpoint has by itself are not all in the settings
            settings = replace(settings, mask=self.masks.names)
            settings = mask_edits.taken_over(settings, self.beside_painting(settings), context)
        return mask_edits.whole_expression(settings, selection.layer, selection.head, context)

    @property
    def n_layers(self) -> int:
        """In how many layers this attention is."""
        return self.attention.n_layers(self.run.settings)

    @property
    def of_encoder(self) -> bool:
        """True if it is the encoder's own attention, with a decoder beside it."""
        return self.attention.name == "encoder"

    @property
    def context(self) -> MaskContext:
        """The facts that an expression may ask of the tokens, the head and the sequence."""
        return mask_context(self.queries, self.keys, self.selection.head, self.run.item)

    @property
    def scope(self) -> Scope:
        """The heads that a stroke is for."""
        return mask_edits.scope_of(self.selection)

    @property
    def allowed(self) -> Tensor:
        """The cells that this head may attend to, (Tq, Tk)."""
        return self.allowed_of_heads[min(self.selection.head, len(self.allowed_of_heads) - 1)]

    @property
    def allowed_of_heads(self) -> Tensor:
        """The cells that the heads of this layer may attend to, (H or 1, Tq, Tk)."""
        allowed = self.masks.allowed
        if allowed is None:
            return torch.ones(1, *self.size, dtype=torch.bool)
        return allowed[0].expand(-1, *self.size)

    @property
    def has_changed_scores(self) -> bool:
        """True if the mask is laid on scores that were changed after scaling."""
        return f"{self.module}.modified_scores" in self.run.trace

    @property
    def scores(self) -> Tensor:
        """The scores that the mask is laid on, (1, H, Tq, Tk)."""
        name = "modified_scores" if self.has_changed_scores else "scaled_scores"
        return self.run.trace[f"{self.module}.{name}"].value

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """Queries and keys, with their labels."""
        return (
            Axis("query", self.queries.labels, self.attention.queries),
            Axis("key", self.keys.labels, self.attention.keys),
        )

    def beside_painting(self, settings: Settings) -> CombinedMask:
        """The masks beside the painting, as settings ask for them, or as a checkpoint has them."""
        if self.run.attentions:
            return self.masks.without("custom")
        return masks_of_list(settings, len(self.queries), torch.tensor([self.keys.is_padding]))

    def put_in_place(self, settings: Settings, source: str) -> Settings:
        """Put an expression or cells in the place of all masks in force on the heads of the scope."""
        beside = self.beside_painting(settings)
        return mask_edits.put_in_place(settings, self.scope, source, beside, self.context)

    def change_masks(self, change: Callable[[Settings], Settings]) -> None:
        """Change the masks of this attention, as a callback finds them: others than were drawn may be chosen."""
        now = state.now().settings
        state.change_masks(changed_for(self.attention, now, change(seen_by(self.attention, now))))


def case_of(run: Run, selection: Selection) -> Case:
    """The case that is looked at."""
    found = attentions_over_tokens(run)
    asked = attention_named(selection.lab.attention, run.settings.architecture)
    return case_in(run, selection, asked if asked in found else found[0])


def attentions_over_tokens(run: Run) -> tuple[MaskedAttention, ...]:
    """The attentions that have a mask: of a checkpoint some may attend block by block, or may not be seen."""

    def is_over_tokens(attention: MaskedAttention) -> bool:
        path = in_layer(attention.path, 0)
        weights = run.trace.get(f"{path}.weights")
        if path not in run.promised or weights is None:
            return False
        size = (len(run.tokens[attention.queries]), len(run.tokens[attention.keys]))
        return tuple(n for _, n in weights.dims[-2:]) == size

    return tuple(filter(is_over_tokens, attentions_of(run.settings.architecture)))


def case_in(run: Run, selection: Selection, attention: MaskedAttention) -> Case:
    """The case of one attention, at the place that is looked at or the nearest that it has."""
    layer = min(selection.layer, attention.n_layers(run.settings) - 1)
    module = in_layer(attention.path, layer)
    looked_at = replace(
        selection,
        layer=layer,
        head=min(selection.head, run.settings.n_heads - 1),
        query=min(selection.query, len(run.tokens[attention.queries]) - 1),
        key=min(selection.key, len(run.tokens[attention.keys]) - 1),
        batch=0,
    )
    return Case(recalled(run), looked_at, attention, module, run.promised[module])
