"""Every operation is a stage, and each can be computed again from the stages that it names as its inputs."""

import operator

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import headlight
from headlight.stages import value_of
from model.edits import only, zero
from tests.headlight.small_models import N_HEADS, WIDTH, TokenModel, causal, seeded, stacked, vectors, written_out
from tests.headlight.test_transformers_models import IDS, built


def watched(model, *args):
    """Everything of one pass, and its output."""
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        output = model(*args)
    return trace, output


def test_every_stage_of_real_models_is_computed_again_from_its_inputs():
    for family, least in (("gpt2", 40), ("llama", 60)):
        model = built(family)
        trace, output = watched(model, IDS)
        assert len(trace.stages) > least
        for path, stage in trace.stages.items():
            assert torch.equal(value_of(stage.node, trace.stages, trace.parameters), stage.value), path
        assert torch.equal(next(reversed(trace.stages.values())).value, output.logits)


def test_shapes_are_folded_and_inputs_are_named():
    model = seeded(lambda: TokenModel(stacked(written_out(lambda scores: scores.masked_fill(~causal(6), -1e9)))))
    trace, _ = watched(model, torch.tensor([[1, 2, 3, 4, 5, 6]]))
    stages = trace.stages
    assert next(iter(stages)) == "embedding.embedding"
    query = stages["body.0.query.linear"]
    assert query.inputs == ("embedding.embedding", "body.0.query.weight", "body.0.query.bias")
    scores = stages["body.0.matmul"]
    assert scores.inputs == ("body.0.query.linear", "body.0.key.linear")
    assert scores.folded == ("unflatten", "transpose", "unflatten", "transpose", "transpose")
    assert stages["body.0.softmax"].inputs == ("body.0.masked_fill",)
    assert torch.equal(stages["body.0.softmax"].value, trace["body.0"].weights)
    assert stages["body.0.add"].inputs == ("embedding.embedding", "body.0.matmul_2")
    assert not {stage.operation for stage in stages.values()} & {"unflatten", "transpose", "flatten"}


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.linear(x)
        y += 1
        y[:, 0] = 0
        return F.relu(y, inplace=True)


def test_what_is_written_over_keeps_its_value():
    model, x = seeded(InPlace), vectors()
    trace, output = watched(model, x)
    stages = trace.stages
    assert list(stages) == ["linear.linear", "add", "setitem", "relu"]
    torch.testing.assert_close(stages["linear.linear"].value, model.linear(x))
    torch.testing.assert_close(stages["add"].value, model.linear(x) + 1)
    assert torch.equal(stages["relu"].value, output)
    for stage in stages.values():
        assert torch.equal(value_of(stage.node, stages, trace.parameters), stage.value)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: (x[:, 0], x.add_(1))[0] * 2,  # through a view taken before
        lambda x: (x[:, :2].zero_(), x * 2)[1],  # through a view of what is read
        lambda x: (F.relu(x.view(-1, 3), inplace=True), x + 1)[1],
        lambda x: (x * 2, operator.isub(x, 1))[0],
        lambda x: operator.itruediv(x, 2) + 1,
        lambda x: (x.transpose(0, 1) * 2, x.add_(1))[0],  # an input from outside, before it is written over
    ],
)
@pytest.mark.parametrize("is_outside", [False, True])
def test_what_shares_memory_with_what_is_written_over_is_computed_again_as_it_was(compute, is_outside):
    class Writing(nn.Module):
        def forward(self, x):
            return compute(x if is_outside else x * 3)

    model, x = Writing(), torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(x)
    for stage in trace.stages.values():
        assert stage.value is not None, stage.path
        if stage.node is not None:
            assert torch.equal(value_of(stage.node, trace.stages, trace.parameters), stage.value), stage.path


def test_a_multi_head_attention_is_one_stage_and_layers_can_be_chosen():
    layer = seeded(lambda: nn.TransformerEncoderLayer(WIDTH, N_HEADS, 32, batch_first=True))
    model = seeded(lambda: nn.TransformerEncoder(layer, 2))
    trace, _ = watched(model, vectors())
    assert "layers.1.self_attn.multi_head_attention_forward" in trace.stages
    with headlight.watch(model, keep="all", layers=[1]) as part:
        model(vectors())
    assert {stage.module.partition(".layers")[0][:8] for stage in part.stages.values()} == {"layers.1"}
    with headlight.watch(model) as weights:
        model(vectors())
    assert weights.stages == {}


