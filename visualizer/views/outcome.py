"""What the difference of two runs does in the end: the logit of a token, and the loss of the text."""

from __future__ import annotations

import streamlit as st
import torch
from torch import Tensor
from torch.nn import functional

from model.texts import texts_of
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.settings.settings import FIELDS, Selection
from visualizer.state import state, widgets

say = texts_of(__name__)

_LIKELY = 5
"""How many of the most likely tokens of each run are offered."""


def outcome(a: Run, b: Run, batch: int, selection: Selection) -> None:
    """Draw the logit of a token in both runs and, where a text is continued, its loss."""
    if "logits" not in a.trace:
        return
    before, after = (run.trace["logits"].value[batch] for run in (a, b))
    row = min(selection.query, len(before) - 1)
    offered = _offered(a, before[row], after[row], row)
    chosen = selection.compared_token if selection.compared_token in offered else offered[0]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="outcome"):
        label = markdown_safe(a.axes("logits")[0].labels[row])
        st.markdown(say("after", row=row, label=label), width="content")
        token = st.selectbox(
            FIELDS["compared_token"].label,
            offered,
            index=offered.index(chosen),
            format_func=lambda token: visible_whole(a.vocabulary[token]),
            label_visibility="collapsed",
            width=150,
            **widgets.following("token_of_outcome", chosen, _compare_by),
        )
        logits = say("logit", a=float(before[row, token]), b=float(after[row, token]))
        shares = [float(logits[row].softmax(-1)[token]) for logits in (before, after)]
        losses = [next_token_loss(run, batch) for run in (a, b)]
        st.markdown(logits, width="content")
        st.markdown(say("share", a=shares[0], b=shares[1]), width="content")
        if losses[0] is not None and losses[1] is not None:
            st.markdown(say("loss", a=float(losses[0]), b=float(losses[1])), width="content")


def _compare_by(token: int) -> None:
    state.select(compared_token=token)


def next_token_loss(run: Run, batch: int) -> Tensor | None:
    """The mean over the text of -log of the probability that the model gives to each next token, in nats.

    None where the model continues no text, or the text has no second token.
    """
    ids, is_padding = _read(run)
    labels = torch.tensor([-1 if pads else token for token, pads in zip(ids[1:], is_padding[1:], strict=True)])
    if run.settings.architecture == "encoder" or not bool((labels >= 0).any()):
        return None
    return functional.cross_entropy(run.trace["logits"].value[batch, :-1], labels, ignore_index=-1)


def _read(run: Run) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """The tokens that the rows of the logits stand for."""
    sequence = run.tokens["target" if "target" in run.tokens else "source"]
    return sequence.ids, sequence.is_padding


def _offered(run: Run, before: Tensor, after: Tensor, row: int) -> list[int]:
    """The most likely tokens of both runs, and the one that comes next in the text."""
    ids, _ = _read(run)
    following = ids[row + 1 : row + 2] if run.settings.architecture != "encoder" else ()
    likely = [
        token for logits in (before, after) for token in logits.topk(min(_LIKELY, len(logits))).indices.tolist()
    ]
    return list(dict.fromkeys([*likely, *following]))
