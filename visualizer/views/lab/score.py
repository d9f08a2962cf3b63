"""The change of the scores, apart from the mask and beside it: said, seen for one head, and as code."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial

import streamlit as st
from torch import Tensor

from headlight.masks.language import READY_SCORES, MaskExpressionError, ScoreExpression, parse_score
from headlight.masks.language.score_code import by_hand, flex_score_mod
from headlight.masks.translations import TRANSLATIONS
from model.texts import texts_of
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.state import state, widgets
from visualizer.state.widget_values import give_draft
from visualizer.views.lab.case import Case
from visualizer.views.lab.pointing import point_out
from visualizer.views.lab.translate import mask_to_translate

say = texts_of(__name__)
_TEXT = "score_text"


def render(case: Case) -> None:
    """Draw it."""
    if not case.attention.has_the_list:
        st.caption(say("not_here", attention=case.attention.called))
        return
    _start_from()
    _expression(case)
    if not case.run.settings.score:
        st.caption(say("unchanged"))
        return
    change = parse_score(case.run.settings.score)
    _picture(case)
    _code(case, change)


def _start_from() -> None:
    widgets.menu(
        say("start"),
        {f"{one.title}: {one.text}": partial(state.change, score=one.text) for one in READY_SCORES},
        key="score_start",
        placeholder=say("start_which"),
        help=say("start_help"),
    )


def _expression(case: Case) -> None:
    def write(text: str) -> None:
        if not text.strip():
            state.change(score="")
            return
        with suppress(MaskExpressionError):
            state.change(score=parse_score(text).text)

    text = st.text_input(
        say("becomes"),
        **give_draft(_TEXT, case.run.settings.score),
        placeholder=say("becomes_itself"),
        help=say("becomes_help"),
        on_change=state.on_change(_TEXT, write),
    )
    if text.strip():
        try:
            parse_score(text)
        except MaskExpressionError as error:
            point_out(text, error)
    ready = next((one for one in READY_SCORES if one.text == case.run.settings.score), None)
    if ready is not None:
        st.caption(markdown_safe(f"{ready.title}: {ready.note}"))


def _picture(case: Case) -> None:
    """The scores of the head that is looked at: before, what the change adds, after, and under the mask."""
    head, (rows, columns) = case.selection.head, case.axes
    before = case.run.trace[f"{case.module}.scaled_scores"].value[0, head]
    after = case.scores[0, head]
    blocked = (~case.allowed).numpy().astype("uint8")

    def panel(name: str, title: str, numbers: Tensor, operator: str = "", *, is_masked: bool = False) -> Panel:
        return Panel(
            name=name,
            title=title,
            array=numbers.numpy(),
            rows=rows,
            columns=columns,
            role="weights",
            palette="diverging",
            blocked=blocked if is_masked else None,
            blocked_by=(say("blocked_by"),) if is_masked else (),
            operator=operator,
        )

    st.markdown(say("place", layer=case.selection.layer, head=markdown_safe(case.run.head_label(head))))
    panels = [
        panel("scaled_scores", say("before"), before),
        panel("change", say("change"), after - before, "+"),
        panel("modified_scores", say("after"), after, "=", is_masked=True),
    ]
    mount(tensor_grid(panels, key="score_change", layout="wrap"))
    allowed = case.allowed
    if bool(allowed.any()):
        largest = float((after - before)[allowed].abs().max())
        st.caption(say("largest", largest=largest))


def _code(case: Case, change: ScoreExpression) -> None:
    st.caption(say("flex_attention"))
    st.code(flex_code(case, change), language="python")
    st.caption(say("plain_pytorch"))
    st.code(plain_code(case, change), language="python")


def flex_code(case: Case, change: ScoreExpression) -> str:
    """FlexAttention's ``score_mod`` and ``mask_mod``, with the call as a comment."""
    settings = case.run.settings
    mask = TRANSLATIONS["flex_attention"].write(mask_to_translate(case))
    lines = [line for line in mask.splitlines() if not line.startswith("# output")]
    scale = "" if settings.scale_scores else ", scale=1.0"
    call = f"# output = flex_attention(query, key, value, score_mod=score_mod, block_mask=block_mask{scale})"
    return "\n".join([*lines, "", flex_score_mod(change, settings.n_heads, len(case.keys)), "", call])


def plain_code(case: Case, change: ScoreExpression) -> str:
    """An ``attention`` over query, key, value and mask in plain PyTorch."""
    settings = case.run.settings
    head_dim = case.run.trace[f"{case.module}.q"].value.shape[-1]
    divisor = math.sqrt(head_dim) if settings.scale_scores else 1.0
    return by_hand(change, settings.n_heads, len(case.keys), divisor)
