from dataclasses import replace

import pytest
import torch

from headlight.origins import UNKNOWN
from headlight.roles import is_of_decoder, roles_of
from model import MASKS
from model.sources.worked_examples import WORKED_EXAMPLES as EXAMPLES
from tests.visualizer.sample_runs import BASE, VARIANTS, run_of
from visualizer.masks import MASK_NAMES
from visualizer.runs import built_model, tokens
from visualizer.runs.compute import compute_run
from visualizer.runs.paths import attention_modules, with_layer
from visualizer.runs.prepare import prepare
from visualizer.runs.run import sequence_at
from visualizer.runs.tokens import tokenize
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings
from visualizer.settings.trained_models import TRAINED_MODELS
from visualizer.stages.head_measures import measure_heads


def test_the_settings_offer_what_the_model_has():
    assert tuple(MASKS) == MASK_NAMES
    assert set(EXAMPLES) == set(WORKED_EXAMPLES)


@pytest.mark.parametrize("name", VARIANTS)
def test_equal_settings_give_equal_runs(name):
    first, second = run_of(name), compute_run(VARIANTS[name])
    assert list(first.trace) == list(second.trace)
    for path, stage in first.trace.items():
        assert torch.equal(stage.value, second.trace[path].value), path


def test_runs_that_differ_in_their_masks_share_a_model_and_are_as_with_one_of_their_own(monkeypatch):
    first, second = compute_run(BASE), compute_run(replace(BASE, mask=("custom",), custom="k <= q"))
    assert second.model is first.model
    assert compute_run(replace(BASE, dropout=0.1)).model is not compute_run(replace(BASE, dropout=0.1)).model
    for change in ({"seed": 1}, {"score": "score / 2"}, {"n_heads": 2}):
        other = compute_run(replace(BASE, **change))
        assert other.model is not first.model
    monkeypatch.setattr(built_model, "_MODELS", {})
    for run in (first, second, other):
        alone = compute_run(run.settings)
        assert alone.model is not run.model
        assert all(torch.equal(stage.value, alone.trace[path].value) for path, stage in run.trace.items())


@pytest.mark.parametrize("name", [*VARIANTS, *WORKED_EXAMPLES])
def test_every_axis_has_one_label_per_place(name):
    run = run_of(name)
    for path, stage in run.trace.items():
        rows, columns = run.axes(path)
        assert (len(rows.labels), len(columns.labels)) == stage.value.shape[-2:], path


def test_keys_of_cross_attention_are_source_tokens():
    run = run_of("encoder-decoder")
    queries, keys = run.axes("decoder.layers.0.cross_attention.weights")
    assert (queries.sequence, keys.sequence) == ("target", "source")
    queries, keys = run.axes("decoder.layers.0.self_attention.weights")
    assert (queries.sequence, keys.sequence) == ("target", "target")


def test_beside_a_decoder_the_encoder_is_masked_by_padding_alone():
    run = run_of("encoder-decoder")
    assert run.masks["encoder.layers.0.self_attention"].names == ("padding",)
    assert run.masks["decoder.layers.1.self_attention"].names == ("causal", "padding")
    assert run.masks["decoder.layers.0.cross_attention"].names == ("padding",)


def test_a_run_that_cannot_be_computed_says_why():
    with pytest.raises(ValueError, match="type at least one word"):
        compute_run(replace(BASE, text="   "))


def test_a_stage_is_found_again_in_another_model():
    trace = run_of("decoder").trace
    assert with_layer(trace, "encoder.self_attention.weights", 1) == "decoder.layers.1.self_attention.weights"
    assert with_layer(trace, "decoder.self_attention.weights", 9) == "decoder.layers.1.self_attention.weights"
    assert with_layer(run_of("one_head").trace, "encoder.self_attention.weights", 0).endswith(".weights")
    assert with_layer(trace, "nonsense", 0) == "decoder.layers.0.self_attention.weights"
    assert with_layer(run_of("feed_forward").trace, "nonsense", 0) == "feed_forward.input"


@pytest.mark.parametrize("name", VARIANTS)
def test_memory_is_estimated_before_it_is_used(name):
    """The estimate is within a quarter of what the weights and the trace really hold."""
    settings = replace(VARIANTS[name], text="word " * 60, n_layers=3)
    run = compute_run(settings)
    tensors = [*run.model.parameters(), *run.model.buffers(), *(stage.value for stage in run.trace.values())]
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    assert prepare(settings).n_bytes == pytest.approx(sum(storages.values()), rel=0.25)


def test_twelve_layers_of_twelve_heads_at_512_tokens_are_allowed():
    settings = Settings(text="word " * 512, n_layers=12, n_heads=12, d_model=96)
    assert prepare(settings).n_bytes < 2**30


@pytest.mark.parametrize("architecture", ["encoder", "encoder-decoder"])
def test_only_a_text_that_needs_them_has_more_positions(architecture):
    """Hand-built heads are made for as many positions as there are, so that texts of up to 512 keep theirs."""
    tiny = Settings(architecture=architecture, n_heads=1, n_layers=1, d_model=8, d_ff=1, target="a")
    lengths = [compute_run(replace(tiny, text="a " * n_tokens)).model.config.max_len for n_tokens in (512, 513)]
    assert lengths == [512, 1024]


LEFT_PADDED = [
    ("random", {}),
    ("random", {"positions": "learned"}),
    ("hand_built", {"d_model": 32, "norm": "pre"}),
]


