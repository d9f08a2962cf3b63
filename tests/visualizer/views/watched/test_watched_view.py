"""Any model: opening recordings, what is said of them, and what is in the link."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import nn

import headlight
from tests.headlight.small_models import WIDTH, OneSequence, seeded, stacked, vectors, written_out
from tests.headlight.test_transformers_models import built
from tests.visualizer.told import drawn_on_map, tell
from visualizer.runs.compute import compute_run
from visualizer.runs.operations_run import run_of_operations
from visualizer.runs.recording_run import run_recording
from visualizer.runs.saved import as_file
from visualizer.runs.watched import WatchedRun, in_bytes
from visualizer.safe_text import markdown_safe
from visualizer.settings.settings import Settings
from visualizer.stages import operations
from visualizer.stages.registry import checks, operands_of
from visualizer.views.comparison import has_same_mask, same_mask_note
from visualizer.views.computation import COMPUTATION
from visualizer.views.watched import recordings
from visualizer.views.watched.judged_trace import attentions_that_look_ahead
from visualizer.views.watched.make_example import TOKENS, example_trace

APP = str(Path(__file__).parents[4] / "app.py")


def open_app(**query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    app.session_state[COMPUTATION] = True
    for name, value in {"view": "watched", **query}.items():
        app.query_params[name] = value
    return app.run()


def said(app: AppTest) -> str:
    return "\n".join(element.value for element in (*app.markdown, *app.caption))


def headers(app: AppTest) -> list[tuple[str, dict[str, Any]]]:
    """The name of the component and the header of every picture."""
    found = []
    for element in app.get("bidi_component"):
        data = element.proto.bytes
        header = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
        found.append((element.proto.component_name, header))
    return found


def pictures(app: AppTest) -> dict[str, dict[str, Any]]:
    """The header of the last picture of each component."""
    return dict(headers(app))


def link_of(app: AppTest) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def test_the_example_is_what_its_script_makes():
    kept, made = headlight.load(recordings.EXAMPLE), example_trace()
    assert kept.tokens == made.tokens == TOKENS
    assert kept.paths == made.paths
    assert list(kept.stages) == list(made.stages)
    for one, other in zip(kept, made, strict=True):
        assert torch.equal(one.allowed, other.allowed)
        torch.testing.assert_close(one.weights, other.weights, rtol=0, atol=1e-6)
    for one, other in zip(kept.stages.values(), made.stages.values(), strict=True):
        torch.testing.assert_close(one.value, other.value, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("n_ahead", "n_seen", "sentence"),
    [
        (0, 1, "The attention sees no later tokens."),
        (1, 1, "The attention sees later tokens."),
        (0, 3, "None of the 3 attentions see later tokens."),
        (1, 3, "1 of 3 attentions sees later tokens."),
        (2, 3, "2 of 3 attentions see later tokens."),
        (3, 3, "All 3 attentions see later tokens."),
    ],
)
def test_how_many_attentions_look_ahead_is_a_sentence(n_ahead, n_seen, sentence):
    assert attentions_that_look_ahead(n_ahead, n_seen) == sentence


def test_the_example_opens_by_a_click_on_its_mistake():
    app = open_app()
    assert "headlight.watch(model" in app.code[0].value
    app.button(key="watched_example").click().run()
    assert not app.exception
    assert "**1 of 3 attentions sees later tokens.** 1 error." in said(app)
    assert "Every query sees one key too many" in said(app)
    assert link_of(app)["watched_source"] == "example"
    heads = pictures(app)["headlight_attention_heads"]
    assert (heads["layer"], heads["rows"]["labels"]) == (1, list(TOKENS))
    assert "recorded=" in heads["address"]
    assert not heads["arrays"]


def test_an_upload_opens_and_a_bad_one_leaves_it_open(tmp_path):
    app = open_app()
    upload(app, "mine.headlight", recorded(tmp_path))
    assert "mine.headlight" in said(app)
    assert "**The attention sees later tokens.** No errors, no warnings." in said(app)
    upload(app, "bad.headlight", b"\x10" + bytes(40))
    assert "bad" in app.error[0].value
    assert "mine.headlight" in said(app)


def recorded(folder: Path) -> bytes:
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0))
    with headlight.watch(model) as trace:
        model(x, x, x, need_weights=False)
    trace.save(folder / "mine.headlight")
    return (folder / "mine.headlight").read_bytes()


def test_an_upload_is_kept_for_its_link(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_STORE", str(tmp_path / "store"))
    app = open_app()
    upload(app, "mine.headlight", recorded(tmp_path))
    link = link_of(app)
    recordings._UPLOADS.clear()  # as on another server
    later = open_app(**link)
    assert "mine.headlight" in said(later)
    assert (
        pictures(later)["headlight_attention_heads"]["rows"] == pictures(app)["headlight_attention_heads"]["rows"]
    )

    (kept,) = (tmp_path / "store").iterdir()
    kept.write_bytes(b"another file")
    recordings._UPLOADS.clear()
    assert "not kept on this server" in open_app(**link).error[0].value
    assert "mine.headlight" in said(app.run()), "its own session has it still"


def test_an_upload_that_is_not_kept_stays_in_its_session(tmp_path, monkeypatch):
    monkeypatch.setattr("visualizer.work.uploads.MOST_BYTES", 100)
    app = open_app()
    upload(app, "mine.headlight", recorded(tmp_path))
    assert "watched_file" not in link_of(app)
    assert "mine.headlight" in said(app.run())


def test_the_model_is_the_first_choice_and_the_views_are_those_it_has():
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params["view"] = "heads"
    app.run()
    assert app.sidebar.selectbox[0].label == "Model"
    app.selectbox(key="model").set_value("recording").run()
    assert app.segmented_control(key="view").options == [
        "Follow a token",
        "Step through",
        "Heads",
        "Compare",
    ]
    assert not app.sidebar.text_area
    app.button(key="watched_example").click().run()
    strip = pictures(app)["headlight_token_strip"]
    assert [token["label"] for token in strip["sequences"][0]["tokens"]] == list(TOKENS)
    assert strip["selected"] == {"sequence": "source", "index": 8}
    app.selectbox(key="model").set_value("hand_built").run()
    assert len(app.segmented_control(key="view").options) == 7
    assert app.sidebar.text_area
    assert not app.exception
    assert "source" not in link_of(app)


def test_a_recording_without_what_a_view_needs_says_what_would_keep_it(tmp_path, monkeypatch):
    recorded(tmp_path)
    monkeypatch.setattr(sys, "argv", ["app.py", str(tmp_path / "mine.headlight")])
    for view, missing, keep in (
        ("step", "holds only attentions", "all"),
        ("compare", "has no queries and keys", "attentions"),
    ):
        app = open_app(source="recording", view=view, watched_source="given")
        assert missing in app.info[0].value
        assert f'keep="{keep}"' in app.code[0].value
        assert not app.exception


def upload(app: AppTest, name: str, data: bytes) -> None:
    app.file_uploader[0].upload(name, data).run()
    assert not app.exception


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"watched_source": "uploaded"}, "not kept on this server"),
        ({"watched_source": "uploaded", "watched_file": "../../etc/hostname"}, "not kept on this server"),
        ({"watched_source": "uploaded", "watched_file": f"{'0' * 16}/a.headlight"}, "not kept on this server"),
        ({"watched_source": "given"}, "this one was started without"),
        ({"watched_source": "path", "watched_path": "nowhere.headlight"}, "there is no such file"),
        ({"watched_source": "path", "watched_path": "/etc/hostname"}, "its name must end in"),
    ],
)
def test_a_link_to_a_file_that_is_not_here_says_so(query, sentence):
    app = open_app(**query)
    assert sentence in app.error[0].value
    assert app.code
    (path,) = [field for field in app.text_input if field.label == "Or the path of one on this machine"]
    assert path.value == query.get("watched_path", "")
    app.button(key="watched_example").click().run()
    app.button(key="watched_close").click().run()
    (path,) = [field for field in app.text_input if field.label == "Or the path of one on this machine"]
    assert path.value == ""


def test_the_file_that_the_app_was_started_with_is_open(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["app.py", str(recordings.EXAMPLE)])
    app = AppTest.from_file(APP, default_timeout=60).run()
    assert not app.exception
    assert "example.headlight" in said(app)
    opened = {
        "source": "recording",
        "view": "heads",
        "watched_source": "given",
        "layer": "1",
    }
    assert link_of(app) == {**opened, "stage": "layers.1.self_attn"}


def test_a_file_of_this_machine_opens_by_its_path():
    app = open_app()
    assert any("opens by its path, which also takes less memory" in caption.value for caption in app.caption)
    (path,) = [field for field in app.text_input if field.label == "Or the path of one on this machine"]
    path.set_value(str(recordings.EXAMPLE)).run()
    assert not app.exception
    assert "example.headlight" in said(app)
    assert link_of(app)["watched_path"] == str(recordings.EXAMPLE)
    assert "headlight_attention_heads" in pictures(app)


def test_a_path_that_is_emptied_closes_its_file_and_no_link_names_it():
    app = open_app(watched_source="path", watched_path="nowhere.headlight")
    (path,) = [field for field in app.text_input if field.label == "Or the path of one on this machine"]
    path.set_value("").run()
    assert not app.exception
    assert not app.error
    assert "watched_path" not in link_of(app)


def words_on_stage(app: AppTest) -> str:
    """The words beside the title of a stage."""
    return next(header["lines"][0][0][0] for _, header in headers(app) if header["key"] == "stage_text")


def test_every_operation_can_be_stepped_through(monkeypatch):
    path = "layers.1.linear1.linear"
    checked = []
    computed = operations._computed_again
    monkeypatch.setattr(
        operations, "_computed_again", lambda run, stage: checked.append(stage) or computed(run, stage)
    )
    app = open_app(
        watched_source="example",
        watched_panel="operations",
        stage=path,
        query="3",
        key="5",
    )
    assert not app.exception
    model = pictures(app)["headlight_stage_map"]
    drawn = drawn_on_map(model)
    assert list(drawn) == list(headlight.load(recordings.EXAMPLE).stages)
    assert (model["current"], drawn[path][0]) == (path, "linear1")
    assert drawn["unembedding.linear"][0] == "output"
    panels = pictures(app)["headlight_tensor_grid"]["panels"]
    assert [panel["title"] for panel in panels] == ["layer_norm", "weight, transposed", "bias", "linear"]
    assert [panel["operator"] for panel in panels] == ["", "×", "+", "="]
    assert panels[-1]["subtitle"] == f"{path}  1 × 10 × 64"
    assert "computed again from its inputs by linear: equal" in said(app)
    steps = pictures(app)["headlight_derivation"]
    assert steps["agrees"]
    assert steps["title"] == "linear of token 3, column 5"
    app.run()
    assert len(checked) <= 1  # and none where another test looked at it before
    assert words_on_stage(app).startswith("Each row of layers.1.norm1.layer_norm times layers.1.linear1.weight, ")


def test_the_field_of_a_column_shows_the_last_where_there_are_no_more(monkeypatch):
    monkeypatch.setattr("visualizer.stages.panels.COLUMNS_AT_ONCE", 16)
    app = open_app(
        source="recording",
        view="step",
        watched_source="example",
        stage="layers.1.linear1.linear",
        key="900",
    )
    (field,) = [each for each in app.number_input if each.label == "Column"]
    assert (field.value, field.max) == (63, 63)
    field.set_value(5).run()
    assert link_of(app)["key"] == "5"


def test_probabilities_of_a_recording_without_a_vocabulary_are_stepped_through(monkeypatch, tmp_path):
    run = compute_run(Settings(architecture="decoder", text="a b c", n_layers=1))
    (tmp_path / "mine.headlight").write_bytes(as_file(run).getvalue())
    monkeypatch.setattr(sys, "argv", ["app.py", str(tmp_path / "mine.headlight")])
    app = open_app(source="recording", view="step", watched_source="given", stage="probabilities")
    assert not app.exception
    assert any(header["key"] == "derivation_0" for _, header in headers(app))


def test_an_operation_that_a_link_names_in_vain_is_said():
    app = open_app(source="recording", view="step", watched_source="example", stage="layers.9.add")
    assert "There is no operation layers" in app.warning[0].value
    model = pictures(app)["headlight_stage_map"]
    assert model["current"] == next(iter(drawn_on_map(model)))


def test_operations_that_are_one_known_step_are_one_chip_with_a_page(monkeypatch, tmp_path):
    model = stacked(written_out(), n_layers=1)
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(vectors())
    trace.save(tmp_path / "mine.headlight")
    monkeypatch.setattr(sys, "argv", ["app.py", str(tmp_path / "mine.headlight")])
    app = open_app(watched_source="given", watched_panel="operations", stage="0.masked_softmax")
    assert not app.exception
    model = pictures(app)["headlight_stage_map"]
    drawn = drawn_on_map(model)
    label = "Softmax with its mask"
    assert model["current"] == "0.masked_softmax"
    assert drawn["0.masked_softmax"] == (label, [label, "weights", "2 × 4 × 6 × 6"])
    details = [path for path, (_, row) in drawn.items() if row[3:] == [1]]
    assert [path.rpartition(".")[2] for path in details] == ["div", "masked_fill", "softmax"]
    assert r"\operatorname{softmax}(c\,S,\ \text{filled by } F) \qquad c = 0.5" in app.latex[0].value
    assert "sections 3.2.1 and 3.2.3" in words_on_stage(app)
    (step,) = (header for _, header in headers(app) if header["key"] == "picture")
    assert [panel["title"] for panel in step["panels"]] == ["S = matmul", "F = invert", f"{label} · head 2"]
    assert pictures(app)["headlight_derivation"]["agrees"]


def test_heads_of_a_sequence_without_an_axis_for_it_are_stepped_through_one_by_one(monkeypatch, tmp_path):
    model = seeded(lambda: nn.Sequential(OneSequence(written_out()), nn.LayerNorm(WIDTH)))
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(vectors()[0])
    trace.save(tmp_path / "mine.headlight")
    monkeypatch.setattr(sys, "argv", ["app.py", str(tmp_path / "mine.headlight")])
    app = open_app(source="recording", view="step", watched_source="given", stage="0.softmax", head="3")
    assert not app.exception
    (step,) = (header for _, header in headers(app) if header["key"] == "picture")
    assert [(panel["title"], panel["subtitle"]) for panel in step["panels"]] == [
        ("masked_fill · head 3", "0.masked_fill  4 × 6 × 6"),
        ("softmax · head 3", "0.softmax  4 × 6 × 6"),
    ]
    assert pictures(app)["headlight_derivation"]["agrees"]


def test_one_place_is_looked_at_in_every_view():
    trace = headlight.load(recordings.EXAMPLE)
    place = {"stage": "layers.0.self_attn", "layer": "1"}
    app = open_app(source="recording", view="heads", watched_source="example", **place)
    app.segmented_control(key="view").set_value("step").run()
    shown = trace.stages[pictures(app)["headlight_stage_map"]["current"]]
    assert (shown.module, shown.operation) == ("layers.1.self_attn", "multi_head_attention_forward")
    tell(app, "stage_map", "stage", path="layers.0.linear2.linear")
    assert (link_of(app)["stage"], "layer" in link_of(app)) == ("layers.0.linear2.linear", False)
    app.segmented_control(key="view").set_value("heads").run()
    (picked,) = [field for field in app.selectbox if field.label == "Attention"]
    assert picked.value == "layers.0.self_attn"


def test_a_softmax_over_experts_has_no_heads(tmp_path):
    model = built("gpt_oss")
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(torch.tensor([[5, 9, 22]]))
    trace.save(tmp_path / "mine.headlight")
    file = {"watched_source": "path", "watched_path": str(tmp_path / "mine.headlight")}
    softmaxes = [path for path in trace.stages if path.endswith(".softmax")]
    for path in softmaxes:
        app = open_app(source="recording", view="step", stage=path, **file)
        has_way = any(button.key == "to_heads" for button in app.button)
        assert has_way == (".self_attn." in path)
    assert any(".router." in path for path in softmaxes)


class WithoutItself(nn.Module):
    """An attention whose mask leaves the first query no key, and gives that what its fill makes of it."""

    def __init__(self, fill):
        super().__init__()
        self.fill = fill

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1]).tril(-1).bool()
        weights = (x @ x.mT).masked_fill(~mask, self.fill).softmax(-1)
        return weights @ x


@pytest.mark.parametrize(
    ("fill", "dtype", "gained"),
    [
        (float("-inf"), torch.float32, "1.00"),
        (-1e9, torch.float32, "0.75"),
        (float("-inf"), torch.bfloat16, "1.00"),
    ],
)
def test_a_query_without_a_key_is_compared_with_another_mask(fill, dtype, gained, tmp_path):
    model = nn.Sequential(WithoutItself(fill))
    with headlight.watch(model, keep="all") as trace:
        model(torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(0)).to(dtype))
    trace.save(tmp_path / "mine.headlight", tokens=list("abcd"))
    file = {"watched_source": "path", "watched_path": str(tmp_path / "mine.headlight"), "query": "0"}
    app = open_app(source="recording", view="compare", **file)
    assert not app.exception
    assert f"It gave more to key 0 “a” (+{gained})" in said(app)
    app = open_app(source="recording", view="heads", chart="row", **file)
    assert ("No key is left, so every weight is NaN." in said(app)) == (fill < -1e9)


def test_an_attention_is_compared_with_another_mask():
    app = open_app(watched_source="example", watched_panel="compare")
    assert not app.exception
    sides = pictures(app)["headlight_compare_grids"]["sides"]
    assert (sides["a"]["title"], sides["b"]["title"]) == ("A · as recorded", "B · causal")
    assert "its inputs stay as recorded" in said(app)
    tell(app, "compare_grids", "shown", turned={"mask_b": ["causal", "sliding_window"]})
    assert link_of(app)["compare.mask_b"] == "causal,sliding_window"
    assert pictures(app)["headlight_compare_grids"]["sides"]["b"]["title"] == "B · causal and sliding window"
    assert not app.exception


def test_what_a_file_says_is_never_markup():
    trace = example_trace()
    path, stage = next((path, each) for path, each in trace.stages.items() if each.operation == "linear")
    hostile = "![x](https://example.org/x.png)"
    trace.stages[path] = replace(stage, operation=hostile, folded=(hostile,))
    found, *_ = checks(run_of_operations(WatchedRun(trace, "")), path)
    assert found.holds
    assert hostile not in found.text
    assert markdown_safe(hostile) in found.text


def start_with_recording(n_sequences, tmp_path, monkeypatch):
    """Start the app with a recording of every operation of a small model, and return its trace."""
    model = stacked(written_out(), n_layers=1)
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(torch.randn(n_sequences, 5, 16))
    trace.save(tmp_path / "mine.headlight")
    monkeypatch.setattr(sys, "argv", ["app.py", str(tmp_path / "mine.headlight")])
    return trace


def test_scores_of_a_head_are_no_equation_of_the_whole_projections(monkeypatch, tmp_path):
    trace = start_with_recording(1, tmp_path, monkeypatch)
    scores = next(path for path, stage in trace.stages.items() if stage.operation == "matmul")
    app = open_app(source="recording", view="step", watched_source="given", stage=scores, head="1")
    panels = next(header["panels"] for _, header in headers(app) if header["key"] == "picture")
    assert [panel["operator"] for panel in panels] == ["", ",", "→"]
    assert panels[-1]["title"] == "matmul · head 1"


def test_of_several_sequences_one_is_chosen_in_every_view(monkeypatch, tmp_path):
    start_with_recording(2, tmp_path, monkeypatch)
    for view in ("step", "way", "heads"):
        app = open_app(source="recording", view=view, watched_source="given", hidden="on")
        assert "batch" in [number.key for number in app.number_input]
        assert "covered while results are hidden" not in said(app)


def test_an_input_that_is_used_several_times_is_drawn_once():
    trace = example_trace()
    run = run_of_operations(WatchedRun(trace, ""))
    found = operands_of(run, "layers.0.self_attn.multi_head_attention_forward")
    assert [operand.source for operand in found][:2] == ["add", "layers.0.self_attn.in_proj_weight"]
    assert [operand.operator for operand in found] == ["", ",", ",", ","]


def long_run(n_queries: int = 600, n_keys: int = 700, far: int = 3) -> WatchedRun:
    """One attention of random weights, in which query 550 looks at key ``far`` above all."""
    with headlight.watch(nn.Identity(), keep="all") as trace:
        scores = torch.randn(1, 1, n_queries, n_keys, generator=torch.Generator().manual_seed(0))
        scores[..., 550, far] = 20.0
        query = torch.zeros(1, 1, n_queries, 4)
        torch.softmax(query @ torch.zeros(1, 1, 4, n_keys) + scores, -1) @ torch.zeros(1, 1, n_keys, 4)
    return WatchedRun(trace, "long")


def test_a_part_of_a_long_text_is_drawn_wherever_it_is_wanted():
    recorded = long_run()
    run = run_recording(recorded, recorded.trace[0], 0, (80, 9_999))
    drawn = run.trace["encoder.layers.0.self_attention.weights"]
    assert torch.equal(drawn.value[0, 0], recorded.trace[0].weights[0, 0, 80:592, 188:])
    assert run.repeat is None  # a part is not compared with another mask
    rows, columns = run.axes(drawn.path)
    assert (rows.labels[0], columns.labels[-1]) == ("80", "699")


def test_the_keys_of_a_recording_are_its_tokens_also_beside_a_sink():
    trace = example_trace()
    for place, attention in enumerate(trace):
        weights = torch.cat((attention.weights / 2, attention.weights.sum(-1, keepdim=True) / 2), -1)
        allowed = torch.nn.functional.pad(attention.allowed, (0, 1), value=True)
        shape = (*attention.shape[:3], attention.shape[3] + 1)
        trace._attentions[place] = replace(attention, weights=weights, allowed=allowed, shape=shape, sinks=1)
    run = run_recording(WatchedRun(trace, ""), trace[0], 0)
    path = next(iter(run.attentions))
    assert [axis.labels for axis in run.axes(f"{path}.weights")] == [TOKENS, TOKENS]
    assert run.mask_of(path).names == ("causal",)


def test_its_attentions_are_computed_again_under_another_mask():
    recorded = WatchedRun(example_trace(), "")
    run = run_recording(recorded, recorded.trace[0], 0)
    other = run.repeat(replace(run.settings, mask=("causal",)))
    for path, attention in run.attentions.items():
        scores = attention.query @ attention.key.mT * attention.scale
        expected = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf).softmax(-1)
        torch.testing.assert_close(other.trace[f"{path}.weights"].value, expected, atol=1e-6, rtol=0)
    assert {mask.names for mask in other.masks.values()} == {("causal",)}


def test_other_masks_elsewhere_change_nothing_in_a_recorded_attention():
    trace = example_trace()
    for place, attention in enumerate(trace):
        causal = torch.ones_like(attention.allowed).tril()
        allowed = causal if place else causal.triu(-1)
        scores = attention.query @ attention.key.mT * attention.scale
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
        trace._attentions[place] = replace(attention, allowed=allowed, weights=weights)
    a = run_recording(WatchedRun(trace, ""), trace[0], 0)
    b = a.repeat(replace(a.settings, mask=("causal",)))
    first, second, *_ = a.attentions
    assert has_same_mask(a, b, second)
    assert not has_same_mask(a, b, first)
    torch.testing.assert_close(a.trace[f"{second}.weights"].value, b.trace[f"{second}.weights"].value)
    assert "the same queries and keys: nothing differs here" in same_mask_note(a, b, second, "causal")


def test_the_window_is_in_the_link_and_the_largest_weight_beyond_it_is_said(monkeypatch, tmp_path):
    long_run().trace.save(tmp_path / "long.headlight")
    monkeypatch.setattr(sys, "argv", ["app.py", str(tmp_path / "long.headlight")])
    app = open_app(watched_source="given", watched_first_key="400", watched_first_query="88", query="462")
    assert not app.exception
    assert "Drawn: queries 88 to 599 of 600, keys 188 to 699 of 700." in said(app)
    assert "Query 550 gives its largest weight in head 0, 1.000, to key 3, which is not drawn." in said(app)
    app.button(key="watched_go_to_largest").click().run()
    assert "to key 3." in said(app)
    heads = pictures(app)["headlight_attention_heads"]
    assert heads["selected"] == [550 - 88, 3]
    assert "watched_first_key" not in link_of(app)


@pytest.mark.parametrize(
    "link", [{"watched_source": "given"}, {"watched_source": "path", "watched_path": str(recordings.EXAMPLE)}]
)
def test_a_large_file_is_opened_once_its_memory_was_seen(monkeypatch, link):
    monkeypatch.setattr(recordings, "ASKS_FROM", 1_000)
    monkeypatch.setattr(sys, "argv", ["app.py", str(recordings.EXAMPLE)])
    size = in_bytes(recordings.EXAMPLE.stat().st_size)
    app = open_app(**link)
    assert markdown_safe(f"Opening it takes up to {size} of memory.") in app.info[0].value
    assert "headlight_attention_heads" not in pictures(app)
    app.button(key="watched_open").click().run()
    assert not app.exception
    assert "headlight_attention_heads" in pictures(app)
    monkeypatch.setenv("HEADLIGHT_MEMORY_GB", "0.0001")
    with pytest.raises(ValueError, match=r"opening it takes up to 300\.0 MiB of memory; the limit is 98 KiB"):
        recordings.cost_of_opening("a.headlight", 100 * 2**20, 3)


def test_a_recording_stays_open_while_others_are_opened(tmp_path):
    files = [tmp_path / f"{number}.headlight" for number in range(4)]
    for file in files:
        file.write_bytes(recordings.EXAMPLE.read_bytes())
    opened = [recordings.opened_file(file, "")[0] for file in files]
    assert opened[0] is not None
    assert recordings.opened_file(files[0], "")[0] is opened[0]
