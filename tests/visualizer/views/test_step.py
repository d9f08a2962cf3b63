"""What Step through says beside its pictures."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.test_app import assert_healthy, open_app
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"architecture": "encoder"}, "##### The most likely tokens at “h” (position 0)"),
        ({"architecture": "decoder"}, "##### The next token after “h” (position 0)"),
        ({"architecture": "encoder-decoder"}, "##### The next token after “\\<s\\>” (position 0)"),
        ({"weights": "trained", "task": "reverse"}, "##### The next token after “\\<sos\\>” (position 0)"),
        ({"weights": "trained", "task": "match_brackets", "text": "()"}, "##### The answer at “\\(” (position 0)"),
    ],
    ids=["encoder", "decoder", "encoder-decoder", "decoder that learned", "encoder that learned"],
)
def test_probabilities_say_of_what_they_are(link, said):
    app = open_app(**{"stage": "probabilities", "text": "h e", "query": "0", **link})
    assert_healthy(app)
    assert said in [each.value for each in app.markdown if each.value.startswith("##### The")]


SMALL = {"architecture": "decoder", "text": "a b a", "n_layers": 1, "n_heads": 2, "d_model": 8, "d_ff": 8}


def page(path: str) -> None:
    """A script that draws the page of one stage."""
    from tests.visualizer.views.test_step import SMALL
    from visualizer.runs.compute import compute_run
    from visualizer.settings.settings import Selection, Settings
    from visualizer.views.step import render

    render(compute_run(Settings(**SMALL)), Selection(stage=path))


def test_every_stage_has_a_page():
    for path in compute_run(Settings(**SMALL)).trace:
        app = AppTest.from_function(page, args=(path,)).run(timeout=30)
        assert_healthy(app)
        drawn = [element.proto.component_name for element in app.get("bidi_component")]
        assert {"headlight_tensor_grid", "headlight_derivation"} <= set(drawn), path
