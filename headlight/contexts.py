"""The stages of a pass that are the context of an attention, in whatever order a model keeps its axes."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor

from headlight.attentions import Attention
from headlight.stages import Stage
from model.tracing import Edit

_CLOSE = 1e-2
"""The share of its largest number by which a context may differ from the one computed again, as in bfloat16."""

_ORDERS = ((0, 1, 2, 3), (0, 2, 1, 3), (1, 2, 0, 3))
"""The axes of sequences, heads, tokens and columns in a stage of four."""


@dataclass(frozen=True, eq=False)
class Context:
    """A stage that is a context.

    Attributes:
        path: the stage.
        attention: the path of the attention.
        n_heads: how many heads it has.
        size: the number of sequences and of tokens.
        order: the axes of sequences, heads, tokens and columns; () where sequences and heads are in one axis.
    """

    path: str
    attention: str
    n_heads: int
    size: tuple[int, int]
    order: tuple[int, ...] = _ORDERS[0]

    @property
    def axis(self) -> int:
        """The axis of the stage that counts the heads."""
        return self.order[1] if self.order else 0

    def by_head(self, value: Tensor) -> Tensor:
        """The numbers of the stage as (B, H, T, Dh)."""
        return value.permute(self.order) if self.order else value.reshape(-1, self.n_heads, *value.shape[1:])

    def edit(self, edit: Edit) -> Edit:
        """An edit of (B, H, T, Dh) as one of the stage."""

        def edited(value: Tensor) -> Tensor:
            new = edit(self.by_head(value))
            back = sorted(range(len(self.order)), key=self.order.__getitem__)
            return new.permute(back) if back else new.flatten(0, 1)

        return edited


def context_of(attention: Attention, stages: Mapping[str, Stage], known: Container[str] = ()) -> Context | None:
    """The last stage of its module that is an attention's context; None where none is, or no context was kept.

    Args:
        attention: one whose context was kept.
        stages: those of the pass by path.
        known: the paths of those that are the context of another attention.
    """
    found = (_as_context(attention, stage) for stage in stages_of(attention, stages, known))
    return next((context for context in found if context is not None), None)


def stages_of(attention: Attention, stages: Mapping[str, Stage], known: Container[str] = ()) -> Iterator[Stage]:
    """The stages of its module whose numbers are there, the last first: a lone token's values are a context too."""
    modules = (attention.module, attention.module.rpartition(".")[0])  # a softmax can be a module of its own
    for path in reversed(list(stages)):
        if path not in known and stages[path].module in modules and stages[path].value is not None:
            yield stages[path]


def heads_of(attention: Attention) -> Tensor | None:
    """The context of an attention as (B, H, T, Dh), where it was kept."""
    return None if attention.context is None else attention.context.reshape(*attention.shape[:3], -1)


def _as_context(attention: Attention, stage: Stage) -> Context | None:
    """A stage as an attention's context; None where it holds other numbers."""
    expected, value = heads_of(attention), stage.value
    if expected is None or value is None:
        return None
    n_items, n_heads, n_tokens, _ = expected.shape
    is_joined = value.shape == expected.flatten(0, 1).shape
    for order in _ORDERS if value.dim() == 4 else ((),) * is_joined:
        context = Context(stage.path, attention.path, n_heads, (n_items, n_tokens), order)
        found = context.by_head(value.detach())
        if found.shape == expected.shape:
            gap = (found.to(expected) - expected).abs().max()
            if bool(gap <= _CLOSE * expected.abs().max()):
                return context
    return None
