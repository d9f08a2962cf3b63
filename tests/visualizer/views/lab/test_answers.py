"""The mask that a person intends, and what is written in the place of the masks in force."""

from __future__ import annotations

import pytest
import torch

from tests.controls import chosen
from tests.test_app import components, in_link, open_app, open_case
from tests.visualizer.views.watched.test_watched_view import pictures
from visualizer.safe_text import markdown_safe
from visualizer.views.lab.tokens_said import TokensSaid

LINK = {"view": "lab", "architecture": "decoder", "text": "a b c d e f", "weights": "random"}
CAUSAL = torch.ones(6, 6).tril().bool()


def also_under(app):
    return next((toggle for toggle in app.toggle if toggle.label.startswith("Also under")), None)


def loaded(array: torch.Tensor, **link: str):
    app = open_app(**LINK, panel="load", **{"passed_to": "sdpa", **link})
    app.text_area(key="pasted_mask").set_value(str(array.tolist())).run()
    assert not app.exception
    return app


def said(app) -> str:
    kinds = (app.markdown, app.caption, app.success, app.warning, app.error, app.info)
    return "\n".join(element.value for kind in kinds for element in kind)


def test_what_is_written_replaces_what_is_in_force_and_a_switch_has_it_back():
    app = open_app(**LINK, intent="causal")
    assert also_under(app) is None
    app.text_input(key="expression").set_value("k <= q + 1").run()
    assert in_link(app, "mask") == "custom"
    (found,) = pictures(app)["headlight_mask_painter"]["findings"]
    assert found["why"].startswith("5 cells open that should be blocked: query 0 sees key 1.")
    assert (also_under(app).label, also_under(app).value) == ("Also under: causal", False)
    drawn = [getattr(element.proto, "component_name", element.type) for element in app.main]
    assert drawn.index("toggle") > drawn.index("headlight_mask_painter"), "a first painting does not move its grid"
    assert "Your mask is in force alone." in said(app)
    also_under(app).set_value(True).run()
    assert in_link(app, "mask") == "causal,custom"
    assert "A cell is open where your mask and causal allow it." in said(app)
    assert pictures(app)["headlight_mask_painter"]["findings"] == []
    also_under(app).set_value(False).run()
    assert in_link(app, "mask") == "custom"
    app.text_input(key="expression").set_value("").run()
    assert chosen(app, "mask") == ("causal",)


def test_a_mask_that_is_written_again_still_offers_the_first():
    app = open_app(**LINK)
    for text in ("k <= q + 1", "k <= q + 2"):
        app.text_input(key="expression").set_value(text).run()
    assert also_under(app).label == "Also under: causal"
    open_case(app, "packed_documents")
    assert also_under(app) is None, "the masks of another case were never replaced"


def test_of_a_head_that_is_written_for_the_others_keep_their_masks():
    app = open_app(**LINK, scope="head", head="1")
    app.text_input(key="expression").set_value("k <= q + 1").run()
    assert (in_link(app, "mask"), in_link(app, "custom")) == ("custom", "k <= q;*.1:k <= q + 1")


def test_a_loaded_array_has_the_screen_and_an_answer_of_its_own():
    app = loaded(CAUSAL, intent="bidirectional")
    assert "headlight_mask_painter" not in components(app)
    assert "panel" not in [menu.key for menu in app.selectbox]
    assert markdown_safe("This is causal.") in said(app)
    assert not app.success
    app.selectbox(key="kind_of_intent_array").set_value("causal").run()
    assert [box.value for box in app.success] == [markdown_safe("Every cell is as it should be: causal.")]
    app.button(key="door_say").click().run()
    assert "This is not bidirectional" in str(pictures(app)["headlight_mask_painter"]["findings"])


def test_an_answer_without_its_number_judges_nothing():
    app = loaded(CAUSAL, intent_array="window")
    assert not app.success
    (number,) = [field for field in app.number_input if field.label == "Tokens seen, itself included"]
    assert number.value is None
    number.set_value(6).run()
    assert in_link(app, "intent_array") == "window:6"
    assert len(app.success) == 1


def test_a_pasted_function_can_be_what_a_mask_should_be():
    app = open_app(**LINK, intent="expression:")
    assert pictures(app)["headlight_mask_painter"]["findings"] == []
    field = app.text_input(key="expected_condition_intent")
    field.set_value("lambda b, h, q_idx, kv_idx, w=3: (q_idx >= kv_idx) & (q_idx - kv_idx < w)").run()
    assert in_link(app, "intent") == "expression:q >= k and q - k < 3"
    (found,) = pictures(app)["headlight_mask_painter"]["findings"]
    assert found["title"] == "This is not open where q >= k and q - k < 3"
    app.text_input(key="expected_condition_intent").set_value("q - k <").run()
    assert not app.exception
    assert any("^" in block.value for block in app.code)


def test_a_mask_is_compared_with_another_array():
    app = loaded(CAUSAL, intent_array="array")
    assert "paste the intended mask as an array" in said(app)
    expected = app.text_area(key="expected_array_intent_array")
    expected.set_value(str(CAUSAL.tril(-1).long().tolist())).run()
    assert markdown_safe("6 cells open that should be blocked: query 0 sees key 0.") in said(app)
    app.text_area(key="expected_array_intent_array").set_value(str(CAUSAL.float().log().tolist())).run()
    assert len(app.success) == 1
    app.text_area(key="expected_array_intent_array").set_value("[[0.5, 2]]").run()
    assert "the intended mask may have True and False" in said(app)


