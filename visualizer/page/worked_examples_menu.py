"""The menu of the worked examples: each with where it was published and how its numbers are made."""

from __future__ import annotations

import streamlit as st

from visualizer.safe_text import as_code, markdown_safe
from visualizer.session import drafts, state
from visualizer.settings.published import PUBLISHED, PublishedExample
from visualizer.settings.settings import Settings, View

KEY = "worked_examples"
"""Of the menu."""

_VIEWS: tuple[View, ...] = ("step", "heads", "compare")
"""Where there is something to see of a worked example."""


def worked_examples(weights: str) -> None:
    """A button that opens the menu; what is in the menu is drawn when it opens.

    Args:
        weights: those in use, which can be one of the examples.
    """
    menu = st.popover(
        f"Worked examples ({len(PUBLISHED)})",
        icon=":material/menu_book:",
        width="stretch",
        key=KEY,
        on_change="rerun",
    )
    if menu.open:
        with menu:
            st.caption(
                "Published examples with inputs, weights and masks of their own: all of it is computed and held "
                "against the published numbers."
            )
            for example in PUBLISHED.values():
                _entry(example, is_chosen=example.name == weights)


def _entry(example: PublishedExample, *, is_chosen: bool) -> None:
    def choose() -> None:
        state.change(weights=example.name, mask=state.chosen().settings.mask or Settings().mask)
        if state.chosen().selection.view not in _VIEWS:
            state.select(view="step")
        drafts.fill(KEY, False)

    with st.container(key=f"published_{example.name}", gap="xxsmall"):
        st.button(
            markdown_safe(example.title),
            key=f"open_{example.name}",
            on_click=state.callback(choose),
            type="primary" if is_chosen else "secondary",
            width="stretch",
        )
        st.caption(f"{markdown_safe(example.source)}  \n{as_code(example.recipe)}")
