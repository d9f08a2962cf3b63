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


def key_of_next(field: str) -> str:
    """Return the key of a field for files: another one once its file is counted, so that it is empty again."""
    return f"{field}_{put_by_before(f'{field}_count') or 0}"


def count_file(field: str) -> None:
    """Note that the file of a field is done with."""
    put_by(f"{field}_count", int(str(put_by_before(f"{field}_count") or 0)) + 1)


def secret_of_session() -> str:
    """Return a random text that this session and its page alone know."""
    secret = put_by_before("session_secret")
    if secret is None:
        secret = secrets.token_hex(16)
        put_by("session_secret", secret)
    return str(secret)
