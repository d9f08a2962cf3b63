"""The map of the model, read off trace paths."""

from collections.abc import Sequence
from itertools import chain

import pytest
import torch

from model import (
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    TransformerConfig,
    record,
)
from model.sources.worked_examples import WORKED_EXAMPLES
from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.components.packing import header_of
from visualizer.components.stage_map.element import packed_map, parse_stage
from visualizer.components.stage_map.model_map import INPUT, Block, Layer, ModelMap, model_map
from visualizer.components.stage_map.stage_places import StageRef
from visualizer.stages.entry import StageEntry, beside
from visualizer.stages.registry import ENTRIES, entry_of, on_map

ATTENTION = [
    *("query_input", "key_input", "value_input", "q_proj", "k_proj", "v_proj", "q", "k", "v", "scores"),
    *("scaled_scores", "mask", "masked_scores", "weights", "context", "concat", "output"),
]
FEED_FORWARD = ["hidden", "activation", "output"]
INPUTS = ["embedding", "scaled_embedding", "positional_encoding", "embedded"]


def mapped(paths: Sequence[str]) -> ModelMap:
    """The map of stages of which only the paths are made up; what else it shows of them is the registry's."""
    return model_map([named(path, paths) for path in paths])


def named(path: str, paths: Sequence[str]) -> StageRef:
    """A stage as the part of the model that has one of its name describes it."""
    name = path.rpartition(".")[2]
    of_network = beside(path, "hidden") in paths
    sources = ["model/feed_forward.py"] if of_network else ENTRIES
    every = chain.from_iterable(ENTRIES[source] for source in sources)
    entry = next((entry for entry in every if entry.name == name.rstrip("123")), StageEntry(name, name))
    return StageRef(path, name, entry.role, "", entry.block, entry.is_telling)


def attention(prefix: str) -> list[str]:
    return [f"{prefix}.{stage}" for stage in ATTENTION]


def feed_forward(prefix: str) -> list[str]:
    return [f"{prefix}.feed_forward.{stage}" for stage in FEED_FORWARD]


def layer_paths(prefix: str, *, cross: bool, pre_norm: bool) -> list[str]:
    """The stages of one layer in computing order."""
    sublayers = [attention(f"{prefix}.self_attention")]
    if cross:
        sublayers.append(attention(f"{prefix}.cross_attention"))
    sublayers.append(feed_forward(prefix))
    paths = []
    for number, sublayer in enumerate(sublayers, 1):
        norm, residual = f"{prefix}.norm{number}", f"{prefix}.residual{number}"
        paths += [norm, *sublayer, residual] if pre_norm else [*sublayer, residual, norm]
    return paths


def model_paths(architecture: str, n_layers: int, *, pre_norm: bool = False) -> list[str]:
    """The stages of a whole model in computing order."""
    paths = []
    for track in ("encoder", "decoder"):
        if track not in architecture:
            continue
        cross = track == "decoder" and architecture == "encoder-decoder"
        paths += [f"{track}.inputs.{stage}" for stage in INPUTS]
        for layer in range(n_layers):
            paths += layer_paths(f"{track}.layers.{layer}", cross=cross, pre_norm=pre_norm)
        if pre_norm:
            paths.append(f"{track}.norm")
    return [*paths, "logits", "probabilities"]


def labels(layer: Layer) -> list[str]:
    return [block.label for block in layer.blocks]


def named_residuals(layer: Layer) -> list[tuple[str, str]]:
    """Residuals by the position of their blocks in the layer."""
    position = {block.id: f"{index} {block.label}" for index, block in enumerate(layer.blocks)}
    return [(position.get(start, start), position[end]) for start, end in layer.residuals]


@pytest.mark.parametrize("architecture", ["encoder", "decoder", "encoder-decoder"])
@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("n_layers", [1, 2, 12])
def test_every_stage_is_on_the_map_in_computing_order(architecture, pre_norm, n_layers):
    paths = model_paths(architecture, n_layers, pre_norm=pre_norm)
    assert list(mapped(paths).paths) == paths


@pytest.mark.parametrize("variant", [*VARIANTS, *WORKED_EXAMPLES])
def test_previous_and_next_walk_in_the_order_of_the_trace(variant):
    run = run_of(variant)
    assert list(model_map(on_map(run)).paths) == list(run.trace)


@pytest.mark.parametrize("variant", [*VARIANTS, *WORKED_EXAMPLES])
def test_a_stage_has_the_colour_role_of_its_explanation(variant):
    run = run_of(variant)
    stages = [stage for block in model_map(on_map(run)).blocks for stage in block.stages]
    roles = {path: stage.role for stage in stages for path in (stage.path, *stage.also)}
    assert roles == {path: entry_of(run, path).role for path in run.trace}


