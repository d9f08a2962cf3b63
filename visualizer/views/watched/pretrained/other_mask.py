"""Another mask: the same pass with a mask in place of the model's own, both side by side."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from torch import Tensor

from headlight.attention import Attention
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.passes import Pass, Where, attentions_of, holds, run, with_mask
from headlight.pretrained.tokens import Tokenized, Words, pieces_of_ids, tokenized
from model.texts import texts_of
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.watched import WatchedRun, plane
from visualizer.safe_text import markdown_safe, visible, visible_whole
from visualizer.server.mount import mount
from visualizer.stages.panels import to_array
from visualizer.state import state, widgets
from visualizer.state.state import Choices
from visualizer.views.watched.pretrained.door import MOST_TOKENS, opened, words_of
from visualizer.views.watched.pretrained.mask_choice import Masked, allowed_by, axes_of, choose, masked_by, paint
from visualizer.work.cache import Kept

say = texts_of(__name__)
N_LIKELY = 5
"""How many of the likeliest tokens are named."""

_ROOM_BYTES = 2**29
_PASSES: WeakKeyDictionary[Checkpoint, Kept[tuple[Words, str], Pass]] = WeakKeyDictionary()
"""The passes over some words under a mask, "" for the model's own."""


@dataclass(frozen=True)
class _Both:
    """The same pass under the model's own mask and under another."""

    own: Pass
    other: Pass


def render(watched: WatchedRun, choices: Choices) -> None:
    """Draw the field for the mask, and what it does."""
    checkpoint = opened(choices.watched)
    if checkpoint is None:
        return
    words = words_of(choices.watched)
    given = tokenized(checkpoint, words, MOST_TOKENS)
    where: Where = "self"
    if checkpoint.part == "encoder-decoder":
        widgets.segments("pretrained_where", required=True)
        where = choices.watched.pretrained_where
    masked = masked_by(given, where)
    choose(watched, checkpoint, masked, choices)
    attention = masked.attention(watched, choices.watched.watched_attention)
    source = choices.watched.pretrained_mask
    try:
        allowed = allowed_by(source, masked, attention.n_heads)
    except ValueError as error:
        st.error(markdown_safe(visible_whole(str(error))), icon=":material/error:")
        return
    other = _pass(checkpoint, with_mask(checkpoint, given, allowed, where), words, f"{where}:{source}")
    both = _Both(_pass(checkpoint, given, words, ""), other)
    _said(both, masked, allowed)
    painting, result = st.columns([5, 6], gap="medium")
    with painting:
        head = min(choices.watched.watched_head, attention.n_heads - 1)
        paint(masked, allowed, _head(other.trace[attention.path], head), choices)
    with result:
        _grids(both, masked, attention, allowed, choices)
    if both.own.has_logits:
        _answers(checkpoint, both)


def _pass(checkpoint: Checkpoint, given: Tokenized, words: Words, source: str) -> Pass:
    """The pass over some words under a mask, computed once while there is room for it."""
    kept = _PASSES.setdefault(checkpoint, Kept(_ROOM_BYTES, lambda each: each.trace.nbytes + each.output.nbytes))
    found = kept.get((words, source))
    if found is None:
        with st.spinner(say("computing")):
            found = kept.keep((words, source), run(checkpoint, given))
    return found


def _said(both: _Both, masked: Masked, allowed: Tensor) -> None:
    """Whether the model kept to the mask, and how far it went from its own."""
    meant = attentions_of(both.other.trace, masked.where)
    if holds(meant, allowed):
        said = [say("all_keep", n_attentions=len(meant)) if len(meant) > 1 else say("it_keeps")]
    else:
        said = [say("not_kept")]
    if without := int((~allowed.any(-1)).any(0).sum()):
        said.append(say("one_keyless") if without == 1 else say("keyless", n_queries=without))
    st.caption(" ".join((*said, _farthest(both))))


def _farthest(both: _Both) -> str:
    """Where the weights changed most."""
    changes = [
        float((own.weights - other.weights).abs().max())
        for own, other in zip(both.own.trace, both.other.trace, strict=True)
        if own.weights is not None and other.weights is not None
    ]
    place = int(np.argmax(changes))
    path = markdown_safe(both.own.trace[place].path)
    return say("changed", change=changes[place], path=path) if changes[place] else say("unchanged")


def _grids(both: _Both, masked: Masked, attention: Attention, allowed: Tensor, choices: Choices) -> None:
    """One head under both masks, and the difference."""
    path = attention.path
    own, other = both.own.trace[path], both.other.trace[path]
    head = min(choices.watched.watched_head, own.n_heads - 1)
    axes = axes_of(masked)
    before, after = _head(own, head), _head(other, head)
    difference = after - before
    most = float(np.abs(difference).max()) or 1.0
    blocked = blocked_of(allowed, own.shape, head)
    own_blocked = None if own.allowed is None else blocked_of(own.allowed, own.shape, head)
    panels = (
        Panel("own", say("own"), before, *axes, say("of_head", path=path, head=head), "weights",
              bounds=(0.0, 1.0), blocked=own_blocked, blocked_by=("mask",)),
        Panel("other", say("other"), after, *axes, say("of_head", path=path, head=head), "weights",
              bounds=(0.0, 1.0), blocked=blocked, blocked_by=("mask",)),
        Panel("difference", say("difference"), difference, *axes, say("difference_of_what"),
              palette="diverging", bounds=(-most, most)),
    )  # fmt: skip
    mount(tensor_grid(panels, layout="wrap", key="pretrained_masks"))
    with st.container(horizontal=True, gap="small", key="pretrained_mask_place"):
        widgets.number("watched_head", width=140)
        paths = [each.path for each in attentions_of(both.own.trace, masked.where)]
        st.selectbox(
            say("attention"),
            paths,
            index=paths.index(path),
            format_func=visible_whole,
            width=420,
            **widgets.following("attention_of_masks", path, lambda one: state.watch(watched_attention=one)),
        )


def _head(attention: Attention, head: int) -> np.ndarray:
    if attention.weights is None:
        raise ValueError(f"no weights of {attention.path} were kept")
    return to_array(attention.weights[0, head])


def blocked_of(allowed: Tensor, shape: tuple[int, ...], head: int) -> np.ndarray:
    """(Tq, Tk), 1 where the mask of a head blocks."""
    heads = plane(allowed, 0)
    return to_array(~heads[min(head, len(heads) - 1)].expand(shape[-2:])).astype(np.uint8)


def _answers(checkpoint: Checkpoint, both: _Both) -> None:
    """The likeliest tokens at the last place under both masks."""
    columns = {}
    for title, each in ((say("own"), both.own), (say("other"), both.other)):
        shares, ids = each.output[0, -1].double().softmax(0).topk(N_LIKELY)
        pieces = pieces_of_ids(checkpoint.tokenizer, ids.tolist())
        columns[title] = [visible(piece.text) for piece in pieces]
        columns[say("probability", mask=title)] = [f"{share:.1%}" for share in shares.tolist()]
    st.caption(say("likeliest"))
    st.dataframe(columns, hide_index=True, width="content")