def test_what_pytorch_fuses_is_a_stage_from_which_the_next_ones_are_computed():
    layer = nn.TransformerEncoderLayer(WIDTH, N_HEADS, batch_first=True, dropout=0.0)
    model = seeded(lambda: nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(WIDTH, 3)))
    trace, output = watched(model, vectors())
    assert trace.stages["1.linear"].inputs == ("0.fused", "1.weight", "1.bias")
    for stage in (trace.stages["0.fused"], trace.stages["1.linear"]):
        assert torch.equal(value_of(stage.node, trace.stages, trace.parameters), stage.value)
    assert torch.equal(trace.stages["1.linear"].value, output)
    assert trace.parameters["1.weight"].data_ptr() == model[1].weight.data_ptr()


def edited(model, *args, **edits):
    """Everything of a pass with edits, at paths whose points are written as two underscores, and its output."""
    named = {path.replace("__", "."): edit for path, edit in edits.items()}
    with torch.no_grad(), headlight.watch(model, keep="all", edits=named) as trace:
        output = model(*args)
    return trace, output


def test_the_model_goes_on_with_what_an_edit_gives():
    def without_head_1(q, k, v):
        weights = (q @ k.mT / 2).softmax(-1)
        weights[:, 1] = 0
        return weights @ v

    attend = lambda q, k, v: (q @ k.mT / 2).softmax(-1) @ v  # noqa: E731
    trace, output = edited(stacked(attend, n_layers=1), vectors(), **{"0__softmax": only(zero, head=1)})
    torch.testing.assert_close(output, stacked(without_head_1, n_layers=1)(vectors()))
    assert not trace["0"].weights[:, 1].any()
    assert torch.equal(trace.stages["0.softmax"].value, trace["0"].weights)
    assert trace.notes == ("0.softmax was changed on purpose: the model went on with what stands there now.",)


@pytest.mark.parametrize("keep", ["shapes", "weights", "attentions"])
def test_with_an_edit_the_operations_of_its_module_are_kept(keep):
    model, x = stacked(lambda q, k, v: (q @ k.mT / 2).softmax(-1) @ v), vectors()
    every, expected = edited(model, x, **{"1__softmax": only(zero, head=1)})
    edits = {"1.softmax": only(zero, head=1)}
    with torch.no_grad(), headlight.watch(model, keep=keep, edits=edits) as trace:
        assert torch.equal(model(x), expected)
    assert list(trace.stages) == [path for path in every.stages if path.rpartition(".")[0] == "1"]
    assert torch.equal(trace.stages["1.softmax"].value, every.stages["1.softmax"].value)


def test_an_edit_of_what_is_written_over_and_one_of_several_outputs():
    model, x = seeded(InPlace), vectors()
    _, output = edited(model, x, add=lambda value: -2 * value)
    expected = -2 * (model.linear(x) + 1)
    expected[:, 0] = 0
    torch.testing.assert_close(output, F.relu(expected))

    layer = seeded(lambda: nn.TransformerEncoderLayer(WIDTH, N_HEADS, 32, batch_first=True))
    _, output = edited(layer, x, self_attn__multi_head_attention_forward=torch.zeros_like)
    hook = layer.self_attn.register_forward_hook(lambda module, given, out: (torch.zeros_like(x), None))
    with torch.no_grad():
        torch.testing.assert_close(output, layer(x))
    hook.remove()


def test_an_edit_has_to_fit():
    model = seeded(InPlace)
    with pytest.raises(
        ValueError, match=r"the edit of add gives torch.float32 \(1,\): it must be torch.float32 \("
    ):
        edited(model, vectors(), add=lambda value: value.new_zeros(1))
    with pytest.raises(ValueError, match=r"no stage .linear\.liner. was computed: did you mean .linear\.linear"):
        edited(model, vectors(), linear__liner=lambda value: 2 * value)
