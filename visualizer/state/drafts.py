"""Values that last in a session and are neither a setting nor in a control."""

from __future__ import annotations

import secrets

import streamlit as st


def put_by(name: str, value: object) -> None:
    """Have ``put_by_before`` return a value under this name for the rest of the session."""
    st.session_state[f"_{name}"] = value


def put_by_before(name: str) -> object:
    """Return the value put by under a name in this session; None before there is one."""
    return st.session_state.get(f"_{name}")


def secret_of_session() -> str:
    """Return a random text that this session and its page alone know."""
    secret = put_by_before("session_secret")
    if secret is None:
        secret = secrets.token_hex(16)
        put_by("session_secret", secret)
    return str(secret)