def test_inputs_of_an_attention_that_are_one_tensor_are_one_stage_with_a_plain_title():
    stages = {stage.path: stage for stage in on_map(run_of("encoder-decoder"))}
    own = stages["encoder.layers.0.self_attention.query_input"]
    assert own.title == "Input"
    assert own.label == "query_input = key_input = value_input"
    assert "encoder.layers.0.self_attention.key_input" not in stages
    queries, memory = (stages[f"decoder.layers.0.cross_attention.{name}_input"] for name in ("query", "key"))
    assert (queries.title, queries.also) == ("Input of the queries", ())
    assert (memory.title, memory.label) == ("Input of keys and values", "key_input = value_input")
    assert stages["encoder.layers.0.self_attention.weights"].title == "Attention weights"
    model = header_of(packed_map(model_map(tuple(stages.values()))))["model"]
    shown = model["tracks"][0]["layers"][0]["blocks"][0]["stages"][0]
    assert shown[-1] == [own.path.replace("query", name) for name in ("key", "value")]


def test_dropout_is_among_the_runs():
    names = {stage.name for stage in run_of("dropout").trace.values()}
    assert {"dropped_weights", "dropped_activation"} <= names


def test_post_norm_layer():
    (track,) = mapped(model_paths("encoder", 2)).tracks
    assert [layer.label for layer in track.layers] == ["layer 0", "layer 1"]
    for layer in track.layers:
        assert labels(layer) == ["self-attention", "add & norm", "feed-forward", "add & norm"]
        assert named_residuals(layer) == [(INPUT, "1 add & norm"), ("1 add & norm", "3 add & norm")]
    assert track.end is None


def test_pre_norm_layer():
    (track,) = mapped(model_paths("decoder", 1, pre_norm=True)).tracks
    (layer,) = track.layers
    assert labels(layer) == ["norm", "self-attention", "add", "norm", "feed-forward", "add"]
    assert named_residuals(layer) == [(INPUT, "2 add"), ("2 add", "5 add")]
    assert track.end is not None
    assert (track.end.id, track.end.label) == ("decoder.norm", "norm")


def test_post_norm_decoder_layer_with_cross_attention():
    layer = mapped(model_paths("encoder-decoder", 1)).tracks[1].layers[0]
    assert labels(layer) == [
        "self-attention",
        "add & norm",
        "cross-attention",
        "add & norm",
        "feed-forward",
        "add & norm",
    ]
    assert named_residuals(layer) == [
        (INPUT, "1 add & norm"),
        ("1 add & norm", "3 add & norm"),
        ("3 add & norm", "5 add & norm"),
    ]


def test_pre_norm_decoder_layer_with_cross_attention():
    layer = mapped(model_paths("encoder-decoder", 1, pre_norm=True)).tracks[1].layers[0]
    assert [label for label in labels(layer) if label not in {"norm", "add"}] == [
        "self-attention",
        "cross-attention",
        "feed-forward",
    ]
    assert named_residuals(layer) == [(INPUT, "2 add"), ("2 add", "5 add"), ("5 add", "8 add")]


@pytest.mark.parametrize(("pre_norm", "source"), [(False, "encoder.layers.2.residual2"), (True, "encoder.norm")])
def test_the_encoder_feeds_every_cross_attention(pre_norm, source):
    links = mapped(model_paths("encoder-decoder", 3, pre_norm=pre_norm)).links
    assert links == tuple((source, f"decoder.layers.{layer}.cross_attention") for layer in range(3))


@pytest.mark.parametrize("architecture", ["encoder", "decoder"])
def test_one_track_has_no_links(architecture):
    model = mapped(model_paths(architecture, 2))
    assert model.links == ()
    assert [track.name for track in model.tracks] == [architecture]


def test_block_ids_are_unique():
    ids = [block.id for block in mapped(model_paths("encoder-decoder", 3, pre_norm=True)).blocks]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("block_id", "telling"),
    [
        ("encoder.inputs", "encoder.inputs.embedded"),
        ("encoder.layers.0.self_attention", "encoder.layers.0.self_attention.weights"),
        ("encoder.layers.0.residual1", "encoder.layers.0.norm1"),
        ("encoder.layers.0.feed_forward", "encoder.layers.0.feed_forward.activation"),
        ("output", "probabilities"),
    ],
)
def test_choosing_a_block_opens_its_most_telling_stage(block_id, telling):
    assert block_of(mapped(model_paths("encoder", 1)), block_id).telling.path == telling


def test_dropped_weights_do_not_stand_for_the_attention():
    paths = ["self_attention.weights", "self_attention.dropped_weights", "self_attention.context"]
    (block,) = mapped(paths).blocks
    assert block.telling.path == "self_attention.weights"


