"""The attention that a view draws, where a model has several."""

from __future__ import annotations

import streamlit as st

from model.texts import texts_of
from visualizer.pictures.heads import attention_of, kinds_of
from visualizer.state import state
from visualizer.state.widgets import following

say = texts_of(__name__)


def attention_kind(modules: tuple[str, ...], stage: str, *, is_chosen: bool = True) -> str:
    """Choose the attention to draw: that of the current stage, or the last one.

    Where there are several, and it ``is_chosen`` here, a control chooses it.
    """
    kinds = kinds_of(modules)
    current = attention_of(kinds, stage)
    if len(kinds) == 1 or not is_chosen:
        return current
    st.segmented_control(
        say("attention"),
        kinds,
        default=current,
        format_func=_kind_title,
        label_visibility="collapsed",
        required=True,
        **following("attention_kind", current, lambda kind: state.select(stage=f"{kind or current}.weights")),
    )
    return current


def _kind_title(kind: str) -> str:
    return kind.replace(".", " · ").replace("_", "-")
