"""A callback is carried out to its end, whatever the page says meanwhile."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def page_that_is_spoken_to_in_a_callback() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from visualizer.session import drafts

    def press() -> None:
        context = get_script_run_ctx()
        assert context.script_requests.request_rerun(RerunData(page_script_hash=context.page_script_hash))
        drafts.put_by("pressed", 1 + int(drafts.put_by_before("pressed") or 0))

    st.button("Press", key="press", on_click=press)
    st.text(f"pressed {drafts.put_by_before('pressed')} times")


def test_a_newer_message_of_the_page_waits_until_a_callback_is_through():
    app = AppTest.from_function(page_that_is_spoken_to_in_a_callback).run()
    app.button(key="press").click().run()
    assert not app.exception
    assert app.text[0].value == "pressed 1 times"
