"""Another mask: the same pass with a mask in place of the model's own, both side by side."""

from __future__ import annotations

import streamlit as st
from torch import Tensor

from headlight.pretrained.passes import Where, attentions_of, holds, run, with_mask
from headlight.pretrained.tokens import tokenized
from model.texts import texts_of
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.state import widgets
from visualizer.state.state import Choices
from visualizer.views.watched.pretrained.chosen import opened
from visualizer.views.watched.pretrained.door import MOST_TOKENS, words_of
from visualizer.views.watched.pretrained.mask_choice import Masked, allowed_by, choose, masked_by, paint
from visualizer.views.watched.pretrained.two_passes import (
    TwoPasses,
    farthest,
    grids,
    kept_pass,
    likeliest,
    pick_head,
    weights_of_head,
)

say = texts_of(__name__)


def render(watched: WatchedRun, choices: Choices) -> None:
    """Draw the field for the mask, and what it does."""
    checkpoint = opened(choices.watched)
    if checkpoint is None:
        return
    words = words_of(choices)
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
    own = kept_pass(checkpoint, words, "", lambda: run(checkpoint, given))
    changed = with_mask(checkpoint, given, allowed, where)
    other = kept_pass(checkpoint, words, f"{where}:{source}", lambda: run(checkpoint, changed))
    both = TwoPasses(own, other, say("other"), say("minus"), allowed)
    _said(both, masked, allowed)
    painting, result = st.columns([5, 6], gap="medium")
    with painting:
        head = min(choices.watched.watched_head, attention.n_heads - 1)
        paint(masked, allowed, weights_of_head(other.trace[attention.path], head), choices)
    with result:
        grids(both, masked, attention.path, choices)
        with st.container(horizontal=True, gap="small", key="pretrained_mask_place"):
            pick_head(attention.path, [each.path for each in attentions_of(own.trace, where)])
    if own.has_logits:
        likeliest(checkpoint, both)


def _said(both: TwoPasses, masked: Masked, allowed: Tensor) -> None:
    """Say whether the model kept to the mask, and how far it went from its own."""
    meant = attentions_of(both.other.trace, masked.where)
    if holds(meant, allowed):
        said = [say("all_keep", n_attentions=len(meant)) if len(meant) > 1 else say("it_keeps")]
    else:
        said = [say("not_kept")]
    if without := int((~allowed.any(-1)).any(0).sum()):
        said.append(say("one_keyless") if without == 1 else say("keyless", n_queries=without))
    st.caption(" ".join((*said, farthest(both))))
