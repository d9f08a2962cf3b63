"""The drawer of the settings that few change: drawn while it is open, and nothing in it is lost while it is not."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.test_app import APP, assert_healthy, in_link, open_app
from visualizer.page.sidebar import MORE


def test_the_drawer_is_drawn_while_it_is_open_and_its_settings_stay():
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params["view"], app.query_params["norm"] = "step", "pre"
    app.run()
    assert_healthy(app)
    assert "norm" not in {one.key for one in app.segmented_control}

    app.session_state[MORE] = True
    app.run()
    assert app.segmented_control(key="norm").value == "pre"
    app.number_input(key="pad").set_value(2).run()

    app.session_state[MORE] = False
    app.run()
    assert_healthy(app)
    assert "pad" not in {one.key for one in app.number_input}
    assert (in_link(app, "norm"), in_link(app, "pad")) == ("pre", "2")


def test_of_two_changes_at_once_neither_hides_what_the_other_touches():
    app = open_app(view="heads", weights="random", text="a b c")
    app.number_input(key="seed").set_value(3)
    app.segmented_control(key="norm").set_value("pre").run()
    assert_healthy(app)
    assert (in_link(app, "seed"), in_link(app, "norm")) == ("3", "pre")
    assert not [one for one in app.toggle if one.key == "final_norm"]
    assert app.sidebar.text_area
