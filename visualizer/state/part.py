"""A part of the page that can be drawn again without the rest."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def part(name: str, draw: Callable[[], None]) -> None:
    """Draw a part of the page. What a person changes in it draws it again, alone."""
    st.fragment(draw, key=name)()


def draw_alone(name: str) -> None:
    """Have a part drawn, in place of the whole page; for the end of a callback."""
    st.rerun(name)


def draw_all() -> None:
    """Have the whole page drawn, in place of the part that is being drawn."""
    st.rerun()
