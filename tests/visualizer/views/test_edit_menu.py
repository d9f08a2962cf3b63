"""Edits of a run as a person makes them: at a head or a stage, several, taken back, compared, and in the link."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.controls import is_open, open_menu
from tests.test_app import assert_healthy, in_link, open_app
from tests.visualizer.views.watched.test_watched_view import pictures, said
from visualizer.runs.compute import compute_run
from visualizer.safe_text import markdown_safe
from visualizer.settings.examples import OPENING
from visualizer.settings.interventions import Intervention
from visualizer.settings.link import write_query
from visualizer.views.edit_menu import said_of
from visualizer.views.outcome import following, next_token_loss

ENGLISH = write_query(OPENING.settings, OPENING.selection)
CONTEXT = "decoder.layers.0.self_attention.context"


def press(app, how, part=None):
    """Make an edit where the page is, by the menu."""
    app = open_menu(app, "edit_menu")
    if part is not None:
        app.radio[0].set_value(part).run()
    app.button(key=f"edit_{how}").click().run()
    assert_healthy(app)
    assert not is_open(app, "edit_menu")
    return app


def test_a_head_is_left_out_compared_and_brought_back():
    app = open_app(**ENGLISH | {"view": "heads", "head": "1", "layer": "0"})
    assert "edits" not in app.query_params
    app = press(app, "zero")
    assert in_link(app, "edits") == f"{CONTEXT}-h1-zero"
    assert "head 1 of layer 0" in app.button(key=f"take_back_{CONTEXT}-h1-zero").label.lower()
    assert pictures(app)["headlight_attention_heads"]["head_names"][0][1] == "left out"
    assert "edited, so not compared" in said(app)
    app.button(key="compare_edits").click().run()
    assert_healthy(app)
    assert (in_link(app, "view"), in_link(app, "layer")) == ("compare", "1")
    compared = pictures(app)["headlight_compare_grids"]
    assert compared["sides"]["b"]["title"] == "B · causal, edited"
    assert compared["head_names"][0][:2] == ["", "B: left out"]
    plain, edited = (compute_run(replace(OPENING.settings, edits=edits)) for edits in ("", f"{CONTEXT}-h1-zero"))
    before, after = (run.trace["logits"].value[0, 9].max() for run in (plain, edited))
    assert f"logit {before:.2f} → **" in said(app)
    app.button(key=f"take_back_{CONTEXT}-h1-zero").click().run()
    assert_healthy(app)
    assert "edits" not in app.query_params
    assert before != after


def test_several_edits_of_stages_stand_in_the_order_in_which_they_were_made():
    app = open_app(**ENGLISH | {"view": "step", "stage": "decoder.norm1", "layer": "1", "query": "4"})
    app = press(app, "mean", "row")
    assert "the result was put there, and is not what the formula gives" in said(app)
    assert "An edit changed this number or one that leads to it" in said(app)
    app = press(app, "zero", "all")
    row, whole = "decoder.layers.1.norm1-r4-mean", "decoder.layers.1.norm1-zero"
    assert in_link(app, "edits") == f"{row}~{whole}"
    app.button(key=f"take_back_{row}").click().run()
    assert in_link(app, "edits") == whole
    for view in ("way", "heads", "compare", "lab", "generate"):
        app.segmented_control(key="view").set_value(view).run()
        assert_healthy(app)
    assert "The edits are left out while the model writes." in said(app)


def test_two_edits_that_are_taken_back_in_one_instant_are_both_gone():
    edits = [f"{CONTEXT}-h{head}-zero" for head in range(3)]
    app = open_app(**ENGLISH | {"view": "heads", "edits": "~".join(edits)})
    for edit in edits[:2]:
        app.button(key=f"take_back_{edit}").click()
    app.run()
    assert in_link(app, "edits") == edits[2]


def test_what_another_text_gave_is_put_in():
    app = open_app(**ENGLISH | {"view": "step", "stage": "decoder.residual2", "layer": "1"})
    app = open_menu(app, "edit_menu")
    assert app.button(key="edit_other").disabled
    app.text_input(key="other_text").set_value("The dog slept on the chair because it was").run()
    app = press(app, "other")
    assert in_link(app, "edits") == "decoder.layers.1.residual2-other"
    app.text_area(key="text").set_value("The cat sat").run()
    assert markdown_safe("the other text has 10 tokens, and this one 4") in app.warning[0].value
    assert "edits" not in app.query_params


def test_no_check_fails_in_an_edited_run():
    edits = f"{CONTEXT}-h1-zero~decoder.layers.0.norm1-mean~decoder.layers.1.residual1-r3-zero"
    for stage in ("context", "weights", "output"):
        app = open_app(**ENGLISH | {"view": "step", "stage": f"decoder.self_attention.{stage}", "edits": edits})
        assert_healthy(app)
        assert ":red[" not in said(app)
    for view in ("way", "heads", "compare"):
        assert ":red[" not in said(open_app(**ENGLISH | {"view": view, "edits": edits}))


@pytest.mark.parametrize("view", ["step", "heads", "compare"])
def test_a_worked_example_has_no_menu_of_edits(view):
    app = open_app(weights="encoder_layer", view=view)
    assert_healthy(app)
    assert "Edit" not in [menu.proto.popover.label for menu in app.get("popover")]


@pytest.mark.parametrize(
    ("intervention", "words"),
    [
        (Intervention(CONTEXT, "zero", head=1), "head 1 of layer 0"),
        (Intervention(CONTEXT, "zero", head=1, row=8), "token 8 “it” in head 1 of layer 0"),
        (Intervention("decoder.layers.0.self_attention.q", "zero", head=1), "head 1 of “Queries” of layer 0"),
        (Intervention("decoder.norm", "mean"), "“Last layer norm”"),
    ],
)
def test_an_edit_is_called_by_its_place(intervention, words):
    assert said_of(compute_run(OPENING.settings), intervention) == words


def loss_of(run):
    return next_token_loss(run.trace["logits"].value[0], following(run))


def test_the_loss_is_that_of_the_probabilities():
    run = compute_run(OPENING.settings)
    probabilities = run.trace["probabilities"].value[0].double().numpy()
    ids = run.tokens["source"].ids
    expected = -np.mean([np.log(probabilities[row, ids[row + 1]]) for row in range(len(ids) - 1)])
    assert float(loss_of(run)) == pytest.approx(expected, rel=1e-5)


def test_what_continues_no_text_has_no_loss():
    encoder = replace(OPENING.settings, weights="random", architecture="encoder")
    one = replace(encoder, architecture="decoder", text="one")
    assert loss_of(compute_run(encoder)) is None
    assert loss_of(compute_run(one)) is None


def test_padding_has_no_loss():
    settings = replace(OPENING.settings, weights="random", architecture="decoder", mask=("causal", "padding"))
    plain, padded = (loss_of(compute_run(replace(settings, pad=pad))) for pad in (0, 3))
    assert float(plain) == pytest.approx(float(padded), rel=1e-5)


def test_a_head_with_a_name_is_said_to_be_left_out_on_one_side():
    link = {"view": "compare", "architecture": "decoder", "text": "a b c", "edits": f"{CONTEXT}-h1-zero"}
    compared = pictures(open_app(**link))["headlight_compare_grids"]
    assert compared["head_names"][0][1] == "next token (B: left out)"
