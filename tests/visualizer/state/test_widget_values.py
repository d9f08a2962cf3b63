"""Values that a page reports for controls after they were given others, which it may not have heard of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import streamlit as st
from hypothesis import given, strategies
from streamlit.runtime.state.query_params_proxy import QueryParamsProxy
from streamlit.testing.v1 import AppTest

from tests.controls import chosen, control_named
from tests.test_app import assert_healthy, in_link, open_app, open_case, open_examples
from tests.visualizer.told import tell
from visualizer.settings.examples import EXAMPLES
from visualizer.settings.gallery import GALLERY
from visualizer.state import state, widget_values, widgets

PADDING = next(example for example in EXAMPLES if example.name == "padding")
CASE = next(case for case in GALLERY if case.name == "source_padding_seen")
NAMES = ("text", "mask")
VALUES = strategies.integers(0, 3)
ACTS = strategies.lists(
    strategies.one_of(
        strategies.tuples(strategies.just("choose"), strategies.sampled_from(NAMES), VALUES),
        strategies.tuples(strategies.just("replace"), strategies.sampled_from(NAMES), VALUES),
        strategies.tuples(strategies.sampled_from(("draw", "break off"))),
    ),
    max_size=12,
)


class Values(dict[str, Any]):
    """The values of a session, without Streamlit."""

    to_dict = dict.copy


@dataclass
class Session:
    """A page, what it has said, and a server that takes its time: it draws, or is broken off and sends nothing."""

    choices: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    page: dict[str, int] = field(default_factory=dict)
    said: list[dict[str, int]] = field(default_factory=list)
    values: Values = field(default_factory=Values)

    def choose(self, name: str, value: int) -> None:
        """A person gives a control that is on the page another value."""
        self.page[next(key for key in self.page if key.startswith(name))] = value
        self.said.append(dict(self.page))

    def replace(self, name: str, value: int) -> None:
        """The server gives it one, as an example does."""
        self.choices[name] = value

    def run(self, *, is_broken_off: bool = False) -> None:
        self.values.update(self.said.pop(0) if self.said else {})
        self.choices |= widget_values.chosen_in(NAMES)  # type: ignore[arg-type]
        drawn = {widget_values.give(name, value): value for name, value in self.choices.items()}
        self.values.update(drawn)
        if not is_broken_off:
            for key in [key for key in self.values if not key.startswith("_") and key not in drawn]:
                del self.values[key]
            self.page = drawn


@given(ACTS)
def test_page_and_server_agree_once_all_is_said_and_the_last_act_on_a_drawn_control_counts(acts):
    session = Session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(st, "session_state", session.values)
        session.run()
        for name, *what in acts:
            if name in ("draw", "break off"):
                session.run(is_broken_off=name == "break off")
            else:
                getattr(session, name)(*what)
        while session.said:
            session.run()
        session.run()
        assert sorted(session.page.values()) == sorted(session.choices.values())
        session.choose("mask", 4)
        session.run(is_broken_off=True)
        session.run()
        assert session.choices["mask"] == 4


def test_what_was_replaced_is_not_chosen_again_by_a_page_that_still_shows_it(monkeypatch):
    app = open_app(text="one two three")
    said = app._tree.get_widget_states()
    open_examples(app).button(key="example_padding").click().run()
    now = app._tree.get_widget_states()
    now.widgets.extend(each for each in said.widgets if each.id.endswith("-text"))
    monkeypatch.setattr(app._tree, "get_widget_states", lambda: now)
    app.query_params["text"] = "one two three"
    app.run()
    assert in_link(app, "text") == PADDING.settings.text
    assert app.text_area(key="text").value == PADDING.settings.text


@pytest.mark.parametrize(("before", "custom"), [("causal", ""), ("causal,custom", "k <= q")])
def test_nobody_chose_what_a_page_says_of_controls_that_were_replaced(monkeypatch, before, custom):
    app = open_app(view="lab", architecture="decoder", text="a b c", mask=before, custom=custom)
    said = app._tree.get_widget_states()
    after = before.replace("causal", "causal,padding")
    app.pills(key="mask").set_value(after.split(",")).run()
    now = app._tree.get_widget_states()
    known = {each.id for each in now.widgets}
    now.widgets.extend(each for each in said.widgets if each.id not in known)
    monkeypatch.setattr(app._tree, "get_widget_states", lambda: now)
    app.run()
    assert in_link(app, "mask") == after


@pytest.mark.parametrize("is_at_once", [True, False], ids=["in one message", "by a page that has not heard of it"])
@pytest.mark.parametrize(
    ("pressed", "after"),
    [
        ([], ("padding",)),
        (["causal", "padding"], ("causal", "padding")),
        (["causal", "sliding_window"], ("causal", "padding", "sliding_window")),
    ],
    ids=["taken away", "added too", "another one added"],
)
def test_a_mask_is_pressed_beside_the_padding_that_comes_with_several_lines(
    monkeypatch, is_at_once, pressed, after
):
    app = open_app(text="a b c", mask="causal")
    app.text_area(key="text").set_value("a b\nc d e")
    masks = app.pills(key="mask")
    if not is_at_once:
        app.run()
        assert chosen(app, "mask") == ("causal", "padding")
    masks.set_value(pressed)
    said = masks._widget_state
    now = app._tree.get_widget_states()
    if not is_at_once:
        now.widgets.append(said)
    monkeypatch.setattr(app._tree, "get_widget_states", lambda: now)
    app.run()
    assert chosen(app, "mask") == after


def test_a_page_that_has_heard_of_a_change_chooses_what_it_had_before():
    app = open_app(text="one two three")
    open_examples(app).button(key="example_padding").click().run()
    app.text_area(key="text").set_value("one two three").run()
    assert in_link(app, "text") == app.text_area(key="text").value == "one two three"


def test_a_case_gives_all_controls_its_values():
    app = open_app(view="lab", architecture="decoder")
    open_case(app, CASE.name)
    shown = (app.text_area, "text"), (app.selectbox, "architecture"), (app.number_input, "pad")
    for kind, name in shown:
        assert control_named(kind, name).value == getattr(CASE.settings, name)


@pytest.mark.parametrize("is_back", [True, False], ids=["back", "an address that was left"])
def test_the_address_is_read_again_only_after_back(monkeypatch, is_back):
    app: AppTest = open_app(view="step", n_heads="2")
    app.slider(key="n_heads").set_value(3).run()
    monkeypatch.setattr(state, "has_gone_back", lambda: is_back)
    app.query_params["n_heads"] = "2"
    app.run()
    assert app.slider(key="n_heads").value == (2 if is_back else 3)
    assert in_link(app, "n_heads") == ("2" if is_back else "3")


def test_a_page_says_that_it_went_back_where_streamlit_forgets_it():
    """A control that speaks at the same moment has Streamlit run the script as for an act of the control alone."""
    app: AppTest = open_app(view="step", n_heads="2")
    app.slider(key="n_heads").set_value(3).run()
    app.query_params["n_heads"] = "2"
    tell(app, "page_keys", "went", {"search": "?view=step&n_heads=2", "seq": 0})
    assert app.slider(key="n_heads").value == 2
    assert in_link(app, "n_heads") == "2"
    app.slider(key="n_heads").set_value(5).run()
    assert in_link(app, "n_heads") == "5"


@pytest.mark.parametrize(
    ("drawn", "expected"), [(3, 5), (5, 2)], ids=["what was chosen since counts", "Back counts"]
)
def test_an_address_that_is_seen_late_is_gone_to_unless_something_was_chosen_meanwhile(drawn, expected):
    app: AppTest = open_app(view="step", n_heads="3")
    app.slider(key="n_heads").set_value(5).run()
    link = {name: in_link(app, name) for name in app.query_params}
    late = {"search": "?view=step&n_heads=2", "seq": 0, "drawn": [link | {"n_heads": str(drawn)}]}
    tell(app, "page_keys", "went", late)
    assert app.slider(key="n_heads").value == expected


@pytest.mark.parametrize("is_told", [True, False], ids=["by the page", "by Streamlit"])
def test_what_is_written_and_not_taken_is_gone_after_back(monkeypatch, is_told):
    app = open_app(view="lab", architecture="decoder", text="a b c")
    control_named(app.text_input, "expression").set_value("k <=").run()
    assert control_named(app.text_input, "expression").value == "k <="
    if is_told:
        tell(app, "page_keys", "went", {"search": "?view=lab&architecture=decoder&text=a+b+c", "seq": 0})
    else:
        monkeypatch.setattr(state, "has_gone_back", lambda: True)
        app.run()
    assert [field.value for field in app.text_input if field.key.startswith("expression")] == ["k <= q"]


@pytest.mark.parametrize("search", [None, 7, "", "?", "?n_heads=x", "?&&&=", "?n_heads=2&n_heads=3", "\0"])
def test_an_address_may_say_anything(search):
    app = open_app(view="step", n_heads="2")
    tell(app, "page_keys", "went", {"search": search, "seq": 0})
    assert_healthy(app)


@pytest.fixture
def links_told(monkeypatch):
    """The links that the address bar was told."""
    told: list[dict[str, str]] = []
    tell = QueryParamsProxy.from_dict
    monkeypatch.setattr(
        QueryParamsProxy, "from_dict", lambda self, link: (told.append(dict(link)), tell(self, link))
    )
    return told


@pytest.mark.parametrize(("search", "n_more"), [("?view=step&n_heads=2", 1), ("?n_heads=2", 0)])
def test_an_address_that_is_seen_late_becomes_the_link_where_it_says_the_same_in_other_words(
    links_told, search, n_more
):
    app = open_app(view="step", n_heads="2")
    before = len(links_told)
    tell(app, "page_keys", "went", {"search": search, "seq": 0, "drawn": [{"n_heads": "2"}]})
    assert links_told[before:] == [{"n_heads": "2"}] * n_more


def test_a_browser_that_went_back_is_told_its_address_again_which_may_have_crossed_with_another(
    monkeypatch, links_told
):
    app = open_app(view="step", n_heads="2")
    app.slider(key="n_heads").set_value(3).run()
    assert links_told[-1]["n_heads"] == "3"
    monkeypatch.setattr(state, "has_gone_back", lambda: True)
    app.query_params["n_heads"] = "2"
    app.run()
    assert links_told[-1]["n_heads"] == "2"


def test_a_control_of_its_own_has_no_name_of_a_field():
    with pytest.raises(ValueError, match="checkpoint is a field of the link"):
        widgets.following("checkpoint", "", print)
