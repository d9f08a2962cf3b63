"""Who is on a page of this server: what tells a session from others, and whether its page is still open."""

from __future__ import annotations

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from visualizer.session import drafts


def name_of_session() -> str:
    """What tells this session from others that watch the same job."""
    context = get_script_run_ctx()
    return f"{context.session_id if context else ''} {drafts.secret_of_session()}"


def has_page(name: str) -> bool:
    """Whether the page of a session by its name is still open: a reload makes another session."""
    return not runtime.exists() or runtime.get_instance().is_active_session(name.partition(" ")[0])
