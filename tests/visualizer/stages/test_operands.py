from dataclasses import replace

import pytest

from tests.visualizer.sample_runs import BASE, EDITED, VARIANTS, run_of
from visualizer.pictures.step import equation, place_in
from visualizer.runs.compute import compute_run
from visualizer.runs.paths import attention_modules
from visualizer.settings.settings import Selection
from visualizer.stages.registry import operands_of


@pytest.mark.parametrize("name", VARIANTS)
def test_inputs_are_computed_before_what_they_enter(name):
    run = run_of(name)
    trace = run.trace
    order = {path: i for i, path in enumerate(trace)}
    for path in trace:
        for operand in operands_of(run, path):
            if not operand.is_parameter:
                assert order[operand.source] < order[path], path


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "scores of the key alone"])
def test_every_stage_leads_to_the_end(name):
    """Walking back from the last stage reaches every stage, if only under another name for the same tensor."""
    run = run_of(name)
    trace = run.trace
    reached, waiting = set(), [list(trace)[-1]]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += [operand.source for operand in operands_of(run, path) if not operand.is_parameter]
    tensors = {id(trace[path].value) for path in reached}
    assert not [path for path, stage in trace.items() if id(stage.value) not in tensors]


@pytest.mark.parametrize("score", ["score - slope(h) * (q - k)", "score * tanh(score)", "1 if k <= q else score"])
def test_scores_that_an_expression_changes_are_a_function_of_the_scores(score):
    run = compute_run(replace(VARIANTS["encoder"], score=score))
    (operand,) = operands_of(run, "encoder.layers.0.self_attention.modified_scores")
    assert (operand.source, operand.operator) == ("encoder.layers.0.self_attention.scaled_scores", "")


def test_scores_that_are_not_in_the_expression_are_no_input_of_it():
    module = "encoder.layers.0.self_attention"
    assert not operands_of(run_of("scores of the key alone"), f"{module}.modified_scores")


@pytest.mark.parametrize(
    ("changes", "stage", "operators"),
    [
        ({}, "scores", ["", "×", "="]),
        ({}, "masked_scores", ["", "where", "="]),
        (EDITED["scores"], "scores", ["", ",", "→"]),
        (EDITED["weights"], "context", ["", "×", "="]),
    ],
)
def test_a_sign_stands_where_the_numbers_make_it_true(changes, stage, operators):
    run = compute_run(replace(BASE, **changes)).alone()
    place = place_in(run, replace(Selection(), stage=f"encoder.self_attention.{stage}", layer=0))
    assert [panel.operator for panel in equation(run, place).panels] == operators


def test_a_residual_adds_the_sublayer_to_the_stream():
    run = run_of("pre-norm")
    assert [operand.source for operand in operands_of(run, "encoder.layers.1.residual1")] == [
        "encoder.layers.0.residual2",
        "encoder.layers.1.self_attention.output",
    ]
    run = run_of("encoder")
    assert [operand.source for operand in operands_of(run, "encoder.layers.1.residual2")] == [
        "encoder.layers.1.norm1",
        "encoder.layers.1.feed_forward.output",
    ]


def test_cross_attention_takes_its_keys_from_the_encoder():
    run = run_of("encoder-decoder")
    module = "decoder.layers.1.cross_attention"
    assert operands_of(run, f"{module}.key_input")[0].source == "encoder.layers.1.norm2"
    assert operands_of(run, f"{module}.query_input")[0].source == "decoder.layers.1.norm1"


def test_attentions_come_in_the_order_computed():
    assert attention_modules(run_of("encoder-decoder").trace) == (
        "encoder.layers.0.self_attention",
        "encoder.layers.1.self_attention",
        "decoder.layers.0.self_attention",
        "decoder.layers.0.cross_attention",
        "decoder.layers.1.self_attention",
        "decoder.layers.1.cross_attention",
    )


def test_another_text_has_the_same_structure_and_another_width_has_not():
    run = run_of("fused q, k, v")
    assert compute_run(replace(run.settings, text="quite other words")).structure == run.structure
    assert compute_run(replace(run.settings, head_dim=6)).structure != run.structure
    assert run_of("dropout").structure != run_of("encoder").structure


def test_a_model_with_a_bias_has_another_structure_than_one_without():
    with_bias, without = run_of("encoder"), run_of("no bias of q, k, v")
    path = "encoder.layers.0.self_attention.q_proj"
    assert [operand.source for operand in operands_of(with_bias, path)][-1].endswith("w_q.bias")
    assert not any(operand.source.endswith("bias") for operand in operands_of(without, path))
    assert with_bias.structure != without.structure
