"""The page beside the card of the guided path, with everything else gone."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.controls import chosen
from tests.test_app import assert_healthy, components, in_link, open_app
from visualizer.settings.examples import OPENING
from visualizer.settings.link import write_query

WALKED = write_query(OPENING.settings, OPENING.selection) | {"guided": "on", "stop": "3"}


def labels_of(app: AppTest) -> list[str]:
    return [one.label for kind in ("text_area", "button", "button_group", "selectbox") for one in app.get(kind)]


def test_while_the_path_is_walked_only_the_text_is_chosen_and_it_goes_on_with_it():
    app = open_app(**WALKED)
    assert labels_of(app) == ["Text"]
    assert not app.sidebar.get("text_area")
    app.text_area(key="text").set_value("the cat sat\nthe cat").run()
    assert_healthy(app)
    assert "headlight_path_card" in components(app)
    assert in_link(app, "text") == "the cat sat\nthe cat"
    assert chosen(app, "mask") == (
        "causal",
        "padding",
    )  # as in the sidebar


@pytest.mark.parametrize("changes", [{"text": "word " * 2000}, {"text": "the zebra"}, {"path": "unknown"}])
def test_where_there_is_no_card_the_path_is_left_beside_it(changes):
    app = open_app(**WALKED | changes)
    assert "headlight_path_card" not in components(app)
    assert app.text_area(key="text")
    assert [one.value for one in (*app.info, *app.warning) if "path" in one.value], "what a person can do about it"
    app.button(key="leave_path").click().run()
    assert "guided" not in app.query_params
    assert "Model" in labels_of(app)
