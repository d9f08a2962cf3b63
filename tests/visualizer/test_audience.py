"""The acts of the keys of the whole page, and what of a browser's event is believed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.controls import open_menu
from tests.test_app import assert_healthy, in_link, open_app
from tests.visualizer.told import tell
from tests.visualizer.views.watched.test_watched_view import pictures
from visualizer.components.page_keys.element import KEYS, MOST_ACTS, acts_in
from visualizer.page.audience import changes_by
from visualizer.settings.fields import MAX_TEXT, MAX_TYPED
from visualizer.settings.settings import FIELDS, Selection, Settings
from visualizer.state.state import Choices


def chosen(**selection):
    return Choices(Settings(n_layers=3, n_heads=4), Selection(**selection))


@pytest.mark.parametrize(
    ("act", "before", "after"),
    [
        ("layer_next", {"layer": 1}, {"layer": 2}),
        ("layer_next", {"layer": 2}, {"layer": 2}),
        ("layer_back", {"layer": 9}, {"layer": 1}),
        ("head_back", {"head": 0}, {"head": 0}),
        ("head_next", {"head": 1}, {"head": 2}),
        ("token_next", {"query": 4}, {"query": 5}),
        ("token_next", {"query": 5}, {"query": 5}),
        ("present", {}, {"present": True}),
        ("hide", {"hidden": True}, {"hidden": False}),
    ],
)
def test_an_act_changes_what_is_looked_at_and_stays_within_what_there_is(act, before, after):
    assert changes_by(act, chosen(**before), n_tokens=6) == after


def test_without_tokens_to_choose_from_none_is_chosen():
    assert changes_by("token_next", chosen(), n_tokens=0) == {}


def test_the_views_go_round():
    choices, seen = chosen(), []
    for _ in FIELDS["view"].choices:
        choices = replace(choices, selection=replace(choices.selection, **changes_by("view_next", choices, 6)))
        seen.append(choices.selection.view)
    assert sorted(seen) == sorted(FIELDS["view"].choices)
    assert seen[-1] == Selection().view
    assert changes_by("view_back", choices, 6) == {"view": seen[-2]}


def test_acts_are_done_once_and_in_order():
    event = {"acts": [[3, "layer_next"], [4, "layer_next"], [5, "hide"]], "seq": 5}
    assert acts_in(event, 0) == ("layer_next", "layer_next", "hide")
    assert acts_in(event, 4) == ("hide",)
    assert acts_in(event, 5) == ()


@pytest.mark.parametrize("event", [None, {}, {"acts": 3}, {"acts": [3, [1], ["1", "hide"], [1, "format_disk"]]}])
def test_what_a_browser_should_not_send_is_left_out(event):
    assert acts_in(event, 0) == ()
    assert len(acts_in({"acts": [[n, "hide"] for n in range(1, 500)]}, 0)) == MOST_ACTS


def test_a_key_of_the_page_is_done_and_is_in_the_link():
    app = open_app(text="the cat sat", query="1", head="1")
    done = {"present": ("present", "on"), "view_next": ("view", "heads"), "head_back": ("head", "0")}
    for number, (act, (name, value)) in enumerate((done | {"token_back": ("query", "0")}).items(), 1):
        tell(app, "page_keys", "act", {"acts": [[number, act]], "seq": number})
        assert_healthy(app)
        assert in_link(app, name) == value
    tell(app, "page_keys", "act", {"acts": [[4, "token_back"], [5, "present"]], "seq": 5})
    assert "present" not in app.query_params


def test_each_field_takes_as_many_characters_as_the_server_reads():
    assert pictures(open_app())["headlight_page_keys"]["longest"] == {"": MAX_TEXT, **MAX_TYPED}


def test_a_capital_letter_goes_back():
    for key, act in KEYS.items():
        if act.endswith("_next"):
            assert KEYS[key.upper()] == act.replace("_next", "_back")


def test_what_a_closed_menu_says_of_its_switches_turns_nothing():
    app = open_app(text="a b")
    open_menu(app, "audience_menu")
    switches = [switch.proto.id for switch in app.toggle if switch.key in ("present", "hidden")]
    assert len(switches) == 2
    app.session_state["audience_menu"] = False
    app.run()
    states = app._tree.get_widget_states()
    states.widgets.extend(WidgetState(id=switch, bool_value=False) for switch in switches)
    app._run(states)
    assert dict(app.query_params) == {"text": "a b"}
