from dataclasses import replace

import pytest
import torch

from model import MASKS
from model.worked_examples import WORKED_EXAMPLES as EXAMPLES
from tests.visualizer.runs import BASE, VARIANTS, run_of
from visualizer.limits import estimate_run
from visualizer.run import compute_run, with_layer
from visualizer.settings import MASK_NAMES, WORKED_EXAMPLES, Settings


def test_the_settings_offer_what_the_model_has():
    assert tuple(MASKS) == MASK_NAMES
    assert set(EXAMPLES) == set(WORKED_EXAMPLES)


@pytest.mark.parametrize("name", VARIANTS)
def test_equal_settings_give_equal_runs(name):
    first, second = run_of(name), compute_run(VARIANTS[name])
    assert list(first.trace) == list(second.trace)
    for path, stage in first.trace.items():
        assert torch.equal(stage.value, second.trace[path].value), path


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
    assert estimate_run(settings) == pytest.approx(sum(storages.values()), rel=0.25)


def test_twelve_layers_of_twelve_heads_at_512_tokens_are_allowed():
    settings = Settings(text="word " * 512, n_layers=12, n_heads=12, d_model=96)
    assert estimate_run(settings) < 2**30
