"""The whole script without a browser: every view, every example, every setting, and links with anything in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Expander

from tests.controls import chosen, is_open, open_menu
from tests.visualizer.told import tell
from visualizer.page import examples_menu, header, show, sidebar, warming
from visualizer.safe_text import markdown_safe
from visualizer.settings.examples import EXAMPLES, OPENING
from visualizer.settings.fields import MAX_TEXT, WORKED_EXAMPLES
from visualizer.settings.gallery import GALLERY
from visualizer.settings.published import PUBLISHED
from visualizer.settings.settings import FIELDS
from visualizer.stages.checks import Check
from visualizer.views.computation import COMPUTATION

APP = str(Path(__file__).parents[1] / "app.py")
VIEWS = tuple(FIELDS["view"].choices)
DETAIL_SWITCHES = ("final_norm", "fused_qkv", "qkv_bias", "output_bias", "unembedding_bias")


def open_app(**query: str) -> AppTest:
    """The page of a link, without parameters that of the usual settings; the bare address opens something else.

    What few look at is open: the drawer of the settings, and a stage's checks and code.
    """
    app = AppTest.from_file(APP, default_timeout=60)
    app.session_state[sidebar.MORE] = True
    app.session_state[COMPUTATION] = True
    for name, value in (query or {"view": "step"}).items():
        app.query_params[name] = value
    return app.run()


def open_examples(app: AppTest) -> AppTest:
    """Open the menu of the examples."""
    return open_menu(app, examples_menu.KEY)


def components(app: AppTest) -> list[str]:
    return [element.proto.component_name for element in app.get("bidi_component")]


def assert_healthy(app: AppTest) -> None:
    assert not app.exception, app.exception
    assert not app.error, app.error[0].value


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("architecture", FIELDS["architecture"].choices)
def test_every_view_of_every_architecture(view, architecture):
    app = open_app(view=view, architecture=architecture)
    assert_healthy(app)
    assert "headlight_glossary" in components(app)
    drawn = {
        "step": "headlight_tensor_grid",
        "way": "headlight_token_way",
        "heads": "headlight_attention_heads",
        "compare": "headlight_compare_grids",
        "lab": "headlight_mask_painter",
        "train": "headlight_training",
        "generate": "headlight_generation_steps",
    }
    if view == "generate" and architecture in ("encoder", "attention"):
        reason = (
            "An encoder only reads" if architecture == "encoder" else "An attention alone gives each token a vector"
        )
        assert reason in app.info[0].value
    elif view == "way" and architecture == "attention":
        assert "no residual stream" in app.info[0].value
    else:
        assert drawn[view] in components(app)


def test_a_warm_server_sends_the_picture_first_and_the_page_is_the_same(monkeypatch):
    order = {}
    for is_warm in (False, True):
        monkeypatch.setattr(warming, "is_warm", lambda is_warm=is_warm: is_warm)
        drawn = []
        for module, name in ((show, "show"), (sidebar, "controls"), (header, "header")):
            monkeypatch.setattr(module, name, noted(drawn, name, getattr(module, name)))
        order[is_warm] = (open_app(), drawn)
        monkeypatch.undo()
    (cold, controls_first), (warm, picture_first) = order[False], order[True]
    assert_healthy(warm)
    assert controls_first == ["controls", "header", "show"]
    assert picture_first == ["show", "controls", "header"]
    assert bytes_of(warm) == bytes_of(cold)


def bytes_of(app: AppTest) -> list[bytes]:
    """Return the bytes that the pictures of a page are given: all but the keys, which tell one run from another."""
    drawn = (each.proto for each in app.get("bidi_component"))
    return [proto.bytes for proto in drawn if proto.component_name != "headlight_page_keys"]


def noted(drawn: list[str], name: str, draw: Callable[..., object]) -> Callable[..., object]:
    """A function that also notes that it was called."""

    def draw_and_note(*given: object) -> object:
        drawn.append(name)
        return draw(*given)

    return draw_and_note


def open_case(app: AppTest, name: str) -> AppTest:
    """Choose a case of the Mask lab in its menu."""
    title = next(case.title for case in GALLERY if case.name == name)
    return app.selectbox(key="gallery").select(title).run()


@pytest.mark.parametrize("case", GALLERY, ids=lambda case: case.name)
def test_one_choice_opens_a_case_of_the_mask_lab(case):
    app = open_case(open_app(view="lab"), case.name)
    assert_healthy_or_leaking(app)
    assert app.selectbox(key="gallery").value is None
    assert app.selectbox(key="panel").value == case.selection.lab.panel
    assert any(case.what_to_see in caption.value for caption in app.caption)
    of_masks = {"causal": "k <= q", "padding": "not is_pad(k)", "causal,padding": "(k <= q) and (not is_pad(k))"}
    masks = ",".join(case.settings.mask) if case.selection.lab.attention == "decoder" else ""
    assert app.text_input(key="expression").value == (case.settings.custom or of_masks.get(masks, ""))


def in_link(app: AppTest, name: str) -> str:
    value = app.query_params[FIELDS[name].parameter if name in FIELDS else name]
    return value if isinstance(value, str) else value[0]


def assert_healthy_or_leaking(app: AppTest) -> None:
    assert not app.exception, app.exception
    assert all("Fails" in error.value for error in app.error)


@pytest.mark.parametrize("panel", FIELDS["panel"].choices)
@pytest.mark.parametrize("architecture", FIELDS["architecture"].choices)
def test_every_tool_of_the_mask_lab(panel, architecture):
    masks = "causal,padding,custom"
    app = open_app(
        view="lab", panel=panel, architecture=architecture, mask=masks, custom="1.0:q == k", pad="2", layer="1"
    )
    assert_healthy(app)


@pytest.mark.parametrize(
    ("fault", "leaks", "first"),
    [
        ("none", [], ""),
        ("after_softmax", [0, 1, 2], "decoder.layers.0.self_attention.weights"),
        ("before_softmax", [0, 1, 2], "decoder.layers.0.self_attention.context"),
        ("left_out", [1, 2], "decoder.layers.1.self_attention.weights"),
    ],
)
def test_a_leaking_model_fails_the_proof(fault, leaks, first):
    app = open_app(
        view="lab",
        panel="prove",
        architecture="decoder",
        weights="random",
        text="a b c d",
        n_layers="3",
        fault=fault,
        intent="causal",
    )
    assert not app.exception
    assert len(app.success) == (not leaks)
    said = "".join(error.value for error in app.error)
    assert [layer for layer in range(3) if f"after layer {layer} " in said] == leaks
    assert ("logits" in said) == bool(leaks)
    begins = [text.value.replace("\\", "") for text in app.markdown if "It begins in" in text.value]
    assert len(begins) == bool(leaks)
    assert all(first in text for text in begins)


def test_an_expression_with_an_error_changes_nothing_and_is_marked():
    app = open_app(view="lab", mask="custom", custom="k <= q")
    app.text_input(key="expression").set_value("k <= = q").run()
    assert_healthy(app)
    assert app.text_input(key="expression").value == "k <= = q"
    assert in_link(app, "custom") == "k <= q"
    assert any("     ^" in block.value for block in app.code)
    app.text_input(key="expression").set_value("q - k < 2 and k <= q").run()
    assert in_link(app, "custom") == "q - k < 2 and k <= q"
    assert not any("^" in block.value for block in app.code)


def test_a_mask_that_is_started_from_stands_in_the_place_of_those_in_force():
    app = open_app(view="lab", mask="causal,padding", pad="1")
    app.selectbox(key="start_from").select("Causal: k <= q").run()
    assert_healthy(app)
    assert in_link(app, "mask") == "custom"
    assert in_link(app, "custom") == "k <= q"
    assert app.text_input(key="expression").value == "k <= q"
    assert app.selectbox(key="start_from").value is None


def test_a_link_with_a_bad_expression_says_so_and_shows_the_rest():
    app = open_app(view="lab", mask="custom", custom="k <= q;*.1:k <=")
    assert_healthy(app)
    assert any("left out of the painted mask" in warning.value for warning in app.warning)
    assert in_link(app, "custom") == "k <= q"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[1, 0], [1, 1]]", "An array of **2 × 2**, int64. What it means depends on where it goes."),
        ("[[1, 0], [1]]", None),
        ("__import__('os')", None),
    ],
)
def test_a_pasted_array_is_read_or_refused_in_one_sentence(text, said):
    app = open_app(view="lab", panel="load", architecture="decoder", text="a b")
    app.text_area(key="pasted_mask").set_value(text).run()
    assert not app.exception
    assert len(app.error) == (said is None)
    assert said is None or said in [block.value for block in app.markdown]


def test_a_pasted_array_is_in_the_link_which_names_the_file_of_a_long_one():
    app = open_app(view="lab", panel="load", architecture="decoder", text="a b")
    app.text_area(key="pasted_mask").set_value("[[1, 0],\n [1, 1]]").run()
    later = open_app(**{name: in_link(app, name) for name in app.query_params})
    assert later.text_area(key="pasted_mask").value == "[[1, 0],\n [1, 1]]"
    assert "An array of **2 × 2**" in " ".join(block.value for block in later.markdown)
    long = str([[1] * 40] * 40)
    later.text_area(key="pasted_mask").set_value(long).run()
    assert_healthy(later)
    assert len(in_link(later, "array_text")) < 40
    assert later.text_area(key="pasted_mask").value == long
    of_link = open_app(**{name: in_link(later, name) for name in later.query_params})
    assert of_link.text_area(key="pasted_mask").value == long
    gone = open_app(view="lab", panel="load", array_text=f"{'0' * 16}/pasted.txt")
    assert "is not kept on this server" in " ".join(each.value for each in gone.caption)
    assert gone.text_area(key="pasted_mask").value == ""
    later.text_area(key="pasted_mask").set_value("").run()
    assert "An array" not in " ".join(block.value for block in later.markdown)


@pytest.mark.parametrize(
    ("place", "painted"), [("sdpa", "k <= q"), ("mha_attn_mask", "k > q")], ids=["sdpa", "mha_attn_mask"]
)
def test_a_pasted_mask_can_be_painted_as_the_place_that_it_is_for_reads_it(place, painted):
    app = open_app(view="lab", panel="load", architecture="decoder", text="a b")
    app.text_area(key="pasted_mask").set_value("[[True, False], [True, True]]").run()
    assert "paint_loaded" not in [button.key for button in app.button]
    app.selectbox(key="passed_to").set_value(place).run()
    app.button(key="paint_loaded").click().run()
    assert_healthy(app)
    assert in_link(app, "mask") == "custom"
    assert in_link(app, "custom") == painted


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_every_view_of_every_worked_example(view, example):
    assert_healthy(open_app(view=view, weights=example))


def test_every_worked_example_is_opened_from_one_menu_and_cited():
    app = open_app(view="generate", mask="none")
    open_examples(app)
    in_menu = "".join(caption.value for caption in app.caption)
    assert all(f"`{example.recipe}`" in in_menu for example in PUBLISHED.values())
    for example in PUBLISHED.values():
        open_examples(app).button(key=f"open_{example.name}").click().run()
        assert_healthy(app)
        assert in_link(app, "weights") == example.name
        assert app.segmented_control(key="view").value == "step"
        said = "".join(caption.value for caption in app.caption)
        assert markdown_safe(example.source) in said
        assert f"`{example.recipe}`" in said
        assert "check_circle" in said
        assert not is_open(app, examples_menu.KEY)


@pytest.mark.parametrize("example", PUBLISHED.values(), ids=lambda example: example.name)
def test_an_example_is_compared_with_itself_without_its_mask_if_it_has_one(example):
    app = open_app(view="compare", weights=example.name, mask_a="causal", mask_b="none")
    assert_healthy(app)
    captions = "".join(caption.value for caption in app.caption)
    assert ("headlight_compare_grids" in components(app)) == example.has_mask
    assert ("A is the example without its mask" in captions) == example.has_mask
    if example.has_mask:
        assert any("removed" in block.value for block in app.markdown)
    else:
        assert "was published with no" in app.info[0].value
        assert "nothing to compare" in app.info[0].value
        app.button(key="compare_two_causal_heads").click().run()
        assert_healthy(app)
        assert "headlight_compare_grids" in components(app)


def test_the_sequences_of_an_example_are_numbers_and_both_are_held_against_the_published():
    app = open_app(weights="cross_attention", batch="1")
    assert_healthy(app)
    assert list(app.segmented_control(key="batch").options) == ["0", "1"]
    assert any("are reproduced to 1e-9" in caption.value for caption in app.caption)
    assert any("published numbers to 1e-9" in block.value for block in app.markdown)
    assert not any("cancel" in block.value for block in app.markdown)


def test_without_its_mask_an_example_says_so_and_gives_it_back():
    app = open_app(weights="cross_attention", mask="none")
    assert "Its mask is left out" in app.warning[0].value
    app.button(key="as_published").click().run()
    assert not app.warning
    assert any("are reproduced to 1e-9" in caption.value for caption in app.caption)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_one_click_opens_an_example(example):
    app = open_app()
    open_examples(app).button(key=f"example_{example.name}").click().run()
    assert_healthy(app)
    assert chosen(app, "weights") == example.settings.weights
    assert app.segmented_control(key="view").value == example.selection.view
    assert components(app)


@pytest.mark.parametrize(
    "stage", ["embedded", "scores", "weights", "context", "activation", "norm1", "logits", "probabilities"]
)
def test_stages_are_explained_and_derived(stage):
    prefix = {
        "embedded": "encoder.inputs.",
        "logits": "",
        "probabilities": "",
        "norm1": "encoder.",
        "activation": "encoder.feed_forward.",
    }
    app = open_app(stage=prefix.get(stage, "encoder.self_attention.") + stage)
    assert_healthy(app)
    assert "derivation" in " ".join(components(app))
    checked = checks_of(app)
    assert "check_circle" in checked.label
    assert "passed" in checked.label
    said = " ".join(block.value for block in checked.markdown)
    assert "recomputed" in said or "exactly" in said


def checks_of(app: AppTest) -> Expander:
    """The one line with the checks of a stage, which opens."""
    return next(expander for expander in app.expander if "check" in expander.label)


def test_a_check_that_fails_opens_by_itself_and_is_red(monkeypatch):
    failing = (Check("every row sums to one", False), Check("no NaN", True))
    monkeypatch.setattr("visualizer.views.computation.checks", lambda *_: failing)
    checked = checks_of(open_app())
    assert checked.label == ":red[:material/cancel:] :red[**1 of 2 checks failed**] · shapes and code"
    assert checked.proto.expanded
    assert any(":red[:material/cancel:] every row sums to one" in block.value for block in checked.markdown)


def test_the_link_holds_what_was_chosen():
    app = open_app()
    app.slider(key="n_heads").set_value(6).run()
    assert_healthy(app)
    assert app.query_params["n_heads"] == "6"
    assert int(chosen(app, "d_model")) % 6 == 0
    app.segmented_control(key="view").set_value("heads").run()
    assert app.query_params["view"] == "heads"


def test_controls_keep_their_values_while_they_are_not_drawn():
    app = open_app(view="step")
    app.pills(key="mask").set_value(["causal", "sliding_window"]).run()
    app.number_input(key="window").set_value(5).run()
    app.segmented_control(key="view").set_value("compare").run()
    tell(app, "compare_grids", "shown", turned={"mask_a": ["sliding_window"]})
    assert app.number_input(key="window").value == 5
    for view in ("heads", "compare"):
        app.segmented_control(key="view").set_value(view).run()
    assert_healthy(app)
    expected = {"mask": "causal,sliding_window", "window": "5", "view": "compare"}
    expected["compare.mask_a"] = "sliding_window"
    assert {name: in_link(app, name) for name in app.query_params} == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("n_heads", "nan", 4),
        ("n_heads", "1e309", 16),
        ("n_heads", "-5", 1),
        ("n_layers", "many", 2),
        ("dropout", "7", 0.9),
        ("norm", "postt", "post"),
    ],
)
def test_a_bad_value_in_the_link_becomes_a_good_one_and_is_told(name, value, expected):
    app = open_app(**{name: value})
    assert_healthy(app)
    assert chosen(app, name) == expected
    assert len(app.warning) == 1
    assert name in app.warning[0].value.replace("\\", "").replace("\u2060", "")


@pytest.mark.parametrize(
    "text", ["", "   ", "\u200b", "word " * 600, "x" * 100_000, "💥 " * 3, "שלום עולם", "<b>$x$</b> :red[x]"]
)
def test_any_text_gives_a_picture_or_one_sentence(text):
    app = open_app()
    app.text_area(key="text").set_value(text).run()
    assert not app.exception
    assert len(app.error) <= 1
    assert app.error or "headlight_tensor_grid" in components(app)
    assert chosen(app, "text") == text
    if len(text) > MAX_TEXT:
        assert "100,000 characters; at most 20,000 are read" in app.error[0].value.replace("\\", "")


def test_a_run_too_large_is_refused_with_what_to_lower():
    app = open_app(architecture="encoder-decoder", text="a " * 500, target="b " * 500, n_layers="12", n_heads="12")
    assert len(app.error) == 1
    assert "n_layers" in app.error[0].value.replace("\\", "")


def test_dropout_is_shown_for_what_it_is():
    app = open_app(dropout="0.5", stage="encoder.self_attention.dropped_weights")
    assert_healthy(app)
    assert any("do not sum to one" in markdown.value for markdown in app.markdown)


def test_selected_widths_can_be_shared_by_the_heads():
    app = open_app()
    for n_heads in (1, 3, 7, 12, 16):
        app.slider(key="n_heads").set_value(n_heads).run()
        assert_healthy(app)
        assert all(int(option) % n_heads == 0 for option in app.select_slider(key="d_model").options)


def test_a_width_fitted_to_the_heads_is_said_and_comes_back():
    def said():
        return [caption.value for caption in app.caption if "cannot share a width" in caption.value]

    app = open_app(architecture="decoder")
    for n_heads, width in ((5, 60), (7, 56), (4, 64)):
        app.slider(key="n_heads").set_value(n_heads).run()
        assert_healthy(app)
        assert app.query_params.get("d_model", "64") == str(width)
        assert bool(said()) == (width != 64)
    app.slider(key="n_heads").set_value(5).run()
    assert "5 heads cannot share a width of 64 evenly, so the model is 60 wide" in said()[0]
    app.select_slider(key="d_model").set_value(80).run()
    app.slider(key="n_heads").set_value(4).run()
    assert not said()
    assert app.query_params["d_model"] == "80" or app.select_slider(key="d_model").value == 80


def test_a_link_whose_width_the_heads_cannot_share_says_what_is_used():
    captions = [caption.value for caption in open_app(n_heads="5").caption]
    assert any("5 heads cannot share a width of 64 evenly" in caption for caption in captions)


def test_heads_of_their_own_width_leave_the_width_of_the_model_as_it_is():
    app = open_app(architecture="decoder", head_dim="8")
    app.slider(key="n_heads").set_value(5).run()
    assert_healthy(app)
    assert "d_model" not in app.query_params
    assert not [caption.value for caption in app.caption if "cannot share a width" in caption.value]


def test_details_of_published_models_can_be_chosen():
    app = open_app(architecture="encoder-decoder")
    for name in DETAIL_SWITCHES:
        app.toggle(key=name).set_value(not app.toggle(key=name).value)
    app.toggle(key="shared_vocabulary").set_value(False)
    app.select_slider(key="head_dim").set_value(32)
    app.select_slider(key="n_decoder_layers").set_value(3)
    app.select_slider(key="layer_norm_eps").set_value(1e-12).run()
    assert_healthy(app)
    assert set(app.query_params) == {
        "architecture",
        "head_dim",
        "n_decoder_layers",
        "shared_vocabulary",
        "layer_norm_eps",
        *DETAIL_SWITCHES,
    }
    assert app.query_params["layer_norm_eps"] == "1e-12"


def test_an_attention_alone_has_widths_of_its_own_and_none_of_what_surrounds_it():
    app = open_app(architecture="attention", head_dim="5", stage="attention.output")
    drawn = {widget.key for kind in (app.toggle, app.select_slider, app.slider) for widget in kind}
    assert {"d_out", "head_dim", "fused_qkv", "qkv_bias", "output_bias"} <= drawn
    assert not drawn & {"n_layers", "d_ff", "final_norm", "layer_norm_eps", "unembedding_bias", "n_decoder_layers"}
    app.select_slider(key="d_out").set_value(24).run()
    assert_healthy(app)
    assert app.query_params["d_out"] == "24"
    assert "headlight_tensor_grid" in components(app)


def test_a_final_norm_is_no_choice_where_there_always_is_one():
    assert "final_norm" not in {toggle.key for toggle in open_app(norm="pre").toggle}


def test_a_place_that_the_run_does_not_have_is_told_and_replaced():
    app = open_app(stage="junk.foo", layer="9")
    assert_healthy(app)
    assert len(app.warning) == 1
    told = app.warning[0].value.replace("\\", "").replace("\u2060", "")
    assert "stage=junk.foo is not in this run" in told
    assert "layer=9 is not in this run: 1 is shown" in told
    assert dict(app.query_params) == {"layer": "1"}


def test_what_the_link_does_not_name_is_not_complained_about():
    app = open_app(text="Hello")
    assert_healthy(app)
    assert not app.warning


def test_an_example_says_where_to_look():
    app = open_app()
    open_examples(app).button(key="example_padding").click().run()
    assert any("hatched columns are padding" in caption.value for caption in app.caption)
    app.slider(key="n_heads").set_value(2).run()
    assert not any("hatched columns are padding" in caption.value for caption in app.caption)


def test_a_trained_model_under_another_mask_says_so_and_goes_back_by_a_click():
    link = {"weights": "trained", "task": "match_brackets"}
    app = open_app(**link)
    assert_healthy(app)
    assert not app.warning
    assert not app.pills(key="mask").value
    assert dict(app.query_params) == link

    app.pills(key="mask").set_value(["causal"]).run()
    (warning,) = app.warning
    assert "learned its task with no mask; here it runs with the causal mask" in warning.value
    assert dict(app.query_params) == link | {"mask": "causal"}
    app.button(key="mask_of_training").click().run()
    assert not app.warning
    assert not app.pills(key="mask").value
    assert dict(app.query_params) == link


def test_a_mask_that_blocks_nothing_more_than_the_mask_of_training_is_not_complained_about():
    app = open_app(weights="trained", task="reverse", mask="causal,padding,prefix", prefix="0")
    assert_healthy(app)
    assert not app.warning


def test_the_bare_address_opens_the_opening_and_every_link_leaves_out_what_it_always_left_out():
    app = AppTest.from_file(APP, default_timeout=60).run()
    assert_healthy(app)
    assert (chosen(app, "view"), chosen(app, "architecture")) == ("way", "decoder")
    assert dict(app.query_params) == {}
    assert any(OPENING.what_to_see in said.value for said in app.caption)
    app.selectbox(key="model").set_value("hand_built")
    app.segmented_control(key="view").set_value("step").run()
    assert dict(app.query_params) == {"architecture": "decoder", "norm": "pre", "text": OPENING.settings.text}
    app = open_app(train_task="sort")
    assert (chosen(app, "view"), chosen(app, "architecture")) == ("step", "encoder")


EMPTY = "There is nothing to run yet: type at least one word into the text."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", EMPTY),
        (" \n\t  ", EMPTY),
        ("x " * (MAX_TEXT // 2), "The text has 10,000 tokens; at most 1,024 are drawn: shorten it."),
    ],
    ids=["nothing", "white space", "too much"],
)
def test_what_cannot_be_drawn_gets_one_clear_sentence_until_it_can(text, sentence):
    app = open_app()
    app.text_area(key="text").set_value(text).run()
    (said,) = app.error
    assert said.value.replace("\\", "").replace("\u2060", "").endswith(sentence)
    assert "headlight_tensor_grid" not in components(app)
    app.text_area(key="text").set_value("usable again").run()
    assert_healthy(app)
    assert "headlight_tensor_grid" in components(app)


def test_one_word_too_long_for_a_link_is_drawn_and_that_is_said():
    app = open_app()
    app.text_area(key="text").set_value("x" * MAX_TEXT).run()
    assert_healthy(app)
    assert "The text is too long for a link" in app.info[0].value
    assert "headlight_tensor_grid" in components(app)
