"""The sources of models: their views and panels, and links from before they were."""

from __future__ import annotations

import pytest

from visualizer.settings.settings import FIELDS
from visualizer.settings.sources import VIEWS_OF, has_run, panel_in, renewed, view_in
from visualizer.settings.views import VIEWS
from visualizer.settings.watched_settings import WATCHED
from visualizer.state import state


def test_every_view_of_a_source_is_one_and_every_panel_has_its_name():
    assert VIEWS_OF.keys() == FIELDS["source"].choices.keys()
    for source, views in VIEWS_OF.items():
        assert views.keys() <= VIEWS.keys()
        assert "heads" in views
        for view, panels in views.items():
            assert set(panels) <= WATCHED["watched_panel"].choices.keys()
            assert bool(panels) != has_run(source, view) or view == "train"


def test_a_view_that_a_source_does_not_have_becomes_its_heads_with_a_sentence():
    assert view_in("recording", "generate") == "heads"
    choices = state.read({"source": ["recording"], "view": ["generate"]})
    assert choices.selection.view == "heads"
    assert choices.notices == ("view=generate is no view of a model of this source: heads is used.",)


def test_the_panel_of_another_view_is_not_shown():
    assert panel_in("pretrained", "generate", "way") == "write"
    assert panel_in("recording", "heads", "operations") == "heads"


@pytest.mark.parametrize(
    ("link", "source", "view", "panel"),
    [
        ({}, "recording", "heads", "heads"),
        ({"watched_source": "example", "watched_panel": "operations"}, "recording", "step", "operations"),
        ({"watched_source": "example", "watched_panel": "compare"}, "recording", "compare", "compare"),
        ({"watched_door": "pretrained"}, "pretrained", "heads", "heads"),
        ({"watched_door": "pretrained", "watched_panel": "search"}, "pretrained", "heads", "heads"),
        ({"watched_door": "pretrained", "watched_panel": "way"}, "pretrained", "way", "way"),
        ({"watched_door": "pretrained", "watched_panel": "write"}, "pretrained", "generate", "write"),
        ({"watched_door": "pretrained", "watched_panel": "mask"}, "pretrained", "lab", "heads"),
        ({"watched_door": "pretrained", "watched_panel": "prove"}, "pretrained", "lab", "heads"),
        ({"watched_door": "pretrained", "watched_panel": "edits"}, "pretrained", "compare", "heads"),
    ],
)
def test_links_to_the_former_view_of_any_model_open_what_they_opened(link, source, view, panel):
    choices = state.read({"view": ["watched"], **{name: [value] for name, value in link.items()}})
    assert (choices.selection.source, choices.selection.view) == (source, view)
    assert panel_in(source, view, choices.watched.watched_panel) == panel
    assert choices.watched.watched_query == 0  # a link that named no token meant the first
    if source == "pretrained":
        assert (choices.settings.weights, choices.selection.query) == ("pretrained", 0)
    assert not choices.notices


def test_what_a_link_said_of_a_checkpoint_is_said_as_of_any_run():
    link = {
        **{"source": "pretrained", "view": "lab", "watched_panel": "prove", "pretrained_text": "a b"},
        **{"pretrained_mask": "k < 2", "watched_attention": "model.layers.17.self_attn", "watched_head": "5"},
    }
    choices = state.read({name: [value] for name, value in link.items()})
    settings, selection = choices.settings, choices.selection
    assert (settings.text, settings.mask, settings.custom) == ("a b", ("custom",), "k < 2")
    assert (selection.layer, selection.head, selection.panel) == (17, 5, "prove")
    assert not choices.notices


def test_other_links_stay_as_they_are():
    link = {"view": ["heads"], "text": ["a b"]}
    assert renewed(link) is link
