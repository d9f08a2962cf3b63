"""The map of the model, and reads what a person chose on it."""

from __future__ import annotations

from collections.abc import Mapping

from visualizer.components.events import whole_number_in
from visualizer.components.packing import pack
from visualizer.components.picture import Picture
from visualizer.components.stage_map.model_map import ModelMap


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
        seq: the number of the last choice that ``current_path`` takes account of, 0 before the first.
            The browser ignores a ``current_path`` that is older than its own last step.
        key: identifies the element on the page.
        with_stages: whether the stages of the lit block stand below the map, with the ways back and on.

    Its event `stage` says where a person has gone: `parse_stage` reads it.
    """
    header = {
        "key": key,
        "address" if isinstance(model, str) else "model": model,
        "current": current_path,
        "verdicts": dict(verdicts),
        "seq": seq,
        "with_stages": with_stages,
    }
    return Picture("stage_map/element.js", pack(header, {}), key, ("stage",))


def packed_map(model: ModelMap) -> bytes:
    """Pack the map for the browser."""
    return pack({"model": model}, {})


def parse_stage(value: object, model: ModelMap) -> str | None:
    """Read what the browser sent as ``stage``: a path; None unless it is a stage of this map, with a number."""
    if not isinstance(value, Mapping) or whole_number_in(value, "seq") is None:
        return None
    path = value.get("path")
    return path if isinstance(path, str) and path in model.paths else None
