"""The map of the model, and reads what a person chose on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from visualizer.components.packing import pack
from visualizer.components.picture import Picture
from visualizer.components.stage_map.model_map import Block, Layer, ModelMap, Track
from visualizer.components.stage_map.stage_places import StageRef


@dataclass(frozen=True)
class StageChoice:
    """The stage that a person went to, and the number of their steps so far."""

    path: str
    seq: int


def stage_map(
    model: ModelMap | str,
    current_path: str,
    *,
    verdicts: Mapping[str, bool],
    seq: int,
    key: str,
    with_stages: bool = True,
) -> Picture:
    """The map.

    Args:
        model: what to draw, from ``model_map``, or the address at which the browser finds what ``packed_map`` makes
            of it.
        current_path: the lit stage; the first one where the path is not on the map.
        verdicts: for the stages with published numbers, whether these come out: their chips get a tick or a cross.
        seq: ``StageChoice.seq`` of the last choice that ``current_path`` takes account of, 0 before the first.
            The browser ignores a ``current_path`` that is older than its own last step.
        key: identifies the element on the page.
        with_stages: whether the stages of the lit block stand below the map, with the ways back and on.

    Its event `stage` says where a person has gone: `parse_stage` reads it.
    """
    header = {
        "key": key,
        **({"address": model} if isinstance(model, str) else {"model": describe_map(model)}),
        "current": current_path,
        "verdicts": dict(verdicts),
        "seq": seq,
        "with_stages": with_stages,
    }
    return Picture("stage_map/element.js", pack(header, {}), key, ("stage",))


def packed_map(model: ModelMap) -> bytes:
    """Pack the map for the browser."""
    return pack({"model": describe_map(model)}, {})


def parse_stage(value: object, model: ModelMap) -> StageChoice | None:
    """Read what the browser sent as ``stage``; None unless it is a stage of this map with a sequence number."""
    if not isinstance(value, dict):
        return None
    path, seq = value.get("path"), value.get("seq")
    if not isinstance(path, str) or path not in model.paths:
        return None
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        return None
    return StageChoice(path, seq)


def describe_map(model: ModelMap) -> dict[str, Any]:
    """The map as JSON, the form in which the browser receives it."""
    return {
        "tracks": [_describe_track(track) for track in model.tracks],
        "output": _describe_block(model.output),
        "links": [list(link) for link in model.links],
    }


def _describe_track(track: Track) -> dict[str, Any]:
    return {
        "name": track.name,
        "title": track.title,
        "inputs": _describe_block(track.inputs),
        "layers": [_describe_layer(layer) for layer in track.layers],
        "end": _describe_block(track.end),
    }


def _describe_layer(layer: Layer) -> dict[str, Any]:
    return {
        "id": layer.id,
        "label": layer.label,
        "blocks": [_describe_block(block) for block in layer.blocks],
        "residuals": [list(residual) for residual in layer.residuals],
    }


def _describe_block(block: Block | None) -> dict[str, Any] | None:
    if block is None:
        return None
    return {
        "id": block.id,
        "label": block.label,
        "role": block.role,
        "telling": block.telling_path,
        "apart": block.is_apart,
        "stages": [_describe_stage(stage, block.id) for stage in block.stages],
    }


def _describe_stage(stage: StageRef, block_id: str) -> list[Any]:
    """A stage as a row without empty ends, and its path without that of its block: a model may have thousands."""
    title = stage.title or stage.label
    path = stage.path.removeprefix(block_id) if stage.path.startswith(f"{block_id}.") else stage.path
    label = "" if stage.label == title else stage.label
    role = "" if stage.role == "neutral" else stage.role
    row = [path, title, role, stage.shape, int(stage.is_detail), label, list(stage.also)]
    while not row[-1]:
        row.pop()
    return row
