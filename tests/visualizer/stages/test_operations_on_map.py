"""The map of a model that is not ours: the layers, the blocks and the residual stream of what was watched."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import headlight
from tests.headlight.test_transformers_models import built
from visualizer.components.stage_map.model_map import INPUT, Layer, ModelMap, model_map
from visualizer.runs.operations_run import run_of_operations
from visualizer.runs.watched import WatchedRun
from visualizer.stages.registry import on_map

IDS = torch.tensor([[5, 9, 22]])


def map_of(model: nn.Module, *inputs: Tensor, **named: Tensor) -> ModelMap:
    """The map of a pass; every stage is on it once, in the order computed."""
    with torch.no_grad(), headlight.watch(model.eval(), keep="all") as trace:
        model(*inputs, **named)
    stages = on_map(run_of_operations(WatchedRun(trace, "")))
    model_on_map = model_map(stages)
    assert model_on_map.paths == tuple(stage.path for stage in stages)
    assert set(model_on_map.paths) == {*trace.stages, *trace.patterns}
    ids = [block.id for block in model_on_map.blocks]
    assert len(set(ids)) == len(ids)
    return model_on_map


def residuals(layer: Layer) -> list[tuple[str, str]]:
    names = {block.id: block.label for block in layer.blocks}
    return [(names.get(start, start), names[end]) for start, end in layer.residuals]


def labels(layer: Layer) -> list[str]:
    return [block.label for block in layer.blocks]


def test_a_decoder_with_norms_first():
    model = map_of(built("llama"), IDS)
    (track,) = model.tracks
    assert track.inputs.stages[0].title == "embed_tokens · embedding"
    assert (track.title, track.end.label, model.output.stages[-1].title) == ("", "norm", "lm_head · linear")
    for number, layer in enumerate(track.layers):
        assert layer.label == f"layer {number}"
        assert labels(layer) == ["input layernorm", "self attn", "add", "post attention layernorm", "mlp", "add"]
        assert residuals(layer) == [(INPUT, "add"), ("add", "add")]
    attention, network = (track.layers[0].blocks[place] for place in (1, 4))
    assert (attention.telling.title, attention.role) == ("scaled_dot_product_attention", "weights")
    assert (network.telling.title, network.role) == ("Gated feed-forward", "feed_forward")
    assert "q_proj · linear" in [stage.title for stage in attention.stages]


def test_norms_after_the_sums():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    (track,) = map_of(encoder, torch.randn(1, 3, 16)).tracks
    assert residuals(track.layers[1]) == [(INPUT, "add"), ("norm1", "add")]


@pytest.mark.parametrize(("family", "attention"), [("t5", "EncDecAttention"), ("bart", "encoder attn")])
def test_an_encoder_feeds_what_reads_it(family, attention):
    model = map_of(built(family), IDS, decoder_input_ids=IDS)
    encoder, decoder = model.tracks
    assert (encoder.title, decoder.title) == ("Encoder", "Decoder")
    blocks = {block.id: block for block in model.blocks}
    assert [(blocks[start], blocks[end].label) for start, end in model.links] == [
        (encoder.blocks[-1], attention) for _ in decoder.layers
    ]
    assert len(decoder.layers) == 2
    assert len(residuals(decoder.layers[0])) == labels(decoder.layers[0]).count("add") == 3


def test_attention_and_feed_forward_side_by_side():
    layer = map_of(built("gptj"), IDS).tracks[0].layers[0]
    assert residuals(layer) == [("attn", "add"), (INPUT, "add")]
    (network,) = (block for block in layer.blocks if block.label == "mlp")
    assert network.is_apart


class Alone(nn.Module):
    """One attention with an added mask, and a network that is called twice: no layers."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        self.network = nn.Sequential(nn.Linear(8, 8), nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.full((3, 3), -torch.inf).triu(1)
        scores = self.query(x) @ self.key(x).mT * 3 + mask
        x = x + scores.softmax(-1) @ self.value(x)
        return self.network(self.network(x).cos())


def test_a_model_without_layers_is_one_row():
    (track,) = map_of(Alone(), torch.randn(2, 3, 8)).tracks
    (layer,) = track.layers
    assert (layer.label, track.inputs, track.end) == ("", None, None)
    assert [label for label in labels(layer) if label == "network"] == ["network", "network"]
    assert labels(layer).count("add") == 1, "a mask that is added is part of the softmax"
    (attention,) = (block for block in layer.blocks if block.role == "weights")
    assert attention.label == "Softmax with its mask"


def test_names_are_shown_as_they_are():
    model = nn.Sequential()
    model.add_module("a\u202eb", nn.MultiheadAttention(8, 2, batch_first=True))

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = model

        def forward(self, x: Tensor) -> Tensor:
            return model[0](x, x, x)[0]

    drawn = map_of(Around(), torch.randn(1, 3, 8))
    assert not any("\u202e" in text for block in drawn.blocks for text in (block.label, block.telling.title))
