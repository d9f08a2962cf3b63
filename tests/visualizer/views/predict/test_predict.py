"""The questions about a covered result, the right answers, the sentence, and what a session keeps of it."""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import replace

import numpy as np
import pytest

from tests.test_app import assert_healthy, components, open_app
from tests.visualizer.sample_runs import run_of
from visualizer.components.expectation.element import expectation, parse_marks
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings
from visualizer.state.expectations import Expectation
from visualizer.views.predict.questions import (
    AS_EXPECTED,
    MISSED,
    NOT_SO,
    TokenQuestion,
    codes,
    kinds_at,
    largest,
    question_at,
)
from visualizer.views.predict.verdicts import answer_in_words, right_answers, verdict, verdict_on_token

WEIGHTS = "encoder.layers.0.self_attention.weights"


def asked(run, path=WEIGHTS, kind="seen", head=0, row=0):
    return question_at(run, path, kind=kind, head=head, batch=0, row=row)


@pytest.fixture(scope="module")
def built():
    """Four tokens under a causal mask; head 0 looks at the previous token, head 2 at the same one."""
    return compute_run(Settings(text="the cat the dog", mask=("causal",), n_heads=8, d_model=128))


def test_what_is_seen_under_a_mask_is_the_mask(built):
    question = asked(built)
    np.testing.assert_array_equal(question.right, np.tri(4, dtype=bool))
    nothing = np.zeros((4, 4), bool)
    assert verdict(question, question.right) == "All 16 cells as you expected."
    assert verdict(question, nothing) == (
        "6 of 16 cells as you expected; query 0 “the” sees key 0 “the”, you said it does not."
    )
    too_many = question.right.copy()
    too_many[1, 3] = True
    assert verdict(replace(question, row=2), too_many) == (
        "15 of 16 cells as you expected; query 1 “cat” does not see key 3 “dog”, you said it does."
    )
    assert codes(question, too_many)[1, 3] == NOT_SO


def test_of_the_wrong_cells_one_in_the_row_looked_at_is_named(built):
    assert "query 2 “the” sees key 0" in verdict(asked(built, row=2), np.zeros((4, 4), bool))


def test_a_broken_mask_that_keeps_a_weight_is_seen_through():
    broken = compute_run(Settings(text="the cat sat", mask=("causal",), fault="before_softmax", n_layers=1))
    weights = broken.trace[WEIGHTS].value[0, 0].numpy()
    np.testing.assert_array_equal(asked(broken).right, (weights > 0) | np.tri(3, dtype=bool))
    assert asked(broken).right.all()


def test_a_built_head_looks_most_at_what_its_name_says(built):
    question = asked(built, kind="most", row=3)
    expected = np.eye(4, k=-1, dtype=bool)  # the previous token; the first query is not answered
    assert verdict(question, expected) == "All 3 queries that you marked are as you expected."
    expected[3] = [True, False, False, False]
    weight = built.trace[WEIGHTS].value[0, 0, 3, 2].item()
    assert verdict(question, expected) == (
        f"2 of 3 queries as you expected; query 3 “dog” looks most at key 2 “the” ({weight:.3g}), "
        "you said key 0 “the”."
    )
    found = codes(question, expected)
    assert found[0].tolist() == [0, 0, 0, 0]
    assert found[3].tolist() == [NOT_SO, 0, MISSED, 0]
    assert found[1, 0] == AS_EXPECTED


def test_of_several_largest_numbers_each_is_right(built):
    uniform = asked(built, kind="most", head=list(built.head_names).index("uniform"), row=2)
    assert uniform.right[2].tolist() == [True, True, True, False]
    expected = np.zeros((4, 4), bool)
    expected[2, 1] = True
    assert verdict(uniform, expected) == (
        "The one query that you marked is as you expected. "
        "Query 2 “the” looks most at key 0 “the”, key 1 “cat” and key 2 “the” (a tie, 0.333)."
    )
    expected[2] = [False, False, False, True]
    assert "looks most at key 0 “the”, key 1 “cat” and key 2 “the” (a tie, 0.333)" in verdict(uniform, expected)