@pytest.mark.parametrize("architecture", ["encoder", "decoder", "encoder-decoder"])
@pytest.mark.parametrize(("weights", "choices"), LEFT_PADDED)
def test_masked_padding_on_the_left_changes_no_number_of_the_text(architecture, weights, choices):
    settings = replace(BASE, architecture=architecture, weights=weights, pad=0, **choices)
    assert logits_difference(settings, replace(settings, pad=3, pad_side="left")) < 1e-4
    assert logits_difference(settings, replace(settings, pad=3, pad_side="right")) < 1e-4
    wrong = replace(settings, pad=3, pad_side="left", fault="padding_counted")
    assert logits_difference(settings, wrong) > 0.05


@pytest.mark.parametrize("task", ["reverse", "repeat_block", "match_brackets"])
def test_a_trained_model_answers_the_same_with_padding_on_the_left(task):
    trained = TRAINED_MODELS[task]
    masks = trained.masks(is_padded=True)
    settings = fitted(Settings(weights="trained", task=task, text=trained.example, mask=masks))
    for n_pads in (1, 9):
        padded = replace(settings, pad=n_pads, pad_side="left")
        assert logits_difference(settings, padded) < 1e-3
    assert logits_difference(settings, replace(padded, fault="padding_counted")) > 0.5


def logits_difference(settings, padded):
    """The largest difference between the logits of the tokens that are no padding."""
    found = []
    for run in (compute_run(settings), compute_run(padded)):
        written = run.tokens["target" if "target" in run.tokens else "source"]
        found.append(run.trace["logits"].value[0, ~torch.tensor(written.is_padding)])
    return (found[0] - found[1]).abs().max()


def test_a_row_after_padding_knows_its_position():
    run = compute_run(replace(BASE, pad=2, pad_side="left"))
    path = "encoder.inputs.positional_encoding"
    assert run.trace[path].shape_text == "(B T D) = (1, 7, 16)"
    assert [run.position(path, row, 0) for row in range(7)] == [0, 0, 0, 1, 2, 3, 4]
    assert compute_run(BASE).trace[path].shape_text == "(T D) = (7, 16)"


def test_each_line_is_cut_into_tokens_once(monkeypatch):
    cut = []
    monkeypatch.setattr(tokens, "tokenize", lambda line, kind: cut.append(line) or tokenize(line, kind))
    compute_run(
        Settings(architecture="encoder-decoder", text="a b\nc", target="d\ne f", mask=("custom",), custom="k <")
    )
    assert cut == ["a b", "c", "d", "e f"]


def test_what_cannot_be_read_of_the_painting_is_left_out_and_said():
    prepared = prepare(Settings(mask=("custom",), custom="k <"))
    assert prepared.settings.custom == ""
    assert len(prepared.complaints) == 1
    assert compute_run(Settings(mask=("custom",), custom="k <")).complaints == prepared.complaints


def test_what_is_computed_of_a_run_is_kept_with_it():
    run = compute_run(Settings(text="a b\nc", mask=("causal", "padding"), n_layers=1))
    assert run.at(0) is run
    assert run.at(1) is run.at(1)
    assert run.at(1).alone() is run.at(1).alone() is not run.alone()
    modules = attention_modules(run.trace)
    assert measure_heads(run, modules) is measure_heads(run, modules)
    assert measure_heads(run.alone(), modules) != measure_heads(run.at(1).alone(), modules)


@pytest.mark.parametrize(("module", "stack"), [
    ("encoder.layers.0.self_attn", "source"), ("model.encoder.layers.0.self_attn", "source"),
    ("text_encoder.layers.0.self_attn", "source"), ("decoder.block.0.layer.0.SelfAttention", "target"),
    ("text_decoder.layers.0.self_attn", "target"), ("text_decoder.layers.0.encoder_attn", "target"),
])  # fmt: skip
def test_a_module_of_either_stack_is_known_by_its_path(module, stack):
    assert sequence_at(module, {"source", "target"}) == stack
    assert is_of_decoder(module) is (stack == "target")
    assert sequence_at(module, {"source"}) == "source"


@pytest.mark.parametrize(("module", "crosses"), [
    ("decoder.block.0.layer.1.EncDecAttention", True), ("decoder.layers.0.encoder_attn", True),
    ("decoder.layers.0.multihead_attn", True), ("decoder.layers.0.src_attn", True),
    ("decoder.layer_stack.0.enc_attn.attention", True), ("decoder.layers.0.enc_dec_attention.softmax", True),
    ("decoder.layers.0.self_attn", False), ("encoder.layers.0.self_attention.attention", False),
    ("text_encoder.layers.0.attention", False), ("encoder_decoder.layers.0.self_attn", False),
])  # fmt: skip
def test_a_cross_attention_is_known_by_its_name(module, crosses):
    paths = {"decoder.layers.0.self_attn", module}
    assert (roles_of([module], [UNKNOWN], paths) == ["cross"]) is crosses


@pytest.mark.parametrize("name", ["query_input", "key_input"])
def test_an_edited_input_makes_no_cross_attention_of_a_self_attention(name):
    module = "decoder.layers.0.self_attention"
    run = compute_run(replace(BASE, architecture="encoder-decoder", edits=f"{module}.{name}-mean"))
    assert not run.is_cross_attention(module)
    assert run.is_cross_attention("decoder.layers.0.cross_attention")
    assert {axis.sequence for axis in run.axes(f"{module}.weights")} == {"target"}
