"""Late events of something that has left the page mean nothing; a failing act leaves the page in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.test_app import VIEWS, assert_healthy, open_app
from tests.visualizer.told import say
from visualizer.components.bundle import FOLDER

SOURCES = sorted((Path(__file__).resolve().parents[3] / "visualizer").rglob("*.py"))


def calls_of(source: Path, *names: str) -> Iterator[ast.Call]:
    """The calls of functions with these names in a source."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in names:
            yield node


def pictures_with_events() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The module of every component that a person can do something in, and the names of what they can do."""
    for source in FOLDER.rglob("*.py"):
        for call in calls_of(source, "Picture"):
            if len(call.args) == 4:
                yield ast.literal_eval(call.args[0]), ast.literal_eval(call.args[3])


EVENTS = dict(pictures_with_events())


@pytest.fixture(autouse=True)
def nothing_failed():
    """Failures are expected here."""


def page_of_one_picture(module: str, events: tuple[str, ...]) -> None:
    import streamlit as st

    from visualizer.components.picture import Picture
    from visualizer.server.mount import mount
    from visualizer.state import drafts

    def hear(event: object) -> None:
        drafts.put_by("heard", [*(drafts.put_by_before("heard") or ()), event])

    if st.toggle("Show it", value=True, key="shown"):
        mount(Picture(module, b"", "picture", events), **dict.fromkeys(events, hear))
    st.text(f"heard {len(drafts.put_by_before('heard') or ())}")


def test_every_component_is_tried():
    assert {"tensor_grid/element.js", "compare_grids/element.js", "page_keys/element.js"} <= EVENTS.keys()


@pytest.mark.parametrize("module", sorted(EVENTS))
def test_a_late_event_of_a_component_means_nothing(module, logged):
    app = AppTest.from_function(page_of_one_picture, args=(module, EVENTS[module])).run()
    component = app.get("bidi_component")[0].proto.id
    say(app, component, EVENTS[module][0], {"seq": 1})
    assert app.text[0].value == "heard 1"
    app.toggle(key="shown").set_value(False).run()
    for event in EVENTS[module]:
        say(app, component, event, {"seq": 2})
        assert_healthy(app)
        assert app.text[0].value == "heard 1"
    assert not logged


@pytest.mark.parametrize("view", VIEWS)
def test_a_late_event_of_a_view_that_one_has_left_changes_nothing(view):
    app = open_app(view=view, text="a b c", architecture="decoder")
    left = [element.proto for element in app.get("bidi_component")]
    app.segmented_control(key="view").set_value("train" if view != "train" else "way").run()
    assert_healthy(app)
    there = dict(app.query_params)
    stayed = {element.proto.id for element in app.get("bidi_component")}
    for component in left:
        named = component.component_name.removeprefix("headlight_")
        events = EVENTS.get(f"{named}/element.js") or EVENTS.get(f"{named.replace('_', '/', 1)}.js", ())
        for event in events if component.id not in stayed else ():
            say(app, component.id, event, {"row": 1, "column": 1, "index": 1, "path": "x", "seq": 9})
            assert_healthy(app)
            assert dict(app.query_params) == there


def page_with_a_widget_that_leaves() -> None:
    import streamlit as st

    from visualizer.state import drafts, state

    if (least := st.segmented_control("From", (0, 1), default=0, key="least")) is not None:
        heard = state.on_change("number", lambda number: drafts.put_by("heard", number))
        st.slider("Number", least, 9, key="number", on_change=heard)
    st.text(f"heard {drafts.put_by_before('heard')}")


def test_a_late_value_of_a_widget_whose_successor_has_left_too_means_nothing(logged):
    app = AppTest.from_function(page_with_a_widget_that_leaves).run()
    late = app.slider(key="number").set_value(3)._widget_state
    app.slider(key="number").set_value(0)
    for least in (1, None):
        app.segmented_control(key="least").set_value(least).run()
    states = app._tree.get_widget_states()
    states.widgets.append(late)
    app._run(states)
    assert app.text[0].value == "heard None"
    assert not logged


def page_with_acts_that_fail() -> None:
    import streamlit as st

    from visualizer.components.picture import Picture
    from visualizer.page import header
    from visualizer.server.mount import mount
    from visualizer.state import state

    def fail(*_: object) -> None:
        raise ZeroDivisionError("only the log may say this")

    header.remarks(state.load())
    st.button("Press", key="press", on_click=state.callback(fail))
    st.number_input("Number", key="number", on_change=state.on_change("number", fail))
    mount(Picture("tensor_grid/element.js", b"", "picture", ("select",)), select=fail)
    st.text("the rest of the page")


def press(app: AppTest) -> None:
    app.button(key="press").click().run()


def turn(app: AppTest) -> None:
    app.number_input(key="number").set_value(2).run()


def select(app: AppTest) -> None:
    say(app, app.get("bidi_component")[0].proto.id, "select", {"seq": 1})


@pytest.mark.parametrize("act", [press, turn, select])
def test_an_act_that_fails_is_said_in_a_sentence_whose_code_the_log_has(act, logged):
    app = AppTest.from_function(page_with_acts_that_fail).run()
    act(app)
    (record,) = logged
    (said,) = (error.value for error in app.error)
    assert not app.exception
    assert app.text[0].value == "the rest of the page"
    assert record.args[0] in said
    assert "only the log may say this" not in said
    assert record.exc_info[0] is ZeroDivisionError
    app.run()
    assert not app.error


def test_a_view_that_fails_is_said_too_and_the_way_to_the_others_stays(logged, monkeypatch):
    app = open_app(view="heads")
    with monkeypatch.context() as patched:
        patched.setattr("visualizer.page.show.show", lambda _: 1 / 0)
        app.run()
    assert [record.args[0] in app.error[0].value for record in logged] == [True]
    assert not app.exception
    assert_healthy(app.run())


MADE = ("callback", "on_change", "_on_change")
"""The makers of callbacks: nothing that fails in one takes the page away."""


def is_made(given: ast.expr, source: ast.Module) -> bool:
    """True if a callback is one of Streamlit's own, none, or made by one of ``MADE``, perhaps under a name."""
    if isinstance(given, ast.IfExp):
        return is_made(given.body, source) and is_made(given.orelse, source)
    if isinstance(given, ast.Name):
        named = [
            node.value for node in ast.walk(source) if isinstance(node, ast.Assign) and is_assigned(node, given.id)
        ]
        return bool(named) and all(is_made(value, source) for value in named)
    if isinstance(given, ast.Call):
        return getattr(given.func, "attr", getattr(given.func, "id", "")) in MADE
    return isinstance(given, ast.Constant)


def is_assigned(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(one, ast.Name) and one.id == name for one in node.targets
    )


def test_every_widget_calls_what_leaves_the_page_in_place():
    for source in SOURCES:
        tree = ast.parse(source.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg in ("on_click", "on_change"):
                assert is_made(node.value, tree), f"{source}:{node.lineno}"
