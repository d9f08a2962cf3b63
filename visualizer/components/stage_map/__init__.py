"""The map of the whole model, on which one stage is current."""

from visualizer.components.stage_map.element import packed_map, parse_stage, stage_map
from visualizer.components.stage_map.model_map import (
    INPUT,
    Block,
    Layer,
    ModelMap,
    Track,
    model_map,
)
from visualizer.components.stage_map.stage_places import StageRef

__all__ = [
    "INPUT",
    "Block",
    "Layer",
    "ModelMap",
    "StageRef",
    "Track",
    "model_map",
    "packed_map",
    "parse_stage",
    "stage_map",
]
