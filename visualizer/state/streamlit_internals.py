"""All that Python takes from inside of Streamlit, where its documentation promises nothing.

``mount.js`` beside this file does so in the browser, and the style sheets name parts of its page.
``tests/visualizer/state/test_streamlit_internals.py`` says for each of them when Streamlit has changed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import DeletedFile

_ASKS = "_yield_callback"
"""Streamlit calls it at every touch of ``st.session_state``, to break off a run that is out of date."""


def is_page() -> bool:
    """True if this thread runs the script for a page."""
    return get_script_run_ctx(suppress_warning=True) is not None


def session_id() -> str:
    """Return Streamlit's id of the session of this page; nothing where there is no page."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""


def has_open_page(session: str) -> bool:
    """True if a page still speaks for a session; True where no server runs that could tell."""
    return not runtime.exists() or runtime.get_instance().is_active_session(session)


def has_gone_back() -> bool:
    """True if a person went Back or Forward to the address."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def is_lost_file(value: object) -> bool:
    """True if a field holds a file that the server has no more, as after its page was closed."""
    return isinstance(value, DeletedFile)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Nothing is broken off while the context is open, as far as Streamlit asks where it does now."""
    context = get_script_run_ctx(suppress_warning=True)
    known = vars(context.session_state) if context is not None else {}
    if (ask := known.get(_ASKS)) is None:
        yield
        return
    known[_ASKS] = lambda: None
    try:
        yield
    finally:
        known[_ASKS] = ask
