"""The stages of the position-wise feed-forward network ("Attention Is All You Need", section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor

from model import FeedForward, record
from model.texts import texts_of
from visualizer.stages import by_operation
from visualizer.stages.by_operation import dropout, dropout_check, with_dropout
from visualizer.stages.checks import TOLERANCE, Check, short, some_rows
from visualizer.stages.entry import StageEntry, StageInRun
from visualizer.stages.explanations import Facts

say = texts_of(__name__)


def facts(stage: StageInRun) -> Facts:
    """Return the facts about the network that a stage is of."""
    is_relu = stage.run.activation(stage.path) == "relu"
    d_ff = stage.beside("hidden").value.shape[-1]
    return Facts(frozenset({"relu" if is_relu else "gelu"}), {"d_ff": str(d_ff)})


def _activation_formula(stage: StageInRun) -> str:
    if stage.run.activation(stage.path) == "relu":
        return r"a = \operatorname{ReLU}(h) = \max(0, h)"
    return r"a = \operatorname{GELU}(h) = h \, \Phi(h)"


def _output_formula(stage: StageInRun) -> str:
    return r"y = \tilde a W_2 + b_2" if stage.has_beside("dropped_activation") else "y = a W_2 + b_2"


def _activation_checks(stage: StageInRun) -> Iterable[Check]:
    yield from by_operation.checks(stage)
    inactive = (stage.value <= 0).double().mean().item()
    yield Check(say("inactive", share=inactive), None)
    yield from _position_wise(stage)


def _checks(stage: StageInRun) -> Iterable[Check]:
    return (*by_operation.checks(stage), *_position_wise(stage))


def _position_wise(stage: StageInRun) -> Iterable[Check]:
    """Check that one token alone, sent through the feed-forward network, gives the same row of a stage."""
    feed_forward = stage.run.model.get_submodule(stage.module)
    if not isinstance(feed_forward, FeedForward) or feed_forward.dropout.active:
        return  # dropout draws anew for each pass
    (x,) = stage.beside("hidden").inputs
    rows, where = some_rows(stage.value)
    with torch.inference_mode():
        each = [_alone(feed_forward, x.value[..., row : row + 1, :], stage.name) for row in rows]
    alone = torch.cat(each, dim=-2)
    difference = (alone - stage.value[..., rows, :]).abs()
    holds = bool((difference <= TOLERANCE * (1 + alone.abs().max())).all())
    yield Check(say("position_wise", where=where, difference=short(difference.max())), holds)


def _alone(feed_forward: FeedForward, x: Tensor, name: str) -> Tensor:
    """A stage of the network for one token."""
    with record(feed_forward) as trace:
        feed_forward(x)
    return trace[name].value


_stage = partial(StageEntry, facts=facts, block="feed_forward")

ENTRIES: tuple[StageEntry, ...] = (
    _stage(
        "hidden",
        say("hidden_title"),
        "feed_forward",
        formula="h = x W_1 + b_1",
        checks=_checks,
    ),
    _stage(
        "activation",
        say("activation_title"),
        "feed_forward",
        formula=_activation_formula,
        checks=_activation_checks,
        is_telling=True,
    ),
    _stage(
        "dropped_activation",
        say("dropped_activation_title"),
        "feed_forward",
        formula=r"\tilde a = \operatorname{dropout}(a)",
        numpy=with_dropout("{0}"),
        checks=dropout_check(say("hidden_units")),
        derive=dropout,
    ),
    _stage(
        "output",
        say("output_title"),
        "feed_forward",
        formula=_output_formula,
        checks=_checks,
        on_the_stream=True,
    ),
)
