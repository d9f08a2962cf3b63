"""Every change is one run of the script: nothing is begun and thrown away."""

from __future__ import annotations

import pytest
from streamlit.runtime.scriptrunner import script_runner

from tests.test_app import open_app


@pytest.fixture
def runs(monkeypatch):
    """Grows by one with each run that begins, also with one that ends before the first line of the script."""
    begun = []
    create = script_runner.RunDescriptor.create

    def counted(fragments):
        begun.append(fragments)
        return create(fragments)

    monkeypatch.setattr(script_runner.RunDescriptor, "create", counted)
    return begun


def test_a_change_is_one_run(runs):
    app = open_app(text="a b c")
    changes = [
        lambda: app.slider(key="n_heads").set_value(5),
        lambda: app.select_slider(key="d_model").set_value(80),
        lambda: app.text_area(key="text").set_value("a b\nc d"),
        lambda: app.selectbox(key="architecture").set_value("decoder"),
        lambda: app.button(key="shuffle").click(),
        lambda: app.segmented_control(key="view").set_value("compare"),
        lambda: app.segmented_control(key="view").set_value("step"),
        lambda: app.button(key="other_depth").click(),
        lambda: app.selectbox(key="model").set_value("reverse"),
    ]
    for number, change in enumerate(changes):
        runs.clear()
        change().run()
        assert not app.exception
        assert len(runs) == 1, f"change {number}"