def test_of_weights_that_look_alike_each_is_right_and_it_is_said_that_they_tie(built):
    question = asked(built, kind="most", row=3)
    weights = np.array([[0.41, 0.4, 0.19, 0.0], [0.45, 0.4, 0.1, 0.05]], np.float32)
    panel = replace(question.panel, array=np.vstack([question.panel.array[:2], weights]), blocked=None)
    right = largest(panel, of_weights=True)
    assert right[2:].tolist() == [[True, True, False, False], [True, False, False, False]]
    assert not largest(panel, of_weights=False)[2, 1], "scores have no such scale"
    expected = np.zeros((4, 4), bool)
    expected[2, 1] = True
    assert verdict(replace(question, panel=panel, right=right, row=2), expected).endswith(
        "as you expected. Query 2 “the” looks most at key 0 “the” and key 1 “cat” (a tie, 0.4 to 0.41)."
    )


def test_the_right_answers_of_a_class_are_those_that_a_person_can_give(built):
    assert right_answers(asked(built, kind="most", row=3)) == {"key 2 “the”"}
    seen = asked(built, row=1)
    assert right_answers(seen) == {answer_in_words(seen, seen.right)} == {"key 0 “the”, key 1 “cat”"}
    uniform = asked(built, kind="most", head=list(built.head_names).index("uniform"), row=1)
    assert right_answers(uniform) == {"key 0 “the”", "key 1 “cat”"}
    shares = np.array([0.5, 0.5, 0.0], np.float32)
    assert right_answers(TokenQuestion("place", ("a", "b", "c"), shares, offered=(1, 2))) == {"b"}


def test_without_a_mark_it_is_said_and_what_was_computed(built):
    nothing = np.zeros((4, 4), bool)
    assert verdict(asked(built, kind="most", row=1), nothing).startswith("Query 1 “cat” looks")


@pytest.mark.parametrize("variant", ["encoder-decoder", "every mask", "two_causal_heads", "attention alone"])
def test_every_stage_can_be_asked_about(variant):
    run = run_of(variant)
    for path in run.trace:
        for kind in kinds_at(run, path):
            question = asked(run, path, kind)
            shape = (len(question.panel.rows.labels), len(question.panel.columns.labels))
            assert question.right.shape == shape
            assert verdict(question, np.ones(shape, bool) if kind == "seen" else np.eye(*shape, dtype=bool))
    first = asked(run_of("every mask"), kind="most")
    assert not first.right[0].any(), "a query without a key looks at none"
    assert verdict(first, np.eye(7, dtype=bool)).count("query 0 “the” has no key left, you said key 0") == 1


def test_the_next_token_in_words():
    shares = np.array([0.125, 0.5, 0.25, 0.125], np.float32)
    question = TokenQuestion("place", ("a", "*b*", "c", "d"), shares, offered=(0, 1, 2, 3))
    assert verdict_on_token(question, 1) == "As you expected: the most likely is “\\*b\\*” (50.0%)."
    assert verdict_on_token(question, 3) == (
        "The most likely is “\\*b\\*” (50.0%); the one that you expected, “d”, has 12.5%, place 3 of 4."
    )
    assert verdict_on_token(question, None) == "You chose no token; the most likely is “\\*b\\*” (50.0%)."
    assert verdict_on_token(replace(question, offered=(0, 2, 3)), 2).startswith(
        "As you expected: the most likely is “c”"
    )


COVERED_EVERYWHERE = [
    {"view": "way"},
    {"view": "step", "stage": "decoder.self_attention.weights"},
    {"view": "heads"},
    {"view": "compare"},
    {"view": "generate"},
    {"view": "generate", "strategy": "beam"},
    {"view": "lab"},
    {"view": "lab", "panel": "apply"},
    {"view": "lab", "panel": "prove"},
    {"view": "lab", "panel": "scores", "score": "score - 2 * (q - k)"},
]
"""The parameters of a decoder's link, for every view and every tool that shows what was computed."""


@pytest.mark.parametrize("shown", COVERED_EVERYWHERE, ids=lambda shown: " ".join(shown.values()))
def test_what_is_covered_is_covered_in_every_view(shown):
    """Neither numbers nor pictures of the run, nor an address that they are at, nor the head that tells them."""
    link = {"architecture": "decoder", "text": "the cat sat", "weights": "random", "n_heads": "2", **shown}
    covered, open_page = (open_app(**link, hidden=state) for state in ("on", "off"))
    for app in (covered, open_page):
        assert_healthy(app)
    allowed = {"headlight_tensor_grid"} if shown["view"] == "compare" else set()  # A, from which B is told
    of_results = {f"headlight_{name}" for name in PICTURES_OF_RESULTS} - allowed
    assert not of_results & set(components(covered))
    assert of_results & set(components(open_page)) or weights_in(open_page)
    assert not weights_in(covered)
    texts = [one.value for kind in ("markdown", "caption") for one in covered.get(kind)]
    assert not any("numbers/" in text or "pictures/" in text for text in texts)
    assert not any("numbers/run" in html.proto.body for html in covered.get("html"))
    assert any(button.key == "hide_nothing" for button in covered.button)


