"""What a page says before it has heard of the last change: a clock's look, or a click that came too early."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.test_app import in_link, open_app, open_case, open_examples
from visualizer.settings.examples import EXAMPLES
from visualizer.settings.fields import NO_MASK
from visualizer.settings.gallery import GALLERY
from visualizer.state import catching_up

PADDING = next(example for example in EXAMPLES if example.name == "padding")

CASE = next(case for case in GALLERY if case.name == "source_padding_seen")
CONTROLS = {
    "text": lambda app: app.text_area(key="text"),
    "architecture": lambda app: app.selectbox(key="architecture"),
    "pad": lambda app: app.number_input(key="pad"),
}
"""Some of the controls that a case changes."""


def say_with(app: AppTest, address: dict[str, str]) -> None:
    """Run the script with the values that its controls were given, and with the address that the page had then."""
    app.query_params.clear()
    for name, value in address.items():
        app.query_params[name] = value
    app.run()


def test_what_was_replaced_is_not_chosen_again_by_a_page_that_still_shows_it():
    old = {"text": "one two three"}
    app = open_app(**old)
    open_examples(app).button(key="example_padding").click().run()
    app.text_area(key="text").set_value(old["text"])
    say_with(app, old)
    assert in_link(app, "text") == PADDING.settings.text
    app.text_area(key="text").set_value(old["text"])
    app.slider(key="n_heads").set_value(2)  # what is new counts
    say_with(app, old)
    assert (in_link(app, "text"), in_link(app, "n_heads")) == (PADDING.settings.text, "2")
    assert app.text_area(key="text").value == PADDING.settings.text


def test_a_width_that_is_no_longer_offered_is_not_read_as_another():
    app = open_app(n_heads="4")
    for n_heads, d_model in ((5, "60"), (6, "72")):
        app.slider(key="n_heads").set_value(n_heads)
        app.select_slider(key="d_model").set_value(64)
        say_with(app, {"n_heads": "4"})
        assert in_link(app, "d_model") == d_model


def test_a_page_that_has_the_address_of_a_case_before_the_values_of_its_controls_takes_none_back():
    app = open_app(view="lab", architecture="decoder")
    before = {name: find(app).value for name, find in CONTROLS.items()} | {
        "heard": app.number_input(key="heard").value
    }
    open_case(app, CASE.name)
    case = dict(app.query_params)
    for name, find in ({"heard": lambda app: app.number_input(key="heard")} | CONTROLS).items():
        find(app).set_value(before[name])
    app.run()
    assert dict(app.query_params) == case
    for name, find in CONTROLS.items():
        assert find(app).value == getattr(CASE.settings, name)
        assert find(app).proto.set_value, "the browser is told again"
    app.number_input(key="pad").set_value(before["pad"]).run()  # and now a person does
    assert "pad" not in app.query_params


def test_no_callback_hears_of_what_was_replaced():
    old = {"view": "compare", "mask_a": ""}
    app = open_app(**old)
    for _ in range(2):  # the second time before the page has heard that the pill of no mask was released
        app.pills(key="mask_a_pills").set_value([NO_MASK, "causal"])
        say_with(app, old)
        assert app.pills(key="mask_a_pills").value == ["causal"]


def test_a_change_taken_back_at_once_is_taken_back():
    app = open_app()
    app.slider(key="n_heads").set_value(2).run()
    app.slider(key="n_heads").set_value(4)
    say_with(app, {"view": "step"})
    assert app.slider(key="n_heads").value == 4


def test_a_page_that_has_heard_of_a_change_chooses_what_it_had_before():
    app = open_app(text="one two three")
    before = app.text_area(key="text").value
    open_examples(app).button(key="example_padding").click().run()
    app.text_area(key="text").set_value(before).run()
    assert app.text_area(key="text").value == before


def test_back_leads_to_the_address_that_was_left_last_and_all_can_be_chosen_there_again(monkeypatch):
    address = {"view": "compare", "mask_a": "causal"}
    app = open_app(**address)
    for _ in range(2):
        app.pills(key="mask_a_pills").set_value(["causal", NO_MASK])
        say_with(app, address)
        assert app.pills(key="mask_a_pills").value == [NO_MASK]
        monkeypatch.setattr(catching_up, "has_gone_back", lambda: True)
        say_with(app, address)
        assert app.pills(key="mask_a_pills").value == ["causal"]
        monkeypatch.undo()


def test_a_control_that_was_given_its_value_in_a_run_that_never_reached_the_browser_is_given_it_again(monkeypatch):
    app = open_app(view="step", guided="on")  # without the controls of our own model
    said = app._tree.get_widget_states()
    lab = {"view": "lab", "architecture": "decoder", "text": "one two three", "n_heads": "2"}
    for _ in range(2):  # the first time, the run is broken off before anything of it is sent
        monkeypatch.setattr(app._tree, "get_widget_states", lambda: said)
        say_with(app, lab)
    text, model = app.text_area(key="text"), app.selectbox(key="model")
    assert (text.value, text.proto.set_value) == ("one two three", True)
    assert (model.value, model.proto.set_value) == ("hand_built", True)


def test_a_control_that_comes_back_is_given_its_value_though_the_page_still_says_it(monkeypatch):
    lab = {"view": "lab", "architecture": "decoder", "text": "one two three"}
    app = open_app(**lab)
    said = {state.id.rpartition("-")[2]: state for state in app._tree.get_widget_states().widgets}
    app.segmented_control(key="view").set_value(
        "train"
    ).run()  # the browser takes the controls away, and forgets them
    states = app._tree.get_widget_states()
    states.widgets.append(said["text"])  # sent before it did
    monkeypatch.setattr(app._tree, "get_widget_states", lambda: states)
    say_with(app, lab | {"n_heads": "2"})
    assert (app.text_area(key="text").value, app.text_area(key="text").proto.set_value) == ("one two three", True)
