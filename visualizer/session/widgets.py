"""Controls that several rooms draw."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from visualizer.safe_text import markdown_safe
from visualizer.session import state
from visualizer.settings.examples import Example


def notices(sentences: Sequence[str]) -> None:
    """What was changed in the link, in one box."""
    if sentences:
        st.warning("\n\n".join(map(markdown_safe, sentences)), icon=":material/edit_note:")


def examples(title: str, offered: Sequence[Example], *, key: str, button_key: str) -> None:
    """A row of buttons that each open an example; ``button_key`` takes its name."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key):
        st.caption(title, width="content")
        for example in offered:
            st.button(
                example.title,
                key=button_key.format(example.name),
                help=example.what_to_see,
                on_click=state.open_example,
                args=(example.settings, example.selection),
                type="tertiary",
            )