@pytest.mark.parametrize(
    ("array", "painted", "sentence"),
    [
        (CAUSAL, "k <= q", "Every cell is as it should be: the painted mask."),
        (CAUSAL.tril(-1), "k <= q", "6 cells blocked that should be open"),
        (torch.ones(1, 6).bool(), "k < 6", "Every cell is as it should be"),
        (
            CAUSAL[:4, :4],
            "k <= q",
            "the mask has 4 queries by 4 keys, and what it should be has 6 queries by 6 keys",
        ),
    ],
)
def test_a_loaded_array_is_compared_with_the_painting(array, painted, sentence):
    app = loaded(array, intent_array="painted", mask="custom", custom=painted, one_row="all")
    assert markdown_safe(sentence) in said(app)


@pytest.mark.parametrize("array", [torch.ones(6, 1).bool(), torch.ones(1, 1, 1, 6).bool()])
def test_an_axis_with_one_entry_is_for_all(array):
    app = loaded(array, intent_array="bidirectional")
    assert len(app.success) == 1
    axes = pictures(app)["headlight_tensor_grid"]["axes"]
    assert {axis["name"]: len(axis["labels"]) for axis in axes} == {"query": 6, "key": 6}


def test_no_fix_opens_the_future_of_a_decoder():
    for answer in ("bidirectional", "prefix:3", "window_both:3"):
        (found,) = pictures(open_app(**LINK, intent=answer))["headlight_mask_painter"]["findings"]
        assert (found["severity"], found["can_mend"]) == ("error", False)
    (found,) = pictures(open_app(**LINK, mask="none", intent="causal"))["headlight_mask_painter"]["findings"]
    assert found["can_mend"]
    (found,) = pictures(open_app(**LINK | {"architecture": "encoder"}, intent="bidirectional"))[
        "headlight_mask_painter"
    ]["findings"]
    assert found["can_mend"]


def test_the_past_is_never_negative():
    app = loaded(torch.ones(5, 2).tril().bool(), intent_array="causal")
    (past,) = [field for field in app.number_input if field.label == "Past length (KV cache)"]
    assert (past.value, past.min) == (0, 0)
    app = loaded(torch.ones(3, 8).tril(5).bool(), intent_array="causal")
    (past,) = [field for field in app.number_input if field.label == "Past length (KV cache)"]
    assert past.value == 5
    assert "keys_before" not in app.query_params, "as many as there are, until another number is said"


TOKENS = {
    "nothing said": (TokensSaid(), (0, 0, 0, 0), (False,) * 4),
    "ids": (TokensSaid("0 0 5 5"), (0, 0, 5, 5), (False,) * 4),
    "lengths": (TokensSaid("1, 3"), (0, 1, 1, 1), (False,) * 4),
    "flags": (TokensSaid(padding="[1, 1, 1, 0]"), (0,) * 4, (False, False, False, True)),
    "a length": (TokensSaid(padding="3"), (0,) * 4, (False, False, False, True)),
    "on the left": (TokensSaid(padding="3 left"), (0,) * 4, (True, False, False, False)),
    "a length for each sequence": (TokensSaid(padding="4 2"), (0,) * 4, (False, False, True, True)),
    "flags for each sequence": (TokensSaid(padding="1 1 1 1; 0 0 1 1"), (0,) * 4, (True, True, False, False)),
}


@pytest.mark.parametrize(("tokens", "documents", "padding"), TOKENS.values(), ids=TOKENS)
def test_tokens_are_said_by_numbers_or_lengths(tokens, documents, padding):
    context = tokens.context(2, 4, 2, sequence=1)
    assert (context.key_segments, context.key_is_padding) == (documents, padding)
    assert (context.query_segments, context.query_is_padding) == (documents[2:], padding[2:])


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (TokensSaid("2 3"), "2 numbers that sum to 5: write 4 numbers, one for each key, or lengths that sum to 4"),
        (TokensSaid(padding="1 1 0"), "write how many of the 4 keys are tokens, or 4 numbers"),
        (TokensSaid("0 0 1 1; 1 1 2 2"), "describes 2 sequences, and the array has more"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(tokens, sentence):
    with pytest.raises(ValueError, match=sentence):
        tokens.context(4, 4, 0, sequence=2)


def test_numbers_that_do_not_fit_are_said_beside_the_array():
    app = loaded(CAUSAL, intent_array="causal", array_documents="2 3")
    assert "Nothing is compared" in app.warning[0].value
    assert not app.success


def test_an_array_of_zeros_and_ones_is_refused_and_shown_as_the_booleans_that_it_means():
    app = loaded(CAUSAL.int())
    assert "This place refuses int64" in said(app)
    assert "Read as booleans, as mask.bool() gives them, it is:" in said(app)
    assert "headlight_tensor_grid" in components(app)
    assert "causal" in said(app)
    assert "headlight_tensor_grid" not in components(loaded(2 * CAUSAL.int()))
