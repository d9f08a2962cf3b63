"""Two passes of a checkpoint over the same words side by side: one head in both, and what both would write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from torch import Tensor

from headlight.attention import Attention
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.passes import Pass
from headlight.pretrained.tokens import Words, pieces_of_ids
from model.texts import texts_of
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.watched import plane
from visualizer.safe_text import markdown_safe, visible, visible_whole
from visualizer.server.mount import mount
from visualizer.stages.panels import to_array
from visualizer.state import state, widgets
from visualizer.state.state import Choices
from visualizer.views.watched.pretrained.mask_choice import Masked, axes_of
from visualizer.work.cache import Kept

say = texts_of(__name__)
N_LIKELY = 5
"""The number of likeliest tokens that are named."""

_ROOM_BYTES = 2**29
_PASSES: WeakKeyDictionary[Checkpoint, Kept[tuple[Words, str], Pass]] = WeakKeyDictionary()


@dataclass(frozen=True)
class TwoPasses:
    """The same words read as the checkpoint reads them, and otherwise.

    Attributes:
        own: the pass as it is.
        other: the one with another mask, or with edits.
        title: what the other one is called.
        minus: what the difference is of.
        allowed: the mask that the other one is given, (1 or H, Tq, Tk) bool; None where it has its own too.
    """

    own: Pass
    other: Pass
    title: str
    minus: str
    allowed: Tensor | None = None


def kept_pass(checkpoint: Checkpoint, words: Words, name: str, compute: Callable[[], Pass]) -> Pass:
    """A pass over some words, computed once while there is room for it.

    Args:
        checkpoint: the model.
        words: what it reads.
        name: what the pass is kept under.
        compute: makes the pass.
    """
    kept = _PASSES.setdefault(checkpoint, Kept(_ROOM_BYTES, lambda each: each.trace.nbytes + each.output.nbytes))
    found = kept.get((words, name))
    if found is None:
        with st.spinner(say("computing")):
            found = kept.keep((words, name), compute())
    return found


def farthest(both: TwoPasses) -> str:
    """Say where the weights changed most."""
    changes = [
        float((own.weights - other.weights).abs().max())
        for own, other in zip(both.own.trace, both.other.trace, strict=True)
        if own.weights is not None and other.weights is not None
    ]
    place = int(np.argmax(changes))
    path = markdown_safe(both.own.trace[place].path)
    return say("changed", change=changes[place], path=path) if changes[place] else say("unchanged")


def grids(both: TwoPasses, masked: Masked, path: str, choices: Choices) -> None:
    """Draw one head of an attention in both passes, and the difference."""
    own, other = both.own.trace[path], both.other.trace[path]
    head = min(choices.watched.watched_head, own.n_heads - 1)
    axes = axes_of(masked)
    before, after = weights_of_head(own, head), weights_of_head(other, head)
    most = float(np.abs(after - before).max()) or 1.0
    own_mask = None if own.allowed is None else blocked_of(own.allowed, own.shape, head)
    other_mask = own_mask if both.allowed is None else blocked_of(both.allowed, own.shape, head)
    of_head = say("of_head", path=path, head=head)
    panels = (
        Panel("own", say("own"), before, *axes, of_head, "weights",
              bounds=(0.0, 1.0), blocked=own_mask, blocked_by=("mask",)),
        Panel("other", both.title, after, *axes, of_head, "weights",
              bounds=(0.0, 1.0), blocked=other_mask, blocked_by=("mask",)),
        Panel("difference", say("difference"), after - before, *axes, both.minus,
              palette="diverging", bounds=(-most, most)),
    )  # fmt: skip
    mount(tensor_grid(panels, layout="wrap", key="pretrained_masks"))


def pick_head(path: str, paths: list[str]) -> None:
    """Draw the fields for the head and its attention."""
    widgets.number("watched_head", width=120)
    st.selectbox(
        say("attention"),
        paths,
        index=paths.index(path),
        format_func=visible_whole,
        width=300,
        **widgets.following("attention_of_masks", path, lambda one: state.watch(watched_attention=one)),
    )


def weights_of_head(attention: Attention, head: int) -> np.ndarray:
    """(Tq, Tk) of one head.

    Raises:
        ValueError: no weights were kept.
    """
    if attention.weights is None:
        raise ValueError(f"no weights of {attention.path} were kept")
    return to_array(attention.weights[0, head])


def blocked_of(allowed: Tensor, shape: tuple[int, ...], head: int) -> np.ndarray:
    """(Tq, Tk), 1 where the mask of a head blocks."""
    heads = plane(allowed, 0)
    return to_array(~heads[min(head, len(heads) - 1)].expand(shape[-2:])).astype(np.uint8)


def likeliest(checkpoint: Checkpoint, both: TwoPasses) -> None:
    """Draw the likeliest tokens at the last place in both passes."""
    columns = {}
    for title, each in ((say("own"), both.own), (both.title, both.other)):
        shares, ids = each.output[0, -1].double().softmax(0).topk(N_LIKELY)
        pieces = pieces_of_ids(checkpoint.tokenizer, ids.tolist())
        columns[title] = [visible(piece.text) for piece in pieces]
        columns[say("probability", title=title)] = [f"{share:.1%}" for share in shares.tolist()]
    st.caption(say("likeliest"))
    st.dataframe(columns, hide_index=True, width="content")
