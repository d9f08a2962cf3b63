"""All that Python takes from inside of Streamlit, where its documentation promises nothing.

``mount.js`` beside this file does so in the browser, and the style sheets name parts of its page.
``tests/visualizer/state/test_streamlit_internals.py`` says for each of them when Streamlit has changed it.
"""

from __future__ import annotations

from collections.abc import Callable

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state import SafeSessionState
from streamlit.runtime.uploaded_file_manager import DeletedFile


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


class _GoOn:
    """In place of what Streamlit asks before each touch of a session's state: whether to break the run off there.

    It asks also before it takes over what the page said, which would be lost, and between two lines of a callback.
    A run that is out of date is still broken off where it draws something.
    """

    def __get__(self, state: object, kind: object = None) -> Callable[[], None]:
        return lambda: None

    def __set__(self, state: object, ask: Callable[[], None]) -> None:
        """Forget what Streamlit would ask."""


_ASKS = "_yield_callback"
setattr(SafeSessionState, _ASKS, _GoOn())
