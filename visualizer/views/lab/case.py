"""What every part of the Mask lab works on: the mask of one head, and the tokens it is over."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model import CombinedMask
from model.mask_tools.language import MaskContext
from visualizer.components.axis import Axis, SequenceName
from visualizer.runs.masks_in_force import mask_context
from visualizer.runs.paths import in_layer
from visualizer.runs.run import Run
from visualizer.runs.tokens import TokenSequence
from visualizer.settings.painted_mask import Scope
from visualizer.settings.settings import Selection, masked_attention
from visualizer.views.lab.mask_edits import scope_of


@dataclass(frozen=True, eq=False)
class Case:
    """One head of one layer of the self-attention that the masks are for.

    Attributes:
        run: the finished run.
        selection: what is looked at; its layer, head, query and key are ones that the run has.
        module: the path of the attention.
        masks: the masks chosen for it, also where the model is broken on purpose and does without.
        sequence: the name of the tokens that attend to each other.
    """

    run: Run
    selection: Selection
    module: str
    masks: CombinedMask
    sequence: SequenceName

    @property
    def tokens(self) -> TokenSequence:
        """The tokens that attend to each other."""
        return self.run.tokens[self.sequence]

    @property
    def context(self) -> MaskContext:
        """What an expression may ask of the tokens, the head and the sequence."""
        return mask_context(self.tokens, self.selection.head, self.run.item)

    @property
    def scope(self) -> Scope:
        """The heads that a stroke is for."""
        return scope_of(self.selection)

    @property
    def allowed(self) -> Tensor:
        """What this head may attend to, (T, T)."""
        return self.allowed_of_heads[min(self.selection.head, len(self.allowed_of_heads) - 1)]

    @property
    def allowed_of_heads(self) -> Tensor:
        """What the heads of this layer may attend to, (H or 1, T, T)."""
        n_tokens = len(self.tokens)
        allowed = self.masks.allowed
        if allowed is None:
            return torch.ones(1, n_tokens, n_tokens, dtype=torch.bool)
        return allowed[0].expand(-1, n_tokens, n_tokens)

    @property
    def scores_called(self) -> str:
        """What the scores are called that the mask is laid on."""
        changed = f"{self.module}.modified_scores" in self.run.trace
        return "modified scores" if changed else "scaled scores"

    @property
    def scores(self) -> Tensor:
        """The scores that the mask is laid on, (1, H, T, T)."""
        return self.run.trace[f"{self.module}.{self.scores_called.replace(' ', '_')}"].value

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """Queries and keys, with their labels."""
        labels = self.tokens.labels
        return Axis("query", labels, self.sequence), Axis("key", labels, self.sequence)


def case_of(run: Run, selection: Selection) -> Case:
    """The case that is looked at."""
    layer = min(selection.layer, run.settings.depth - 1)
    module = in_layer(masked_attention(run.settings.architecture), layer)
    sequence: SequenceName = "target" if "target" in run.tokens else "source"
    last = len(run.tokens[sequence]) - 1
    looked_at = replace(
        selection,
        layer=layer,
        head=min(selection.head, run.settings.n_heads - 1),
        query=min(selection.query, last),
        key=min(selection.key, last),
        batch=0,
    )
    return Case(run, looked_at, module, run.promised[module], sequence)
