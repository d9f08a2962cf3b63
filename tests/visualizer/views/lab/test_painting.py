"""The lab's answers to what is done on its painter, and in the fields beside it, in words and in the link."""

from __future__ import annotations

import base64
import io
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.controls import chosen, hear_as_first_drawn
from tests.test_app import assert_healthy, in_link, open_app, open_case
from tests.visualizer.routes.test_routes import unpacked
from tests.visualizer.told import tell
from tests.visualizer.views.lab.test_answers import said
from tests.visualizer.views.watched.test_watched_view import link_of, pictures
from visualizer.runs.compute import compute_run
from visualizer.safe_text import markdown_safe
from visualizer.settings.fields import MAX_TOKENS
from visualizer.settings.link import read_query

LINK = {"view": "lab", "text": "a b c d", "weights": "random"}
CAUSAL = torch.ones(4, 4).tril().bool()


def done(app: AppTest, event: str, **facts: object) -> AppTest:
    tell(app, "mask_painter", event, facts | {"seq": 1})
    assert_healthy(app)
    return app


def paint(app: AppTest, allowed: torch.Tensor) -> AppTest:
    """A stroke after which these cells are open, and no others."""
    n_queries, n_keys = allowed.shape
    blocked = base64.b64encode(np.packbits(~allowed.numpy())).decode()
    return done(app, "paint", blocked=blocked, n_queries=n_queries, n_keys=n_keys)


def expression(app: AppTest) -> str:
    text = app.text_input(key="expression").value
    assert text is not None
    return text


def freed(query: int, key: int, allowed: torch.Tensor = CAUSAL) -> torch.Tensor:
    """A mask with one cell changed."""
    changed = allowed.clone()
    changed[query, key] ^= True
    return changed


def test_an_expression_paints_and_a_stroke_rewrites_it():
    app = open_app(**LINK, mask="none")
    app.text_input(key="expression").set_value("k <= q").run()
    assert in_link(app, "custom") == "k <= q"
    paint(app, freed(3, 3))
    assert expression(app) == in_link(app, "custom") != "k <= q"
    paint(app, CAUSAL)
    assert expression(app) == in_link(app, "custom") == "k <= q"


def test_the_doors_have_parallel_names_and_the_open_one_is_no_button():
    app = open_app(view="lab")
    assert app.button(key="door_array").label.endswith(": Check an array")
    assert app.selectbox(key="gallery").placeholder == "Open a case"
    inside = app.button(key="door_array").click().run()
    assert inside.button(key="door_say").label.endswith(": Write or paint a mask")
    assert "Check an array**" in said(inside)


def test_an_empty_line_takes_away_what_is_painted_and_no_mask_of_the_model():
    app = open_app(**LINK, mask="causal,padding", pad="1")
    masks = expression(app)
    assert masks == "(k <= q) and (not is_pad(k))"
    app.text_input(key="expression").set_value("").run()
    assert (expression(app), in_link(app, "mask")) == (masks, "causal,padding")
    app.text_input(key="expression").set_value("k < 2").run()
    assert in_link(app, "mask") == "custom"
    app.text_input(key="expression").set_value("").run()
    assert (expression(app), in_link(app, "mask")) == (masks, "causal,padding")


def test_an_emptied_line_says_the_masks_of_now_to_a_page_that_has_drawn_those_of_before(monkeypatch):
    hear_as_first_drawn(monkeypatch, "on_change", "write")
    app = open_app(**LINK, mask="causal,strided", stride="3")
    assert "% 3" in expression(app)
    app.number_input(key="stride").set_value(2).run()
    app.text_input(key="expression").set_value("").run()
    assert "% 2" in expression(app)


@pytest.mark.parametrize("is_drawn", [True, False], ids=["drawn, but heard as before", "in one message"])
def test_a_mask_that_is_chosen_right_before_a_stroke_stays(monkeypatch, is_drawn):
    hear_as_first_drawn(monkeypatch, "on_event", "paint")
    app = open_app(**LINK, mask="causal")
    mask = app.pills(key="mask").set_value(["causal", "strided"])
    if is_drawn:
        mask.run()
    paint(app, freed(3, 3))
    assert in_link(app, "mask") == "causal,strided,custom"


def test_a_mistake_in_an_expression_loses_nothing_and_the_right_word_is_said():
    app = open_app(**LINK, mask="custom", custom="k <= q")
    app.text_input(key="expression").set_value("k <= same_tokens").run()
    assert app.code[0].value == "k <= same_tokens\n     ^^^^^^^^^^^"
    assert f"{markdown_safe('did you mean same_token?')}] The last valid mask stays in force." in said(app)
    assert (expression(app), in_link(app, "custom")) == ("k <= same_tokens", "k <= q")
    app.text_input(key="expression").set_value("k < 2").run()
    assert in_link(app, "custom") == "k < 2"


