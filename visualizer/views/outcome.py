"""What the difference of two runs does in the end: the logit of a token, and the loss of the text."""

from __future__ import annotations

import streamlit as st
import torch
from torch import Tensor
from torch.nn import functional

from model.texts import texts_of
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe, visible_whole

say = texts_of(__name__)

_LIKELY = 5
"""How many of the most likely tokens of each run are offered."""


def outcome(a: Run, b: Run, batch: int, row: int) -> None:
    """Draw the logit of one token after another in both runs and, where a text is continued, its loss."""
    if "logits" not in a.trace:
        return
    before, after = (run.trace["logits"].value[batch] for run in (a, b))
    row = min(row, len(before) - 1)
    offered = _offered(a, before[row], after[row], row)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="outcome"):
        label = markdown_safe(a.axes("logits")[0].labels[row])
        st.markdown(say("after", row=row, label=label), width="content")
        token = st.selectbox(
            say("token"),
            offered,
            format_func=lambda token: visible_whole(a.vocabulary[token]),
            key=f"token_of_outcome_{'_'.join(map(str, offered))}",
            label_visibility="collapsed",
            width=150,
        )
        shares = [logits[row].softmax(-1)[token] for logits in (before, after)]
        losses = [next_token_loss(run, batch) for run in (a, b)]
        found = {"logit": (before[row, token], after[row, token]), "share": shares, "loss": losses}
        for name, (in_a, in_b) in found.items():
            if in_a is not None and in_b is not None:
                st.markdown(say(name, a=float(in_a), b=float(in_b)), width="content")


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