PICTURES_OF_RESULTS = (
    "token_way",
    "tensor_grid",
    "attention_heads",
    "compare_grids",
    "generation_steps",
    "generation_tree",
    "derivation",
)


def weights_in(app):
    """True if any picture was given weights, or where they are found."""
    headers = [(each, unpack_header(each.proto.bytes)) for each in app.get("bidi_component") if each.proto.bytes]
    painters = [header for each, header in headers if each.proto.component_name == "headlight_mask_painter"]
    return any("weights" in header["arrays"] or header.get("heads") for header in painters)


def test_a_result_that_is_asked_about_in_one_view_is_covered_in_another_until_it_is_revealed():
    """The attention weights are an input of the context and A of a comparison with the model's own mask."""
    link = {"architecture": "decoder", "text": "the cat sat", "view": "step", "hidden": "on"}
    link |= {"mask": "causal", "mask_a": "causal", "mask_b": "padding"}
    app = open_app(**link, stage="decoder.self_attention.context")
    grid = "headlight_tensor_grid"
    assert grid in components(app), "its inputs are what it is told from"
    app.segmented_control("view").set_value("heads").run()
    app.segmented_control("view").set_value("step").run()
    said = [one.value for one in app.caption]
    assert any("Attention weights, an input, is covered" in text for text in said)
    app.segmented_control("view").set_value("compare").run()
    assert any("A is covered too: it is asked about" in one.value for one in app.caption)
    assert grid not in components(app)
    for steps_are_shown in (False, True):
        app.segmented_control("view").set_value("generate").run()
        if not steps_are_shown:
            app.button("reveal").click().run()
        assert ("headlight_generation_steps" in components(app)) is steps_are_shown
        app.segmented_control("view").set_value("heads").run()
        if not steps_are_shown:
            app.button("reveal").click().run()
    app.segmented_control("view").set_value("compare").run()
    assert grid in components(app)


def unpack_header(data):
    length = struct.unpack_from("<I", data)[0]
    return json.loads(data[4 : 4 + length])


def test_covered_bytes_hold_nothing_of_the_result(built):
    question = asked(built)
    labels = {"rows": question.panel.rows, "columns": question.panel.columns}
    marks = np.zeros((4, 4), bool)
    common = {**labels, "kind": "seen", "row": 0, "scope": question.scope, "seq": 0, "key": "expectation"}
    covered = expectation(marks, **common)
    assert unpack_header(covered.data)["arrays"].keys() == {"expected"}
    to_mark = expectation(marks, blocked=question.panel.blocked, **common)
    assert unpack_header(to_mark.data)["arrays"].keys() == {"expected", "hatched"}


def written(flags):
    return {"cells": base64.b64encode(np.packbits(flags)).decode()}


def test_marks_from_the_browser_are_read_or_refused():
    flags = np.eye(3, 5, dtype=bool)
    cells = parse_marks(written(flags), (3, 5), one_per_row=True)
    np.testing.assert_array_equal(Expectation(cells=cells).flags((3, 5)), flags)
    flags[0, 4] = True
    assert parse_marks(written(flags), (3, 5), one_per_row=True) is None
    assert parse_marks(written(flags), (3, 5), one_per_row=False) is not None
    for bad in (None, {}, {"cells": 3}, {"cells": "AAAA"}, {"cells": "!!!="}, written(np.ones(16, bool))):
        assert parse_marks(bad, (3, 5), one_per_row=False) is None


def test_nothing_marked_is_no_mark():
    assert not Expectation().flags((9, 9)).any()


def test_a_result_is_covered_until_it_is_revealed_and_what_was_expected_goes_with_its_run():
    app = open_app(text="the cat sat", stage="probabilities", hidden="on", architecture="decoder")
    assert_healthy(app)
    covered = "headlight_derivation"
    assert covered not in components(app)
    assert not app.get("plotly_chart")
    app.button("reveal").click().run()
    assert_healthy(app)
    assert any("the most likely is" in one.value for one in app.markdown)
    assert covered in components(app)
    assert app.get("plotly_chart")
    assert "headlight_tensor_grid" not in components(app), "the other rows are questions of their own"
    app.text_area("text").set_value("the dog sat").run()
    assert app.button("reveal").label == "Reveal"