def test_what_is_wrong_with_an_expression_is_a_red_sentence():
    app = open_app(**LINK)
    app.text_input(key="expression").set_value("k < 3 and").run()
    red = markdown_safe("A value is missing after 'and'.")
    assert f":red[{red}] The last valid mask stays in force." in said(app)


def test_one_head_of_one_layer_can_be_painted():
    look = {"scope": "layer_head", "layer": "1", "head": "2"}
    app = paint(open_app(**LINK, mask="custom", custom="k <= q", **look), freed(0, 3))
    assert in_link(app, "custom").startswith("k <= q;1.2:")


def test_the_cross_attention_is_painted_queries_by_keys():
    link = LINK | {"architecture": "encoder-decoder", "target": "x y", "mask": "causal", "attention": "cross"}
    app = paint(open_app(**link), freed(2, 3, torch.ones(3, 4).bool()))
    assert in_link(app, "custom_cross") == expression(app) != ""
    assert "custom" not in app.query_params
    run = compute_run(read_query({name: [text] for name, text in link_of(app).items()})[0])
    weights = run.trace["decoder.layers.0.cross_attention.weights"].value[0]
    assert weights[:, 2, 3].eq(0).all()
    assert weights[:, 2, :3].ne(0).all()
    paint(app, torch.ones(3, 4).bool())
    assert "custom_cross" not in app.query_params


def test_the_other_masks_can_be_taken_into_the_painting():
    app = done(open_app(**LINK, mask="causal,padding", pad="1"), "take_over")
    assert in_link(app, "mask") == "custom"
    assert expression(app) == "k <= q and not is_pad(k)"
    assert app.pills(key="mask").value == ["custom"]


@pytest.mark.parametrize("scope", ["all", "head"])
def test_a_mask_that_is_chosen_right_before_others_are_taken_over_is_taken_over_too(monkeypatch, scope):
    hear_as_first_drawn(monkeypatch, "on_event", "take_over")
    app = open_app(**LINK, mask="causal", scope=scope)
    app.pills(key="mask").set_value(["causal", "strided"])
    done(app, "take_over")
    assert [in_link(app, name) for name in ("mask", "custom")] == ["custom", "k <= q - 3 or k == q"]


def test_a_mask_is_judged_once_it_is_said_what_it_should_be_and_fixed_by_one_click():
    app = open_app(**LINK, architecture="decoder")
    app.text_input(key="expression").set_value("q <= k").run()
    assert pictures(app)["headlight_mask_painter"]["findings"] == []
    described = pictures(app)["headlight_mask_painter"]["all_clear"]
    assert "Choose the intended mask above: every cell is compared with it." in described
    app.selectbox(key="kind_of_intent").set_value("causal").run()
    (finding,) = pictures(app)["headlight_mask_painter"]["findings"]
    assert (finding["title"], finding["can_mend"]) == ("This is not causal", True)
    assert "rows and columns are swapped" in finding["why"]
    painter = pictures(done(app, "mend", finding=0))["headlight_mask_painter"]
    assert (painter["findings"], painter["all_clear"]) == ([], "Every cell is as it should be: causal.")
    assert link_of(app) | {"mask": "custom", "custom": "k <= q", "lab.intent": "causal"} == link_of(app)


@pytest.mark.parametrize("event", [{"mend": {"finding": 0}}, {"take_over": {}}])
def test_the_masks_that_were_replaced_come_back_as_they_were(event):
    masks = {"mask": "sliding_window,custom", "window": "2", "custom": "k <= q+1"}
    app = open_app(**LINK, architecture="decoder", intent="causal", **masks)
    before = pictures(app)["headlight_mask_painter"]["masks"]
    ((name, facts),) = event.items()
    done(app, name, **facts)
    assert in_link(app, "mask") == "custom"
    blocked = base64.b64encode(np.packbits(torch.ones(4, 4).triu(2).bool().numpy())).decode()
    done(app, "bring_back", masks=before, blocked=blocked, n_queries=4, n_keys=4)
    assert link_of(app) | masks == link_of(app)


