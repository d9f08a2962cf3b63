"""The influence between tokens that the masks allow: boolean products of masks.

A row of a layer's output depends on itself, by its query and the residual connection, and on every key that it may
attend to.
Over layers these relations compose, so that a stack of windows sees further than one (Longformer, section 3.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from model.tracing import Stage, Trace

SequenceName = Literal["source", "target"]

_ENTRIES = ("encoder.inputs.embedded", "decoder.inputs.embedded", "inputs.embedded")
_SHARES = ("weights", "dropped_weights")
_ATTENTION = re.compile(r"(?:(encoder|decoder)\.layers\.\d+\.(self|cross)_)?attention")


def reach(
    masks: Sequence[Tensor | None],
    n_tokens: int,
    *,
    cross: Sequence[Tensor | None] = (),
    of_keys: Tensor | None = None,
) -> Tensor:
    """Return the tokens that each row can depend on after each layer.

    Args:
        masks: one per layer of self-attention, broadcastable to (1, H, T, T), True = may attend; None allows all. A
            key that one head lets through is let through.
        n_tokens: T.
        cross: the same of a cross-attention after each.
        of_keys: (K, S) bool, the tokens of the source that its keys depend on: the rows then depend on none before.

    Returns:
        (L, T, T) bool, or (L, T, S); cell (l, i, j): after l + 1 layers, row i can depend on token j.

    Raises:
        ValueError: a mask is not boolean, is for several sequences or has another size.
    """
    itself = torch.eye(n_tokens, dtype=torch.bool)
    reached = itself if of_keys is None else of_keys.new_zeros(n_tokens, of_keys.shape[1])
    after_layers = []
    for layer, mask in enumerate(masks):
        reached = _attend(mask, reached, reached)
        if of_keys is not None:
            reached = _attend(cross[layer], reached, of_keys)
        after_layers.append(reached)
    return torch.stack(after_layers) if after_layers else reached.new_empty(0, *reached.shape)


def first_layer_reached(reached: Tensor, *, begins_with_itself: bool = True) -> Tensor:
    """After how many layers a token is reached: of (L, Tq, T) which rows can depend on which tokens, (Tq, T) int64.

    0 is the token itself, -1 never.

    Args:
        reached: by layer, such as ``reach``.
        begins_with_itself: whether rows and tokens are the same, so that each row depends on its own before all.
    """
    n_rows, n_tokens = reached.shape[1:]
    itself = torch.eye(n_rows, n_tokens, dtype=torch.bool)
    steps = torch.cat([itself[None] & begins_with_itself, reached])
    return torch.where(steps.any(0), steps.int().argmax(0), -1)


def entry_path(trace: Trace, sequence: SequenceName) -> str:
    """The path of what enters the first layer for a sequence: its embedded tokens.

    A model with one stack, encoder or decoder, or with an attention alone reads one sequence, the source.

    Raises:
        ValueError: the model has no target.
    """
    entries = [path for path in _ENTRIES if path in trace]
    if sequence == "target" and len(entries) == 1:
        raise ValueError(f"sequence ({sequence!r}) must be 'source': this model reads one sequence")
    return entries[sequence == "target"]


def allowed_dependence(
    trace: Trace, masks: Mapping[str, Tensor | None], sequence: SequenceName = "source"
) -> dict[str, Tensor]:
    """Return the tokens of a sequence that each row of each stage may depend on, if the masks hold.

    Up to an attention's queries and keys that is the reach of what came before; from its weights on, the reach with
    this attention. Cross-attention adds what the keys, the encoder's output, may depend on.

    Args:
        trace: a pass of a whole Transformer over one sequence, or one pair; nothing is read of it but the stages'
            names and sizes.
        masks: by the path of every attention, broadcastable to (1, H, Tq, Tk), True = may attend; None allows all.
        sequence: whose tokens.

    Returns:
        By path, in the order computed, (rows, T) bool, for every stage but those ``of_pairs``.

    Raises:
        ValueError: as in ``reach`` and ``entry_path``, or an attention has no entry in ``masks``.
    """
    entry = entry_path(trace, sequence)
    reached = _before_layers(trace, entry)
    last_stack = list(reached)[-1]
    allowed: dict[str, Tensor] = {}
    for path, stage in trace.items():
        if of_pairs(stage):
            continue
        stack = path.partition(".")[0]
        stack = stack if stack in reached else last_stack  # the logits and probabilities belong to no stack
        attention = _ATTENTION.fullmatch(stage.module_path)
        keys = reached["encoder" if attention and attention[2] == "cross" else stack]
        if attention and stage.name == "weights":
            reached[stack] = _attend(_mask_of(masks, stage.module_path), reached[stack], keys)
        allowed[path] = keys if stage.dims[-2][0] == "Tk" else reached[stack]  # a row for each key
    return allowed


def of_pairs(stage: Stage) -> bool:
    """True if a stage has a cell for each pair of tokens, blocked or not: not yet what a row takes from keys."""
    return stage.dims[-1][0] == "Tk" and stage.name not in _SHARES


def _before_layers(trace: Trace, entry: str) -> dict[str, Tensor]:
    """By stack: each token of the sequence that enters at ``entry`` reaches itself, and nothing of the other."""
    n_tokens = trace[entry].value.shape[-2]
    return {
        path.partition(".")[0]: (
            torch.eye(n_tokens, dtype=torch.bool)
            if path == entry
            else torch.zeros(trace[path].value.shape[-2], n_tokens, dtype=torch.bool)
        )
        for path in _ENTRIES
        if path in trace
    }


def _attend(mask: Tensor | None, queries: Tensor, keys: Tensor) -> Tensor:
    """One attention with its residual connection.

    From what queries (Tq, T) and keys (Tk, T) depend on to what the output (Tq, T) can depend on.
    """
    allowed = _of_any_head(mask, len(queries), len(keys))
    through_keys = allowed.to(torch.float32) @ keys.to(torch.float32) > 0  # counts below 2^24 are exact
    return queries | through_keys


def _of_any_head(mask: Tensor | None, n_queries: int, n_keys: int) -> Tensor:
    """(Tq, Tk) bool: the keys that any head may attend to."""
    if mask is None:
        return torch.ones(n_queries, n_keys, dtype=torch.bool)
    if mask.dtype is not torch.bool:
        raise ValueError(f"a mask must be boolean, not {mask.dtype}")
    if mask.dim() == 4 and len(mask) > 1:
        raise ValueError(f"a mask is for {len(mask)} sequences: reach is that of one, so take one, mask[i : i + 1]")
    try:
        heads = mask.expand(*mask.shape[:-2], n_queries, n_keys)
    except RuntimeError:
        raise ValueError(f"a mask has cells {tuple(mask.shape)}: they must fit ({n_queries}, {n_keys})") from None
    return heads.reshape(-1, n_queries, n_keys).any(0)


def _mask_of(masks: Mapping[str, Tensor | None], attention: str) -> Tensor | None:
    if attention not in masks:
        raise ValueError(f"masks has no entry for {attention}: give None where everything is allowed")
    return masks[attention]
