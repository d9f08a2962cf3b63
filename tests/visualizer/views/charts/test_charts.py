"""The charts below the picture: closed at first, where they stand, and what they say."""

from __future__ import annotations

import pytest

from tests.test_app import assert_healthy, in_link, open_app

POSITIONS = "encoder.inputs.positional_encoding"


def captions(app):
    return " ".join(caption.value for caption in app.caption)


def test_a_chart_is_drawn_when_it_is_asked_for_and_is_in_the_link():
    app = open_app(stage=POSITIONS)
    assert_healthy(app)
    assert not app.get("plotly_chart")
    app.selectbox(key="charts_positions").set_value("positions").run()
    assert_healthy(app)
    assert len(app.get("plotly_chart")) == 2
    assert in_link(app, "chart") == "positions"
    app.selectbox(key="charts_positions").set_value(None).run()
    assert not app.get("plotly_chart")
    assert "chart" not in app.query_params


def test_a_chart_that_says_nothing_of_a_stage_stays_closed_there():
    app = open_app(stage="encoder.feed_forward.hidden", chart="positions")
    assert_healthy(app)
    assert not app.get("plotly_chart")
    assert in_link(app, "chart") == "positions"


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        ("sinusoidal", "All pairs that are equally far apart have the same"),
        ("learned", "Pairs that are equally far apart differ"),
        ("none", "Every value is zero"),
    ],
)
def test_what_is_said_of_positions_is_true_of_them(positions, said):
    app = open_app(stage=POSITIONS, chart="positions", positions=positions, weights="random", pad="2")
    assert_healthy(app)
    assert said in captions(app)


@pytest.mark.parametrize(
    ("stage", "chart"),
    [
        (POSITIONS, "positions"),
        ("encoder.self_attention.weights", "row"),
        ("encoder.self_attention.weights", "temperature"),
        ("encoder.self_attention.weights", "distance"),
        ("encoder.self_attention.q", "directions"),
        ("encoder.residual1", "residual"),
    ],
)
def test_the_second_sequence_of_a_batch_has_its_own_charts(stage, chart):
    app = open_app(text="one two three four\nfive six", mask="causal,padding", batch="1", stage=stage, chart=chart)
    assert_healthy(app)
    assert len(app.get("plotly_chart")) == (2 if chart == "positions" else 1)
    if chart == "residual":
        assert "the mean of 2 tokens" in captions(app)
