"""The place that is looked at, where what is run does not have it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.test_app import assert_healthy, in_link, open_app
from visualizer.page.show import in_run
from visualizer.settings.examples import EXAMPLES
from visualizer.settings.fields import TRAINED, WORKED_EXAMPLES, changed
from visualizer.settings.gallery import GALLERY
from visualizer.settings.settings import FIELDS, Selection, Settings
from visualizer.settings.views import VIEWS
from visualizer.state import state
from visualizer.state.state import Choices
from visualizer.work.cache import cached_run

_TEXTS = (
    "a",
    "a b c",
    "a b\nc d e",
    "one two three four five six seven eight nine ten eleven twelve",
    "a\nb\nc\nd",
)
_SETTINGS = st.one_of(
    st.fixed_dictionaries({"text": st.sampled_from(_TEXTS)}),
    st.fixed_dictionaries({"target": st.sampled_from(_TEXTS)}),
    st.fixed_dictionaries({"architecture": st.sampled_from(list(FIELDS["architecture"].choices))}),
    st.fixed_dictionaries({"weights": st.sampled_from(["random", "hand_built", TRAINED, *WORKED_EXAMPLES])}),
    st.fixed_dictionaries({"n_heads": st.integers(1, 16)}),
    st.fixed_dictionaries({"n_layers": st.integers(1, 4)}),
    st.fixed_dictionaries({"pad": st.integers(0, 3)}),
)
_STAGES = (
    "encoder.self_attention.scores",
    "decoder.cross_attention.weights",
    "decoder.feed_forward.hidden",
    "logits",
)
_PLACES = st.fixed_dictionaries(
    {},
    optional={
        "view": st.sampled_from([name for name, view in VIEWS.items() if view.has_run]),
        "attention": st.sampled_from(["encoder", "decoder", "cross"]),
        "stage": st.sampled_from(_STAGES),
        **{name: st.integers(0, 15) for name in ("head", "query", "key")},
        **{name: st.integers(0, 5) for name in ("layer", "batch")},
    },
)
_EXAMPLES = st.sampled_from([*EXAMPLES, *GALLERY])


def shown(choices: Choices) -> tuple[Choices, list[str]]:
    """Return the choices that a page shows for some choices, and its sentences on the place."""
    try:
        run = cached_run(choices.settings)
    except ValueError:  # nothing is shown
        assume(False)
    return in_run(run, choices)


@given(st.lists(st.one_of(_SETTINGS, _PLACES, _EXAMPLES), max_size=6))
def test_a_link_that_the_page_writes_is_read_without_a_notice_and_unchanged(changes):
    choices = Choices(Settings(), Selection())
    for change in changes:
        if not isinstance(change, dict):
            choices = Choices(change.settings, change.selection)
        elif change.keys() & vars(choices.settings).keys():
            choices = state.with_changes(choices, **change)
        else:
            choices = replace(choices, selection=changed(choices.selection, **change))
        choices, said = shown(choices)
        assert not said
    read = state.read({name: [value] for name, value in choices.link.items()})
    again, said = shown(read)
    assert (*read.notices, *said) == ()
    assert again.link == choices.link
    assert (again.settings, again.selection) == (choices.settings, choices.selection)


@pytest.mark.parametrize(
    ("said", "change", "link"),
    [
        ({"key": "6"}, lambda app: app.text_area(key="text").set_value("a b c"), {"key": "2"}),
        ({"layer": "3", "n_layers": "4"}, lambda app: app.slider(key="n_layers").set_value(2), {"layer": "1"}),
        ({"head": "3"}, lambda app: app.slider(key="n_heads").set_value(2), {"head": "1"}),
    ],
)
def test_the_address_names_a_place_that_there_is_after_a_change(said, change, link):
    app = open_app(**said, view="step", text="a b c d e f g h i j")
    assert not app.warning
    change(app).run()
    assert_healthy(app)
    assert {name: in_link(app, name) for name in link} == link
    again = open_app(**dict(app.query_params))
    assert not again.warning


def test_the_usual_place_is_there_again_in_a_longer_text():
    app = open_app(view="step", text="a b c d e f g h i j")
    for text in ("a b c", "j i h g f e d c b a"):
        app.text_area(key="text").set_value(text).run()
        assert "query" not in app.query_params
