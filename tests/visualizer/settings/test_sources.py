"""The sources of models: their views and panels, and links from before they were."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from visualizer.settings.settings import FIELDS
from visualizer.settings.sources import VIEWS_OF, has_run, renewed, view_in
from visualizer.settings.views import VIEWS
from visualizer.state import state


def test_every_view_of_a_source_is_one():
    assert VIEWS_OF.keys() == FIELDS["source"].choices.keys()
    for source, views in VIEWS_OF.items():
        assert set(views) <= VIEWS.keys()
        assert "heads" in views
        assert {view for view in VIEWS if has_run(source, view)} <= set(views)


def test_a_view_that_a_source_does_not_have_becomes_its_heads_with_a_sentence():
    assert view_in("recording", "generate") == "heads"
    choices = state.read({"source": ["recording"], "view": ["generate"]})
    assert choices.selection.view == "heads"
    assert choices.notices == ("view=generate is not a view of a model from this source: heads is used.",)


@pytest.mark.parametrize(
    ("link", "source", "view"),
    [
        ({}, "recording", "heads"),
        ({"watched_source": "example", "watched_panel": "operations"}, "recording", "step"),
        ({"watched_source": "example", "watched_panel": "compare"}, "recording", "compare"),
        ({"watched_door": "pretrained"}, "pretrained", "heads"),
        ({"watched_door": "pretrained", "watched_panel": "search"}, "pretrained", "heads"),
        ({"watched_door": "pretrained", "watched_panel": "way"}, "pretrained", "way"),
        ({"watched_door": "pretrained", "watched_panel": "write"}, "pretrained", "generate"),
        ({"watched_door": "pretrained", "watched_panel": "mask"}, "pretrained", "lab"),
        ({"watched_door": "pretrained", "watched_panel": "prove"}, "pretrained", "lab"),
        ({"watched_door": "pretrained", "watched_panel": "edits"}, "pretrained", "compare"),
    ],
)
def test_links_to_the_former_view_of_any_model_open_what_they_opened(link, source, view):
    choices = state.read({"view": ["watched"], **{name: [value] for name, value in link.items()}})
    assert (choices.selection.source, choices.selection.view) == (source, view)
    assert choices.selection.query == 0  # a link that named no token meant the first
    assert (choices.settings.weights == "pretrained") == (source == "pretrained")
    assert not choices.notices


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (
            "view=heads&drawn=lines&shown=0,2&curve=root",
            "view=heads&heads.drawn=lines&heads.shown=0,2&heads.curve=root",
        ),
        ("view=compare&mask_a=padding&relative=on", "view=compare&compare.mask_a=padding&compare.relative=on"),
        ("view=lab&panel=prove&intent=window:4", "view=lab&lab.panel=prove&lab.intent=window:4"),
        ("view=generate&strategy=beam&step=2", "view=generate&generate.strategy=beam&generate.step=2"),
    ],
)
def test_links_from_before_the_choices_of_a_view_had_its_name_say_what_they_said(before, now):
    of_before, of_now = (state.read(parse_qs(link)) for link in (before, now))
    assert replace(of_before, named=of_now.named) == of_now
    assert of_before.link == {name: values[0] for name, values in parse_qs(now).items()}
    assert not of_before.notices


def test_what_a_link_said_of_a_checkpoint_is_said_as_of_any_run():
    link = {
        **{"source": "pretrained", "view": "lab", "watched_panel": "prove", "pretrained_text": "a b"},
        **{"pretrained_mask": "k < 2", "watched_attention": "model.layers.17.self_attn", "watched_head": "5"},
    }
    choices = state.read({name: [value] for name, value in link.items()})
    settings, selection = choices.settings, choices.selection
    assert (settings.text, settings.mask, settings.custom) == ("a b", ("custom",), "k < 2")
    assert (selection.layer, selection.head, selection.lab.panel) == (17, 5, "prove")
    assert not choices.notices


def test_a_place_of_another_model_is_one_of_any_run():
    link = {"source": ["recording"], "watched_stage": ["layers.1.add"], "watched_attention": ["layers.0.attn"]}
    step, heads = (state.read({**link, "view": [view], "watched_row": ["3"]}) for view in ("step", "heads"))
    assert (step.selection.stage, step.selection.query, step.selection.key) == ("layers.1.add", 3, 0)
    assert heads.selection.stage == "layers.0.attn"
    assert "stage" in step.named & heads.named
    assert not (*step.notices, *heads.notices)


def test_other_links_stay_as_they_are():
    link = {"view": ["heads"], "text": ["a b"]}
    assert renewed(link) is link
