import pytest

from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.runs.paths import attention_modules
from visualizer.stages.dataflow import operands


@pytest.mark.parametrize("name", VARIANTS)
def test_inputs_are_computed_before_what_they_enter(name):
    trace = run_of(name).trace
    order = {path: i for i, path in enumerate(trace)}
    for path in trace:
        for operand in operands(trace, path):
            if not operand.is_parameter:
                assert order[operand.source] < order[path], path


@pytest.mark.parametrize("name", VARIANTS)
def test_every_stage_leads_to_the_end(name):
    """Walking back from the probabilities reaches every stage, if only under another name for the same tensor."""
    trace = run_of(name).trace
    reached, waiting = set(), ["probabilities"]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += [operand.source for operand in operands(trace, path) if not operand.is_parameter]
    tensors = {id(trace[path].value) for path in reached}
    assert not [path for path, stage in trace.items() if id(stage.value) not in tensors]


def test_a_residual_adds_the_sublayer_to_the_stream():
    trace = run_of("pre-norm").trace
    assert [operand.source for operand in operands(trace, "encoder.layers.1.residual1")] == [
        "encoder.layers.0.residual2",
        "encoder.layers.1.self_attention.output",
    ]
    trace = run_of("encoder").trace
    assert [operand.source for operand in operands(trace, "encoder.layers.1.residual2")] == [
        "encoder.layers.1.norm1",
        "encoder.layers.1.feed_forward.output",
    ]


def test_cross_attention_takes_its_keys_from_the_encoder():
    trace = run_of("encoder-decoder").trace
    module = "decoder.layers.1.cross_attention"
    assert operands(trace, f"{module}.key_input")[0].source == "encoder.layers.1.norm2"
    assert operands(trace, f"{module}.query_input")[0].source == "decoder.layers.1.norm1"


def test_attentions_come_in_the_order_computed():
    assert attention_modules(run_of("encoder-decoder").trace) == (
        "encoder.layers.0.self_attention",
        "encoder.layers.1.self_attention",
        "decoder.layers.0.self_attention",
        "decoder.layers.0.cross_attention",
        "decoder.layers.1.self_attention",
        "decoder.layers.1.cross_attention",
    )
