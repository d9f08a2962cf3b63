"""The inputs of a stage: every recorded expression, computed again, gives the stage bit by bit."""

from __future__ import annotations

import pytest
import torch

from model import record, seed_dropout
from model.dataflow import (
    Constant,
    Operation,
    ParameterInput,
    StageInput,
    evaluate,
    inputs_of,
    operations_of,
    parameters_of,
    record_dataflow,
)
from model.tracing import TracedModule
from tests.model.builders import ARCHITECTURES, small_inputs, small_masks, small_transformer


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_every_expression_gives_its_stage(architecture, norm, masked, training):
    model = small_transformer(architecture, norm=norm, dropout=0.3, activation="gelu")
    model.train(training)
    inputs, masks = small_inputs(architecture), small_masks(architecture) if masked else {}

    def run():
        seed_dropout(model, 0)
        return model(*inputs, **masks)

    flow = record_dataflow(model, run)
    with torch.no_grad(), record(model) as trace:
        run()
    assert list(flow) == list(trace)
    for path, node in flow.items():
        assert torch.equal(evaluate(node, trace, parameters_of(model)), trace[path].value), path


def test_what_an_attention_is_computed_from():
    model = small_transformer("encoder", norm="post")
    ids, masks = small_inputs(), small_masks()
    flow = record_dataflow(model, lambda: model(*ids, **masks))
    attention = "encoder.layers.1.self_attention"

    def inputs(name):
        return list(inputs_of(flow[f"{attention}.{name}"]))

    def stages(*names):
        return [StageInput(f"{attention}.{name}") for name in names]

    assert flow[f"{attention}.key_input"] == StageInput("encoder.layers.0.norm2")
    assert inputs("k_proj") == [
        *stages("key_input"),
        ParameterInput(f"{attention}.w_k.weight"),
        ParameterInput(f"{attention}.w_k.bias"),
    ]
    assert flow[f"{attention}.scores"] == Operation(
        "matmul", (stages("q")[0], Operation("mT", tuple(stages("k")), print)), print
    )
    assert isinstance(flow[f"{attention}.mask"].inputs[0], Constant)
    assert inputs("masked_scores") == stages("scaled_scores", "mask")
    assert inputs("weights") == stages("masked_scores", "mask")
    assert list(operations_of(flow[f"{attention}.concat"])) == ["transpose", "flatten"]


def test_a_parameter_that_two_parts_share_has_the_name_of_the_part_that_uses_it():
    model = small_transformer("encoder-decoder", tied_embeddings=True)
    flow = record_dataflow(model, lambda: model(*small_inputs("encoder-decoder")))

    def parameters(path):
        return [part.name for part in inputs_of(flow[path]) if isinstance(part, ParameterInput)]

    assert parameters("encoder.inputs.embedding") == ["encoder.inputs.tokens.weight"]
    assert parameters("decoder.inputs.embedding") == ["decoder.inputs.tokens.weight"]
    assert parameters("logits") == ["unembedding.weight"]


class Toy(TracedModule):
    """One stage from two tensors of which only one gives its numbers."""

    def forward(self, x, other):
        x = self.tap("x", x, "T")
        return self.tap("y", (x + 1).expand_as(other) * 2.0, "B T")


def test_a_tensor_that_gives_its_shape_alone_is_no_input():
    model = Toy()
    x, other = torch.arange(3.0), torch.zeros(2, 3)
    flow = record_dataflow(model, lambda: model(x, other))
    assert isinstance(flow["x"], Constant)
    assert list(inputs_of(flow["y"])) == [StageInput("x")]
    assert list(operations_of(flow["y"])) == ["add", "expand_as", "mul"]
    with record(model) as trace:
        model(x, other)
    assert torch.equal(evaluate(flow["y"], trace, parameters_of(model)), trace["y"].value)


@pytest.mark.parametrize("architecture", ["encoder", "encoder-decoder"])
def test_a_module_that_asks_whether_its_inputs_are_one_tensor_computes_what_it_always_does(architecture):
    model = small_transformer(architecture, fused_qkv=True).eval()
    inputs = small_inputs(architecture)
    flow = record_dataflow(model, lambda: model(*inputs))
    with torch.no_grad(), record(model) as trace:
        model(*inputs)
    assert list(flow) == list(trace)
    for path, node in flow.items():
        assert torch.equal(evaluate(node, trace, parameters_of(model)), trace[path].value), path
    names = {part.name for node in flow.values() for part in inputs_of(node) if isinstance(part, ParameterInput)}
    assert f"{architecture.rpartition('-')[2]}.layers.0.self_attention.w_qkv.weight" in names


class Parts(TracedModule):
    """A tensor cut into two, and one that is written into."""

    def forward(self, x):
        left, right = self.tap("x", x, "T").chunk(2)
        table = torch.zeros(2)
        table[1:] = right[1:]
        return self.tap("y", right - left, "H"), self.tap("table", table, "H"), self.tap("again", x, "T")


def test_parts_are_followed_and_what_is_written_into_is_not():
    model, x = Parts(), torch.arange(4.0)
    flow = record_dataflow(model, lambda: model(x))
    assert list(operations_of(flow["y"])) == ["chunk", "chunk", "sub"]
    assert list(inputs_of(flow["y"])) == [StageInput("x"), StageInput("x")]
    assert isinstance(flow["table"], Constant)
    assert flow["again"] == StageInput("x"), "the very tensor that came from outside"
    with record(model) as trace:
        model(x)
    assert all(
        torch.equal(evaluate(node, trace, parameters_of(model)), trace[path].value) for path, node in flow.items()
    )
