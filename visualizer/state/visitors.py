"""The visitors of this server: a name for each session, and whether its page is still open."""

from __future__ import annotations

from visualizer.state import drafts
from visualizer.state.streamlit_internals import has_open_page, session_id


def name_of_session() -> str:
    """Return a name that tells this session from others that watch the same job."""
    return f"{session_id()} {drafts.secret_of_session()}"


def has_page(name: str) -> bool:
    """True if the page of a session by its name is still open: a reload makes another session."""
    return has_open_page(name.partition(" ")[0])
