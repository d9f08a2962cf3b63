"""The memory that a run will take, known from the model itself: one layer of it is run on a few tokens.

Each recorded stage names its axes, so its size for any text follows from its size for those tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

from model import AttentionAlone, CombinedMask, Transformer, TransformerConfig, record, seed_dropout
from model.tracing import Dims
from model.unfilled import unfilled
from visualizer.components.axis import SequenceName
from visualizer.runs.built_model import config_of, forward
from visualizer.runs.paths import in_layer
from visualizer.runs.score_changes import change_scores
from visualizer.runs.tokens import Encoded, TokenSequence
from visualizer.settings.attentions import attentions_of, seen_by
from visualizer.settings.painted_mask import asks_for_head, read_planes
from visualizer.settings.settings import Settings

_FEW = TokenSequence(("", ""), (0, 0), (False, False), ("", ""))
"""Two tokens: of a single one, what is several tensors in a run may be one."""


def bytes_for(settings: Settings, encoded: Encoded, n_sequences: int | None = None) -> int:
    """The memory of a run's weights and of every stage that is recorded, or of so many of its sequences, in bytes.

    Stages that are views of others (inputs of an attention, heads of a projection) count once.

    Raises:
        MaskExpressionError: the change of the scores cannot be read.
    """
    n_tokens: dict[SequenceName, int] = {"source": len(encoded.sources[0])}
    if encoded.targets is not None:
        n_tokens["target"] = len(encoded.targets[0])
    n_layers = {"encoder": settings.n_layers, "decoder": settings.depth}
    masked = frozenset(each.path for each in attentions_of(settings.architecture) if seen_by(each, settings).mask)
    config = replace(config_of(settings, encoded), n_layers=1)
    config = replace(config, n_decoder_layers=config.n_decoder_layers and 1)
    weights, stages = _in_one_layer(config, masked, settings.score)

    def in_layers(path: str, size: int) -> int:
        return size * n_layers[path.partition(".")[0]] if ".layers." in path else size

    of_one = sum(in_layers(path, _size_of(path, stage, n_tokens)) for path, stage in stages.items())
    of_one += _mask_bytes(settings, n_tokens)
    return sum(in_layers(*weight) for weight in weights.items()) + (n_sequences or len(encoded.sources)) * of_one


_Stage = tuple[Dims, int]
"""The axes of a stage, and the bytes of one of its numbers."""


@lru_cache(maxsize=64)
def _in_one_layer(
    config: TransformerConfig, masked: frozenset[str], score: str
) -> tuple[Mapping[str, int], Mapping[str, _Stage]]:
    """The bytes of the weights of a model of one layer, and its stages, by their paths.

    Args:
        config: its shape.
        masked: the attentions with a mask, by their paths without a layer.
        score: the change of its scores.
    """
    kind = AttentionAlone if config.architecture == "attention" else Transformer
    model = unfilled(kind, config)
    change_scores(model, Settings(architecture=config.architecture, n_layers=1, score=score))
    if config.dropout > 0:
        seed_dropout(model.train(), 0)
    batches: dict[SequenceName, tuple[TokenSequence, ...]] = {"source": (_FEW,)}
    if config.architecture == "encoder-decoder":
        batches["target"] = (_FEW,)
    everything = torch.ones(len(_FEW.ids), len(_FEW.ids), dtype=torch.bool)
    masks = {
        in_layer(each.path, 0): CombinedMask({"any": everything} if each.path in masked else {})
        for each in attentions_of(config.architecture)
    }
    with torch.inference_mode(), record(model) as trace:
        forward(model, batches, masks, {})
    weights = _each_once((*model.named_parameters(), *model.named_buffers()))
    stages = _each_once((path, stage.value) for path, stage in trace.items() if stage.name != "mask")
    return (
        {path: tensor.nbytes for path, tensor in weights.items()},
        {path: (trace[path].dims, value.element_size()) for path, value in stages.items()},
    )


def _each_once(tensors: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """Return the largest of the tensors that share memory."""
    largest: dict[int, tuple[str, Tensor]] = {}
    for path, tensor in tensors:
        memory = tensor.untyped_storage().data_ptr()
        if memory not in largest or tensor.nbytes > largest[memory][1].nbytes:
            largest[memory] = path, tensor
    return dict(largest.values())


def _size_of(path: str, stage: _Stage, n_tokens: Mapping[SequenceName, int]) -> int:
    """The bytes of a stage for one sequence of so many tokens."""
    dims, element_size = stage
    of_target = "target" in n_tokens and not path.startswith("encoder.")
    own = n_tokens["target" if of_target else "source"]
    keys = n_tokens["source"] if ".cross_attention." in path else own
    return element_size * prod({"T": own, "Tq": own, "Tk": keys}.get(symbol, size) for symbol, size in dims)


def _mask_bytes(settings: Settings, n_tokens: Mapping[SequenceName, int]) -> int:
    """At most: one byte per cell, shared by all layers and heads that have the same mask."""
    total = 0
    for attention in attentions_of(settings.architecture):
        seen = seen_by(attention, settings)
        scopes = read_planes(seen.custom) if "custom" in seen.mask else {}
        by_layer = any(scope.layer is not None for scope in scopes)
        by_head = any(scope.head is not None or asks_for_head(source) for scope, source in scopes.items())
        n_masks = (attention.n_layers(settings) if by_layer else 1) * (settings.n_heads if by_head else 1)
        total += bool(seen.mask) * n_masks * n_tokens[attention.queries] * n_tokens[attention.keys]
    return total
