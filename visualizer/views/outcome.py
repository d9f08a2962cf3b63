"""The effect of the difference of two runs in the end: the logit of a token, and the loss of the text."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
import torch
from torch import Tensor
from torch.nn import functional

from model.texts import texts_of
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.settings.settings import Selection
from visualizer.shares import percent
from visualizer.state import widgets

say = texts_of(__name__)

_LIKELY = 5
"""The number of most likely tokens of each run that are offered."""


def outcome(a: Run, b: Run, batch: int, selection: Selection) -> None:
    """Draw the logit of a token in both runs and, where a text is continued, its loss."""
    if "logits" not in a.trace:
        return
    pair = [run.trace["logits"].value[batch] for run in (a, b)]
    row = min(selection.query, len(pair[0]) - 1)
    label = markdown_safe(a.axes("logits")[0].labels[row])
    continued = following(a)
    offered = _offered([logits[row] for logits in pair], continued[row : row + 1])
    chosen = selection.compare.compared_token if selection.compare.compared_token in offered else offered[0]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="outcome"):
        where = say("after", row=row, label=label) if continued else say("in_place_of", row=row, label=label)
        st.markdown(where, width="content")
        named = {f"{visible_whole(a.vocabulary[token])} #{token}": token for token in offered}
        key = "token_of_outcome"
        token = widgets.named("compared_token", named, chosen, key=key, label_visibility="collapsed", width=150)
        logit_a, logit_b = (float(logits[row, token]) for logits in pair)
        st.markdown(say("logit", a=logit_a, b=logit_b), width="content")
        share_a, share_b = (percent(float(logits[row].softmax(-1)[token]), 1) for logits in pair)
        st.markdown(say("share", a=share_a, b=share_b), width="content")
        loss_a, loss_b = (next_token_loss(logits, continued) for logits in pair)
        if loss_a is not None and loss_b is not None:
            st.markdown(say("loss", a=float(loss_a), b=float(loss_b)), width="content")


def next_token_loss(logits: Tensor, following: Sequence[int]) -> Tensor | None:
    """The mean of -log of the probability that a model gives to each next token, in nats.

    None where no row has a next token.

    Args:
        logits: (T, V).
        following: the next token of each row, -1 for none; () where no text is continued.
    """
    if all(token < 0 for token in following):
        return None
    return functional.cross_entropy(logits.float(), torch.tensor(following), ignore_index=-1)


def following(run: Run) -> tuple[int, ...]:
    """The token that should come after each row of a run's logits: the next of the text; () for an encoder."""
    if run.settings.architecture == "encoder":
        return ()
    sequence = run.tokens["target" if "target" in run.tokens else "source"]
    after = zip(sequence.ids[1:], sequence.is_padding[1:], strict=True)
    return (*(-1 if pads else token for token, pads in after), -1)


def _offered(rows: Sequence[Tensor], next_one: Sequence[int]) -> list[int]:
    """The most likely tokens of some rows of logits, (V,) each, and the one that comes next in the text."""
    likely = [token for logits in rows for token in logits.topk(min(_LIKELY, len(logits))).indices.tolist()]
    return list(dict.fromkeys([*likely, *(token for token in next_one if token >= 0)]))