@pytest.mark.parametrize(("case", "verdict"), [("causal", "Passes"), ("after_softmax", "Fails")])
def test_the_proof_of_a_case_and_the_way_to_the_stage_where_it_fails(case, verdict):
    app = open_case(open_app(view="lab"), case)
    assert [verdict in box.value for kind in (app.success, app.error) for box in kind] == [True]
    if verdict == "Fails":
        app.button(key="go_to_leak").click().run()
        assert chosen(app, "view") == "step"
        assert "changed on purpose by the chosen mask bug" in said(app)


def test_a_translation_follows_the_painting():
    app = open_app(**LINK, mask="custom", custom="q - k < 2 and k <= q", panel="translate")
    assert "(q - k < 2) & (k <= q)" in app.code[-1].value
    app.selectbox(key="library").set_value("flex_attention").run()
    assert "mask_mod" in app.code[-1].value


def test_a_pasted_function_is_read_and_seen_beside_changed_scores_and_in_blocks():
    app = open_app(**LINK, mask="none", panel="scores")
    function = (
        "WINDOW = 1  def near(b, h, q_idx, kv_idx):     # close by     past = q_idx >= kv_idx     return past"
    )
    app.text_input(key="expression").set_value(f"{function} & (q_idx - kv_idx <= WINDOW)").run()
    assert in_link(app, "custom") == expression(app) == "q >= k and q - k <= 1"
    app.text_input(key="expression").set_value("q_idx >= kv_idx & h == 0").run()
    assert "^^^^" in app.code[0].value
    assert markdown_safe("put each comparison in brackets, as in") in said(app)
    app.text_input(key="score_text").set_value("score - slope(h) * (q_idx - kv_idx)").run()
    assert in_link(app, "score") == "score - slope(h) * (q - k)"
    assert "score_mod=score_mod, block_mask=block_mask" in app.code[1].value
    app.selectbox(key="panel").set_value("blocks").run()
    assert "4,096 blocks" in said(app)
    app.segmented_control(key="view").set_value("step").run()
    stages = pictures(app)["headlight_stage_map"]
    assert "modified_scores" in str(stages)


def test_a_refused_file_leaves_no_trace():
    app = open_app(**LINK, panel="load", architecture="decoder")
    app.file_uploader[0].upload("bad.bin", b"no mask").run()
    assert markdown_safe("it must end in one of .npy") in said(app)
    app.file_uploader[0].upload("good.csv", b"1,0\n1,1").run()
    assert_healthy(app)
    assert "An array of **2 × 2**" in said(app)


def test_a_file_stays_while_the_other_door_is_open_until_it_is_removed():
    app = open_app(**LINK, panel="load", architecture="decoder")
    app.text_area(key="pasted_mask").set_value("[[1, 0, 0], [1, 1, 0], [1, 1, 1]]").run()
    app.file_uploader[0].upload("good.csv", b"1,0\n1,1").run()
    assert "An array of **2 × 2**" in said(app)
    app.button(key="door_say").click().run()
    app.button(key="door_array").click().run()
    assert "An array of **2 × 2**" in said(app)
    assert markdown_safe("good.csv") in said(app)
    app.button(key="remove_file").click().run()
    assert "An array of **3 × 3**" in said(app)


def test_of_a_large_array_a_part_is_drawn_and_can_be_moved():
    file = io.BytesIO()
    np.save(file, np.tril(np.ones((MAX_TOKENS + 100, MAX_TOKENS), dtype=bool)))
    app = open_app(**LINK, panel="load", passed_to="sdpa", architecture="decoder")
    app.file_uploader[0].upload("large.npy", file.getvalue()).run()
    assert f"Shown: queries 0 to {MAX_TOKENS - 1:,} of {MAX_TOKENS + 100:,} and keys 0 to" in said(app)
    app.number_input(key="crop_query").set_value(70).run()
    assert f"Shown: queries 70 to {MAX_TOKENS + 69:,} of {MAX_TOKENS + 100:,} and keys 0 to" in said(app)
    (panel,) = pictures(app)["headlight_tensor_grid"]["panels"]
    assert pictures(app)["headlight_tensor_grid"]["axes"][panel["rows"]]["labels"][0] == "70"
    assert_healthy(app)


