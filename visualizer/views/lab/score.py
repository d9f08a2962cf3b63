"""The change of the scores, apart from the mask and beside it: said, seen for one head, and as code."""

from __future__ import annotations

import math
from functools import partial

import streamlit as st
from torch import Tensor

from model.mask_tools.language import READY_SCORES, MaskExpressionError, ScoreExpression, parse_score
from model.mask_tools.language.score_code import by_hand, flex_score_mod
from model.mask_tools.translations import TRANSLATIONS
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.safe_text import markdown_safe
from visualizer.session import drafts, state, widgets
from visualizer.session.mount import mount
from visualizer.views.lab.case import Case
from visualizer.views.lab.pointing import point_out
from visualizer.views.lab.translate import mask_to_translate

_TEXT = "score_text"


def render(case: Case) -> None:
    """Draw it."""
    if not case.attention.has_the_list:
        st.caption(
            "A change of the scores is made in the decoder's self-attention alone: those of "
            f"{case.attention.called} go to the mask as they are. Choose the decoder above to change its scores."
        )
        return
    _start_from()
    _expression(case)
    if not case.run.settings.score:
        st.caption(
            "The scores go to the mask as they are. A change is worked out for each query and key after scaling "
            "and before the mask, as a score_mod of FlexAttention: the mask says which cells count, the change how "
            "much."
        )
        return
    change = parse_score(case.run.settings.score)
    _picture(case)
    _code(case, change)


def _start_from() -> None:
    widgets.menu(
        "Change the scores",
        {f"{one.title}: {one.text}": partial(state.change, score=one.text) for one in READY_SCORES},
        key="score_start",
        placeholder="a change of the literature",
        help="Takes over a change of the scores, to go on from there.",
    )


def _expression(case: Case) -> None:
    drafts.keep_in_step(_TEXT, case.run.settings.score)

    def write(text: str) -> None:
        if not text.strip():
            state.change(score="")
        elif (change := _read(text)) is not None:
            state.change(score=change.text)

    st.text_input(
        "Score becomes",
        key=_TEXT,
        placeholder="score, as it is",
        help="From `score`, the scaled score; `q` and `k`, the positions; `h`, the head; `n_heads`, `n_keys`. Use "
        "`+ - * / // % **`, `abs`, `tanh`, `sigmoid`, `exp`, `log`, `sqrt`, `min`, `max`, `a if condition else b`; "
        "`slope(h)` is ALiBi's, `bucket(k - q)` and `causal_bucket(k - q)` are T5's, `bias(h, n)` is a drawn "
        "number. A `score_mod` of FlexAttention can be pasted. An empty line changes nothing.",
        on_change=state.on_change(_TEXT, write),
    )
    text = drafts.text_in(_TEXT)
    if text.strip():
        _complaint(text)
    ready = next((one for one in READY_SCORES if one.text == case.run.settings.score), None)
    if ready is not None:
        st.caption(markdown_safe(f"{ready.title}: {ready.note}"))


def _read(text: str) -> ScoreExpression | None:
    try:
        return parse_score(text)
    except MaskExpressionError:
        return None


def _complaint(text: str) -> None:
    try:
        parse_score(text)
    except MaskExpressionError as error:
        point_out(text, error)


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
            blocked_by=("the mask",) if is_masked else (),
            operator=operator,
        )

    st.markdown(f"Layer {case.selection.layer}, {markdown_safe(case.run.head_label(head))}:")
    panels = [
        panel("scaled_scores", "Scaled scores", before),
        panel("change", "Change", after - before, "+"),
        panel("modified_scores", "Under the mask", after, "=", is_masked=True),
    ]
    mount(tensor_grid(panels, key="score_change", layout="wrap"))
    allowed = case.allowed
    if bool(allowed.any()):
        largest = float((after - before)[allowed].abs().max())
        st.caption(f"No score that the mask leaves is changed by more than {largest:.4g}.")


def _code(case: Case, change: ScoreExpression) -> None:
    st.caption("FlexAttention: the change beside the mask.")
    st.code(flex_code(case, change), language="python")
    st.caption("The same in plain PyTorch.")
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
