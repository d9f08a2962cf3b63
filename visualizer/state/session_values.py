"""Streamlit's state of a session, without its interruptions.

Whoever touches ``st.session_state`` is broken off there when the page has said something newer meanwhile. A
callback would stop halfway, and what the person did would be lost. What is newer waits until it is through.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import streamlit as st

from visualizer.state.streamlit_internals import uninterrupted


class SessionValues(MutableMapping[str, Any]):
    """``st.session_state``, to which the same rules apply."""

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - whatever was put there
        with uninterrupted():
            return st.session_state[key]

    def __setitem__(self, key: str, value: object) -> None:
        with uninterrupted():
            st.session_state[key] = value

    def __delitem__(self, key: str) -> None:
        with uninterrupted():
            del st.session_state[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """All at once: each look-up by itself takes a lock and tries three places."""
        with uninterrupted():
            return st.session_state.to_dict()


def address() -> dict[str, str]:
    """The parameters of the address with which the browser spoke."""
    with uninterrupted():
        return st.query_params.to_dict()


session_values = SessionValues()