def test_an_uploaded_array_is_kept_for_its_link(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_STORE", str(tmp_path))
    app = open_app(**LINK, panel="load", architecture="decoder")
    app.file_uploader[0].upload("good.csv", b"1,0\n1,1").run()
    link = {name: in_link(app, name) for name in app.query_params}
    later = open_app(**link)
    assert "An array of **2 × 2**" in said(later)
    assert markdown_safe("good.csv") in said(later)
    (kept,) = tmp_path.iterdir()
    kept.unlink()
    elsewhere = open_app(**link)
    assert "is not kept on this server" in said(elsewhere)
    assert "An array" not in said(elsewhere)
    later.button(key="remove_file").click().run()
    assert "array_file" not in later.query_params
    assert "An array" not in said(later)


def test_after_back_to_before_an_upload_its_file_is_not_read():
    app = open_app(**LINK, panel="load", architecture="decoder")
    before = urlencode({name: in_link(app, name) for name in app.query_params})
    app.file_uploader[0].upload("good.csv", b"1,0\n1,1").run()
    assert "An array of **2 × 2**" in said(app)
    tell(app, "page_keys", "went", {"search": f"?{before}", "seq": 0})
    assert_healthy(app)
    assert "An array" not in said(app)
    assert not app.file_uploader[0].value


def test_a_file_that_the_server_lost_was_not_taken_away(monkeypatch):
    app = open_app(**LINK, panel="load", architecture="decoder")
    app.file_uploader[0].upload("good.csv", b"1,0\n1,1").run()
    monkeypatch.setattr(app, "_register_uploaded_files", lambda _: None)
    app.run()
    assert_healthy(app)
    assert not app.error
    assert "An array of **2 × 2**" in said(app)


def test_the_intended_mask_of_an_array_is_that_of_its_painting():
    app = open_app(**LINK, panel="load", architecture="decoder", passed_to="mha_attn_mask", intent_array="causal")
    app.text_area(key="pasted_mask").set_value(str(CAUSAL.int().tolist())).run()
    app.button(key="paint_loaded").click().run()
    findings = pictures(app)["headlight_mask_painter"]["findings"]
    assert "This is not causal" in [finding["title"] for finding in findings]
    assert in_link(app, "intent") == "causal"


@pytest.mark.parametrize("scope", ["all", "head"])
def test_an_array_over_another_number_of_tokens_takes_the_place_of_what_heads_had(scope):
    masks = {"mask": "causal,custom", "custom": "k < 2;*.1:k == q"}
    app = open_app(**LINK, panel="load", passed_to="jax", scope=scope, **masks)
    app.text_area(key="pasted_mask").set_value("[[1, 0], [1, 1]]").run()
    app.button(key="paint_loaded").click().run()
    assert_healthy(app)
    assert [in_link(app, name) for name in ("mask", "custom")] == ["custom", "k <= q"]


def test_an_array_that_nobody_has_seen_is_not_painted_nor_the_one_before_it(monkeypatch):
    hear_as_first_drawn(monkeypatch, "callback", "_paint")
    app = open_app(**LINK, panel="load", passed_to="jax")
    for text in ("[[1, 0], [1, 1]]", "[[1, 1], [1, 1]]"):
        app.text_area(key="pasted_mask").set_value(text).run()
    app.button(key="paint_loaded").click().run()
    assert_healthy(app)
    assert in_link(app, "panel") == "load"
    assert "custom" not in app.query_params


def test_what_to_see_in_a_case_is_said_beside_the_panel_that_it_opens_alone():
    app = open_case(open_app(view="lab"), "causal")
    assert "Under Prove" in said(app)
    app.button(key="door_array").click().run()
    assert "Under Prove" not in said(app)


def test_what_an_array_would_be_elsewhere_is_said_of_one_place_of_two_and_of_several():
    app = open_app(**LINK, panel="load", architecture="decoder")
    app.text_area(key="pasted_mask").set_value(str(CAUSAL.tolist())).run()
    everywhere = "it would be open everywhere: every query sees every key."
    for sentence in (
        "For “F.scaled_dot_product_attention: attn_mask” and 4 other places, it would be causal.",
        "For “nn.MultiheadAttention: attn_mask” and 1 other place, it would be open where k > q.",
        f"For “Added to the scores by hand”, {everywhere}",
    ):
        assert markdown_safe(sentence) in said(app)


def test_the_cells_of_an_array_that_are_not_as_they_should_be_are_outlined():
    app = open_app(**LINK, panel="load", architecture="decoder", passed_to="sdpa", intent_array="causal")
    for allowed, marked in ((freed(1, 3), [(1, 3)]), (CAUSAL, [])):
        app.text_area(key="pasted_mask").set_value(str(allowed.tolist())).run()
        (data,) = (one.proto.bytes for one in app.get("bidi_component") if one.proto.id.endswith("-loaded_mask"))
        flags = unpacked(data)[1].get("marked0", np.zeros((4, 4)))
        assert list(zip(*flags.nonzero(), strict=True)) == marked
