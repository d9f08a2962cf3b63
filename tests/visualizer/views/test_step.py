"""The words of Step through beside its pictures, and where what is done in them leads."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from tests.test_app import APP, assert_healthy, checks_of, in_link, open_app
from tests.visualizer.told import tell
from visualizer.components.packing import header_of
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings
from visualizer.views.computation import COMPUTATION


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"architecture": "encoder"}, "### The most likely tokens at “h” (position 0)"),
        ({"architecture": "decoder"}, "### The next token after “h” (position 0)"),
        ({"architecture": "encoder-decoder"}, "### The next token after “\\<s\\>” (position 0)"),
        ({"weights": "trained", "task": "reverse"}, "### The next token after “\\<sos\\>” (position 0)"),
        ({"weights": "trained", "task": "match_brackets", "text": "()"}, "### The answer at “\\(” (position 0)"),
    ],
    ids=["encoder", "decoder", "encoder-decoder", "decoder that learned", "encoder that learned"],
)
def test_probabilities_say_of_what_they_are(link, said):
    app = open_app(**{"stage": "probabilities", "text": "h e", "query": "0", **link})
    assert_healthy(app)
    assert said in [each.value for each in app.markdown if each.value.startswith("### The")]


def stage_text(app: AppTest) -> str:
    (words,) = [each.proto for each in app.get("bidi_component") if each.proto.id.endswith("-stage_text")]
    return "".join(text for line in header_of(words.bytes)["lines"] for text, _ in line)


def test_the_depth_of_the_text_is_chosen_and_in_the_link():
    app = open_app(stage="encoder.self_attention.mask", depth="exact")
    assert "Which query (row) may attend to which key" in stage_text(app)
    app.button(key="other_depth").click().run()
    assert "The mask says which keys" in stage_text(app)
    assert "depth" not in app.query_params
    app.button(key="other_depth").click().run()
    assert "Which query (row) may attend to which key" in stage_text(app)
    assert in_link(app, "depth") == "exact"


SMALL = {"architecture": "decoder", "text": "a b a", "n_layers": 1, "n_heads": 2, "d_model": 8, "d_ff": 8}


def page(path: str) -> None:
    """A script that draws the page of one stage."""
    from tests.visualizer.views.test_step import SMALL
    from visualizer.runs.compute import compute_run
    from visualizer.settings.settings import Selection, Settings
    from visualizer.state import state
    from visualizer.views.step import render

    state.load()
    render(compute_run(Settings(**SMALL)), Selection(stage=path))


def test_every_stage_has_a_page():
    for path in compute_run(Settings(**SMALL)).trace:
        app = AppTest.from_function(page, args=(path,)).run(timeout=30)
        assert_healthy(app)
        drawn = [element.proto.component_name for element in app.get("bidi_component")]
        assert {"headlight_tensor_grid", "headlight_derivation"} <= set(drawn), path


def test_a_token_a_head_a_stage_and_a_cell_are_chosen_in_the_pictures():
    app = open_app(d_ff="16")
    link = {"d_ff": "16"}

    def leads_to(**more):
        link.update(more)
        assert dict(app.query_params) == link

    tell(app, "token_strip", "select", sequence="source", index=3)
    leads_to(query="3")
    tell(app, "every_head", "select", index=1, row=None, column=None)
    leads_to(head="1")
    tell(app, "stage_map", "stage", path="encoder.layers.1.feed_forward.hidden")
    leads_to(layer="1", stage="encoder.feed_forward.hidden")
    for column, chosen in ((9, {"key": "9"}), (1, {"cell": "on"})):
        tell(app, "picture", "select", index=3, row=4, column=column)
        link.pop("key", None)
        leads_to(query="4", **chosen)


def test_a_map_of_many_stages_is_fetched_and_each_of_them_can_be_chosen(monkeypatch):
    monkeypatch.setattr("visualizer.views.step.MOST_STAGES", 10)
    app = open_app(d_ff="16")
    (drawn,) = (one.proto.bytes for one in app.get("bidi_component") if one.proto.id.endswith("-stage_map"))
    header = header_of(drawn)
    assert "model" not in header
    assert header["address"].startswith("pictures/map?")
    tell(app, "stage_map", "stage", path="encoder.layers.1.feed_forward.hidden")
    assert dict(app.query_params) == {"d_ff": "16", "layer": "1", "stage": "encoder.feed_forward.hidden"}


def test_a_worked_example_of_several_heads_is_cited_written_as_code_and_taken_apart():
    app = open_app(weights="three_heads")
    assert_healthy(app)
    cited, told, code = (
        " ".join(one.value for one in kind).replace("\\", "") for kind in (app.caption, app.markdown, app.code)
    )
    assert "Published in: Notebook 'Implementation of Multi-Head Attention'" in cited
    assert "All 480 published numbers, in 10 stages, are reproduced to 1e-9" in cited
    assert "equal the fused matrix to 1e-12" in told
    assert "exponentials = np.exp" in code


def test_the_largest_score_of_a_row_without_a_strong_colour_is_said():
    app = open_app(stage="encoder.self_attention.scores", query="10")
    said = r"In the row of “tired” \(10\) every score is below zero, and the largest, −([\d.]+), is for the key"
    (largest,) = filter(None, (re.match(said, one.value.replace("\\", "")) for one in app.caption))
    assert float(largest[1]) == pytest.approx(0.10315, abs=1e-4)  # processors round the last digit differently


def test_the_checks_the_shapes_and_the_code_are_one_line_that_opens():
    app = open_app()
    opened = checks_of(app)
    assert opened.label == ":green[:material/check_circle:] 5 checks passed · shapes and code"
    assert len(opened.code) == 2
    app.session_state[COMPUTATION] = False
    closed = checks_of(app.run())
    assert closed.label == opened.label
    assert not closed.children


def test_what_is_seldom_looked_at_is_closed_until_a_person_opens_it():
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params["view"] = "step"
    checked = checks_of(app.run())
    assert not checked.proto.expanded
    assert not checked.children


@pytest.mark.parametrize("stage", ["masked_scores", "weights", "scores"])
@pytest.mark.parametrize(
    ("link", "is_broken"),
    [
        ({"fault": "before_softmax"}, True),
        ({"fault": "after_softmax"}, True),
        ({}, False),
        ({"fault": "left_out"}, False),
    ],
    ids=str,
)
def test_a_formula_that_a_mask_bug_does_not_keep_to_says_so(link, is_broken, stage):
    app = open_app(weights="random", text="a b c", stage=f"encoder.self_attention.{stage}", **link)
    said = any("leave out the mask bug" in each.value for each in app.caption)
    assert said == (is_broken and stage != "scores")
    unmasked = open_app(
        weights="random", text="a b c", mask="none", stage=f"encoder.self_attention.{stage}", **link
    )
    assert not any("leave out the mask bug" in each.value for each in unmasked.caption)
