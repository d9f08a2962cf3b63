"""The charts of all heads, in their view."""

from __future__ import annotations

import numpy as np
import pytest

from model.analysis.metrics import METRICS
from tests.test_app import assert_healthy, components, in_link, open_app
from tests.visualizer.routes.test_routes import unpacked
from tests.visualizer.told import tell
from tests.visualizer.views.charts.test_charts import captions
from visualizer.runs.compute import compute_run
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.settings import Settings
from visualizer.stages.head_measures import measure_heads


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
    assert len(app.get("plotly_chart")) == (link["chart"] != "measures" and "custom" not in link)


def test_the_maps_hold_what_was_measured():
    app = open_app(view="heads", chart="measures", layer="1", head="2")
    header, arrays = maps_of(app)
    measured = measure_heads(compute_run(Settings()), [f"encoder.layers.{i}.self_attention" for i in (0, 1)])
    assert header["panels"][0]["title"] == METRICS["entropy"].title
    assert header["panels"][-1]["bounds"] == [0, 1], "next to no weight is not drawn as if it were all"
    assert arrays["values0"].ravel() == pytest.approx([head.values["entropy"] for head in measured], abs=1e-3)
    assert np.argwhere(arrays["marked0"]).tolist() == [[1, 2]]
    tell(app, "chart_measures", "select", index=3, row=0, column=1)
    assert_healthy(app)
    assert np.argwhere(maps_of(app)[1]["marked3"]).tolist() == [[0, 1]]


@pytest.mark.parametrize(("before", "after"), [("0", "1"), ("0,2", "0,1,2")])
def test_a_hidden_head_that_is_chosen_there_is_shown(before, after):
    app = open_app(view="heads", chart="measures", shown=before)
    tell(app, "chart_measures", "select", index=3, row=0, column=1)
    assert_healthy(app)
    assert in_link(app, "shown") == after


def maps_of(app):
    """Return the header of the maps, and their arrays."""
    (drawn,) = (one.proto.bytes for one in app.get("bidi_component") if one.proto.id.endswith("-chart_measures"))
    return unpacked(drawn)


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_worked_examples_have_charts_too(example):
    app = open_app(view="heads", weights=example, chart="directions")
    assert_healthy(app)
    assert len(app.get("plotly_chart")) == ("headlight_attention_heads" in components(app))
