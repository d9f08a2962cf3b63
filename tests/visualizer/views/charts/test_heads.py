"""The charts of all heads, in their view."""

from __future__ import annotations

import json

import pytest

from tests.reading import close_to
from tests.test_app import assert_healthy, components, open_app
from tests.visualizer.views.charts.test_charts import captions
from visualizer.runs.compute import compute_run
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.settings import Settings
from visualizer.views.head_measures import measure_heads


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"chart": "distance"}, "Nearly all weight of head 1 lies at one distance"),
        ({"chart": "distance", "mask": "custom", "custom": "k > q + 99"}, "No query has a key left"),
        ({"chart": "directions", "layer": "1"}, "Layer 1, head 2 · same token: queries and keys"),
        ({"chart": "measures"}, "Click a square to choose its head"),
        ({"chart": "row", "layer": "1", "head": "0"}, "Layer 1, head 0 · previous token, query 8 “cat”"),
    ],
)
@pytest.mark.parametrize("architecture", ["encoder", "encoder-decoder"])
def test_a_chart_of_heads(link, said, architecture):
    app = open_app(view="heads", architecture=architecture, **link)
    assert_healthy(app)
    if architecture == "encoder":
        assert said in captions(app)
    assert len(app.get("plotly_chart")) == {"measures": 2}.get(link["chart"], "custom" not in link)


def test_the_squares_say_what_was_measured():
    app = open_app(view="heads", chart="measures")
    _ring, squares = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][:2]
    measured = measure_heads(compute_run(Settings()), [f"encoder.layers.{i}.self_attention" for i in (0, 1)])
    assert [float(text.rpartition(" ")[2]) for text in squares["hovertext"]] == [
        close_to(round(head.values["entropy"], 3)) for head in measured
    ]


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_worked_examples_have_charts_too(example):
    app = open_app(view="heads", weights=example, chart="directions")
    assert_healthy(app)
    assert len(app.get("plotly_chart")) == ("headlight_attention_heads" in components(app))


def test_a_click_on_what_is_no_square_changes_nothing():
    from types import SimpleNamespace as Given

    from visualizer.views.charts.measures import _choose

    for point in ({}, {"customdata": "x"}, {"customdata": [1]}, {"customdata": [0, -1]}, {"customdata": [0, "1"]}):
        _choose(Given(selection=Given(points=[point])))