def test_colour_roles_of_stages():
    block = block_of(mapped(model_paths("encoder", 1)), "encoder.layers.0.self_attention")
    roles = {stage.label: stage.role for stage in block.stages}
    assert block.role == "weights"
    assert [roles[stage] for stage in ("query_input", "q_proj", "k", "v", "weights", "output")] == [
        "residual",
        "query",
        "key",
        "value",
        "weights",
        "residual",
    ]


def test_shapes_are_carried_to_their_stages():
    model = model_map([StageRef("scores", "scores"), StageRef("weights", "weights", shape="B H Tq Tk = 1 2 3 3")])
    assert [block.stages[0].shape for block in model.blocks] == ["", "B H Tq Tk = 1 2 3 3"]


def only_layer(paths: list[str]) -> Layer:
    """The single nameless layer of a part that is traced on its own."""
    model = mapped(paths)
    (track,) = model.tracks
    assert (track.name, track.title, track.inputs, track.end, model.output) == ("", "", None, None, None)
    (layer,) = track.layers
    assert layer.label == ""
    return layer


@pytest.mark.parametrize("prefix", ["attention.", ""])
def test_an_attention_on_its_own(prefix):
    layer = only_layer([prefix + stage for stage in ATTENTION])
    (block,) = layer.blocks
    assert (block.label, block.role, len(block.stages)) == ("attention", "weights", len(ATTENTION))
    assert block.telling.path == f"{prefix}weights"
    assert layer.residuals == ()


@pytest.mark.parametrize("prefix", ["feed_forward.", ""])
def test_a_feed_forward_on_its_own(prefix):
    (block,) = only_layer([prefix + stage for stage in FEED_FORWARD]).blocks
    assert (block.label, block.role) == ("feed-forward", "feed_forward")


def test_an_encoder_layer_on_its_own():
    paths = [path.removeprefix("x.") for path in layer_paths("x", cross=False, pre_norm=False)]
    layer = only_layer(paths)
    assert labels(layer) == ["self-attention", "add & norm", "feed-forward", "add & norm"]
    assert named_residuals(layer) == [(INPUT, "1 add & norm"), ("1 add & norm", "3 add & norm")]


def test_a_layer_under_a_name_of_its_own_is_one_frame():
    (track,) = model_map(on_map(run_of("encoder_layer"))).tracks
    (layer,) = track.layers
    assert layer.label == "encoder layer"
    assert labels(layer) == ["self-attention", "add & norm", "feed-forward", "add & norm"]
    assert named_residuals(layer) == [(INPUT, "1 add & norm"), ("1 add & norm", "3 add & norm")]
    assert block_of(model_map(on_map(run_of("encoder_layer"))), "encoder_layer.residual2").telling.path == (
        "encoder_layer.norm2"
    )


def test_a_single_stage_on_its_own():
    (block,) = only_layer(["encoding"]).blocks
    assert (block.label, block.role, block.telling.path) == ("encoding", "neutral", "encoding")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        (MultiHeadAttention(4, 2), [torch.zeros(1, 3, 4)] * 3),
        (FeedForward(4, 8), [torch.zeros(1, 3, 4)]),
        (
            EncoderLayer(
                TransformerConfig(architecture="encoder", vocab_size=5, d_model=4, n_heads=2, d_ff=8, n_layers=1)
            ),
            [torch.zeros(1, 3, 4)],
        ),
    ],
)
def test_parts_of_the_real_model_have_a_map(module, arguments):
    with record(module) as trace:
        module(*arguments)
    paths = list(trace)
    assert list(mapped(paths).paths) == paths


def test_an_unknown_module_becomes_a_neutral_block():
    layer = (
        mapped(["decoder.layers.0.self_attention.q", "decoder.layers.0.key_value_cache.hit"]).tracks[0].layers[0]
    )
    assert labels(layer) == ["self-attention", "key value cache"]
    assert layer.blocks[1].role == "neutral"


def test_no_paths_make_an_empty_map():
    assert model_map([]) == ModelMap((), None, ())


def test_a_path_with_an_empty_name_is_refused():
    with pytest.raises(ValueError, match="names joined by dots"):
        mapped(["encoder."])


def block_of(model: ModelMap, block_id: str) -> Block:
    return next(block for block in model.blocks if block.id == block_id)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "scores",
        {},
        {"path": "scores"},
        {"path": "unknown", "seq": 1},
        {"path": ["scores"], "seq": 1},
        {"path": "scores", "seq": -1},
        {"path": "scores", "seq": True},
        {"path": "scores", "seq": 1.5},
    ],
)
def test_a_bad_choice_from_the_browser_is_none(value):
    assert parse_stage(value, mapped(["scores"])) is None


def test_a_good_choice_from_the_browser():
    assert parse_stage({"path": "scores", "seq": 4}, mapped(["scores"])) == "scores"
