"""The inner parts of Streamlit are still there: a test that fails here says what a new version changed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import streamlit
from streamlit.runtime.scriptrunner import RerunData
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.testing.v1 import AppTest

from visualizer.state import streamlit_internals
from visualizer.state.streamlit_internals import is_page, session_id

SOURCES = Path(streamlit_internals.__file__).parents[1]
HOST = (SOURCES / "server" / "mount.js").read_text()
PART_OF_PAGE = re.compile(r'data-testid="?(\w+)|\.(st[A-Z]\w+)')
MESSAGE = re.compile(r'type: "([A-Z_]+)"|^ +([A-Z]+_[A-Z_]+):', re.MULTILINE)


def names(found: re.Pattern[str], *texts: str) -> list[str]:
    return sorted({one or other for text in texts for one, other in found.findall(text)})


STYLED = names(PART_OF_PAGE, HOST, *(path.read_text() for path in SOURCES.rglob("*.css")))
MESSAGES = names(MESSAGE, HOST)


@pytest.fixture(scope="module")
def browser_side() -> str:
    """All that Streamlit sends a browser to run."""
    return "\n".join(path.read_text() for path in Path(streamlit.__file__).parent.glob("static/**/*.js"))


@pytest.mark.parametrize("name", STYLED)
def test_the_page_has_this_part(name, browser_side):
    assert re.search(rf"""[`"'/]{name}[`"'.]""", browser_side)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_page_and_its_host_have_this_message(name, browser_side):
    assert re.search(rf"[`\"']{name}[`\"']", browser_side)


def test_the_messages_of_a_host_have_this_version(browser_side):
    [version] = re.findall(r"stCommVersion: (\d+)", HOST)
    assert re.search(rf"\.stCommVersion==={version}\b", browser_side)


def test_the_parts_and_messages_were_found():
    assert {"stMainBlockContainer", "stSidebar", "stPlotlyChart"} <= set(STYLED)
    assert {"SET_CUSTOM_THEME_CONFIG", "RERUN_SCRIPT"} <= set(MESSAGES)


def test_nothing_else_reaches_inside():
    inside = (
        "streamlit.runtime",
        "streamlit.web.server",
        "streamlit.proto",
        "streamlit.elements",
        "streamlit.delta",
    )
    users = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(inside)
    }
    assert users == {"state/streamlit_internals.py"}
    scripts = {path for path in SOURCES.rglob("*.js") if re.search(r"data-testid|stCommVersion", path.read_text())}
    assert scripts == {SOURCES / "server" / "mount.js"}


def test_a_thread_that_runs_no_script_has_no_page():
    app = AppTest.from_function(page_that_asks).run()
    assert not app.exception
    assert app.text[0].value == "page True, gone back False"
    assert not is_page()


def page_that_asks() -> None:
    import streamlit as st

    from visualizer.state.streamlit_internals import has_gone_back, is_page

    st.text(f"page {is_page()}, gone back {has_gone_back()}")


def test_a_session_has_a_name_and_a_server_knows_whether_it_has_a_page():
    app = AppTest.from_function(page_that_names_its_session).run()
    assert not app.exception
    assert app.text[0].value == "named True, asked ['here']"
    assert session_id() == ""


def page_that_names_its_session() -> None:
    from typing import Any

    import streamlit as st
    from streamlit import runtime

    from visualizer.state.streamlit_internals import has_open_page, session_id

    has_open_page("here")  # the server that AppTest puts here has what Streamlit's has, and notes what it is asked
    server: Any = runtime.get_instance()
    asked = [call.args[0] for call in server.is_active_session.call_args_list]
    st.text(f"named {bool(session_id())}, asked {asked}")


def test_a_run_for_back_or_forward_is_known():
    app = AppTest.from_function(page_that_goes_back).run()
    assert not app.exception
    assert app.text[0].value == "gone back True"


def page_that_goes_back() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from visualizer.state.streamlit_internals import has_gone_back

    context = get_script_run_ctx()
    assert context is not None
    if not has_gone_back():
        data = RerunData(page_script_hash=context.page_script_hash, is_history_navigation=True)
        assert context.script_requests.request_rerun(data)
    st.text(f"gone back {has_gone_back()}")


def page_that_is_spoken_to_in_a_callback() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    def press() -> None:
        context = get_script_run_ctx()
        assert context.script_requests.request_rerun(RerunData(page_script_hash=context.page_script_hash))
        st.session_state["pressed"] = 1 + st.session_state.get("pressed", 0)

    st.button("Press", key="press", on_click=press)
    st.text(f"pressed {st.session_state.get('pressed', 0)} times")


def test_a_newer_message_of_the_page_waits_until_a_callback_is_through():
    app = AppTest.from_function(page_that_is_spoken_to_in_a_callback).run()
    app.button(key="press").click().run()
    assert not app.exception
    assert app.text[0].value == "pressed 1 times"


def test_an_act_is_not_lost_when_the_page_says_more_before_it_is_taken_over(monkeypatch):
    app = AppTest.from_function(page_that_is_spoken_to_in_a_callback).run()
    begin, more = ScriptRunContext.reset, [RerunData()]

    def begin_and_hear_more(context, *args, **named):
        begin(context, *args, **named)
        if more:
            assert context.script_requests.request_rerun(more.pop())

    monkeypatch.setattr(ScriptRunContext, "reset", begin_and_hear_more)
    app.button(key="press").click().run()
    assert not app.exception
    assert not more
    assert app.text[0].value == "pressed 1 times"
