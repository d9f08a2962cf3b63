"""A model as blocks, residual connections and tracks, read off the modules that computed its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from visualizer.components.stage_map.stage_places import NO_LAYERS, Place, StageRef, places_of, without_number

INPUT = "input"
"""The start of the first residual connection of a layer: what the layer was given."""

_TITLES = {"encoder": "Encoder", "decoder": "Decoder"}
_MODULE_LABELS = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward",
}
_RUN = ":"
"""The first letter of the key of operations that follow each other in no module of their layer."""


@dataclass(frozen=True)
class Block:
    """A part of the model that a person would draw as one box, with its stages in computing order.

    is_apart: whether it is known that none of them reads the block before.
    """

    id: str
    label: str
    stages: tuple[StageRef, ...]
    is_apart: bool = False

    @property
    def telling(self) -> StageRef:
        """The stage to open when the whole block is chosen: an attention's weights, an add & norm's norm."""
        return _telling(self.stages)

    @property
    def role(self) -> str:
        """The colour of the block: that of its most telling stage."""
        return self.telling.role

    def as_header(self) -> dict[str, Any]:
        """The block as the browser receives it: a model may have thousands of stages, each of which is a row."""
        return {
            "id": self.id,
            "label": self.label,
            "role": self.role,
            "telling": self.telling.path,
            "apart": self.is_apart,
            "stages": [_row(stage, self.id) for stage in self.stages],
        }


@dataclass(frozen=True)
class Layer:
    """Blocks in computing order; ``residuals`` are pairs (block id or ``INPUT``, block id that adds it)."""

    id: str
    label: str
    blocks: tuple[Block, ...]
    residuals: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Track:
    """Layers in a row, and what is before and after them: an encoder, a decoder, a part that is traced alone."""

    name: str
    title: str
    inputs: Block | None
    layers: tuple[Layer, ...]
    end: Block | None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, from the inputs to the last norm."""
        inside = tuple(block for layer in self.layers for block in layer.blocks)
        return tuple(block for block in (self.inputs, *inside, self.end) if block is not None)


@dataclass(frozen=True)
class ModelMap:
    """The whole model; ``links`` are pairs of block ids that join the tracks."""

    tracks: tuple[Track, ...]
    output: Block | None
    links: tuple[tuple[str, str], ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks in computing order."""
        inside = tuple(block for track in self.tracks for block in track.blocks)
        return inside if self.output is None else (*inside, self.output)

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of every stage, in the order in which Previous and Next walk them."""
        return tuple(path for block in self.blocks for stage in block.stages for path in (stage.path, *stage.also))


def _row(stage: StageRef, block_id: str) -> list[Any]:
    """A stage as a row without empty ends, and its path without that of its block."""
    title = stage.title or stage.label
    path = stage.path.removeprefix(block_id) if stage.path.startswith(f"{block_id}.") else stage.path
    label = "" if stage.label == title else stage.label
    role = "" if stage.role == "neutral" else stage.role
    row = [path, title, role, stage.shape, int(stage.is_detail), label, list(stage.also)]
    while not row[-1]:
        row.pop()
    return row


def _telling(stages: Sequence[StageRef]) -> StageRef:
    main = [stage for stage in stages if not stage.is_detail] or stages
    return next((stage for stage in stages if stage.is_telling), main[-1])


def model_map(stages: Sequence[StageRef]) -> ModelMap:
    """Draw up the map of a model from the stages of its trace.

    Args:
        stages: in computing order, with paths such as ``encoder.layers.0.self_attention.scores``; a part traced
            on its own has shorter ones, down to a bare ``scores``.

    Returns:
        The map. Its layers are the outermost numbered modules that hold others; where none is numbered, the
        outermost module that holds all others. Blocks stand in computing order.

    Raises:
        ValueError: a path is not of names joined by dots.
    """
    places = places_of(stages)
    names = dict.fromkeys(place.track for place in places if place.section != "output")
    tracks = tuple(
        _track(name, _title(name, len(names)), [place for place in places if place.track == name]) for name in names
    )
    output = _block("output", "output", [place for place in places if place.section == "output"])
    return ModelMap(tracks, output, _links(tracks))


def _title(track: str, n_tracks: int) -> str:
    name = track.rpartition(".")[2]
    return _TITLES.get(name, name.replace("_", " ") if n_tracks > 1 else "")


def _track(name: str, title: str, places: Sequence[Place]) -> Track:
    prefix = f"{name}." if name else ""
    sections: dict[str, list[Place]] = {}
    for place in places:
        sections.setdefault(place.section, []).append(place)
    inputs, end, _ = (sections.pop(section, []) for section in NO_LAYERS)
    return Track(
        name,
        title,
        _block(f"{prefix}inputs", "inputs", inputs),
        tuple(_layer(path, inside) for path, inside in sections.items()),
        _block(f"{prefix}norm", _end_label(end), end),
    )


def _layer(path: str, places: Sequence[Place]) -> Layer:
    inside = f"{path}." if path else ""
    runs: list[tuple[str, list[Place]]] = []
    for place in places:
        key = _block_key(place, runs[-1][0] if runs else "")
        if not runs or runs[-1][0] != key:
            runs.append((key, []))
        runs[-1][1].append(place)
    times = Counter[str]()
    blocks: list[Block] = []
    for key, of_key in runs:
        again = f" {times[key]}" if times[key] else ""  # of a module that is called several times
        stages = _stages(of_key)
        is_apart = bool(blocks and _reads(stages)) and not _reads(stages) & {one.path for one in blocks[-1].stages}
        blocks.append(Block(f"{inside}{key}{again}", _block_label(key, of_key), stages, is_apart))
        times[key] += 1
    return Layer(f"{inside}*", _layer_label(path), tuple(blocks), _residuals(blocks))


def _block(block_id: str, label: str, places: Sequence[Place]) -> Block | None:
    """One block; None when it has no stages."""
    return Block(block_id, label, _stages(places)) if places else None


def _stages(places: Sequence[Place]) -> tuple[StageRef, ...]:
    return tuple(place.stage for place in places)


def _layer_label(path: str) -> str:
    """``layer 0``; the name of another module."""
    around, _, name = path.rpartition(".")
    if not name.isdigit():
        return name.replace("_", " ")
    last = around.rpartition(".")[2]
    return f"{last}.{name}" if last != without_number(last) else f"layer {name}"


def _block_key(place: Place, previous: str) -> str:
    """Name the block of its layer that a stage is of; dropout's result and a norm right after are their sum's."""
    stage = place.stage
    if place.owner:
        return place.owner
    if stage.block == "operation":
        return previous if previous.startswith(_RUN) else f"{_RUN}{stage.path}"
    number = stage.label[len(without_number(stage.label)) :]
    if stage.block == "add" or (stage.block == "norm" and previous == f"residual{number}"):
        return f"residual{number}"
    if stage.block == "sum":
        return stage.path
    return stage.label if stage.block in ("", "norm") else stage.block


def _block_label(key: str, places: Sequence[Place]) -> str:
    first, last = places[0].stage, places[-1].stage
    if not places[0].owner and first.block in ("add", "norm", "sum", "operation"):
        if first.block == "operation":
            return _telling(_stages(places)).title
        if first.block == "norm":
            return "norm"
        return "add & norm" if last.block == "norm" else "add"
    name = key.rpartition(".")[2]
    return _MODULE_LABELS.get(name, name.replace("_", " "))


def _end_label(places: Sequence[Place]) -> str:
    """The name of the one module after the layers."""
    names = {place.module.partition(".")[0] for place in places}
    if names == {""}:
        return "norm" if places[0].stage.block == "norm" else "end"
    return names.pop().replace("_", " ") if len(names) == 1 else "end"


def _residuals(blocks: Sequence[Block]) -> tuple[tuple[str, str], ...]:
    """The stream goes from the layer's input to its first sum, and from each sum to the next.

    Where it is known what a sum reads: from what it reads past the block before it, or with an earlier block.
    """
    found: list[tuple[str, str]] = []
    places = {stage.path: place for place, block in enumerate(blocks) for stage in block.stages}
    read_first: dict[str, int] = {}
    before = INPUT
    for place, block in enumerate(blocks):
        reads = _reads(block.stages)
        read_first |= dict.fromkeys(reads - read_first.keys(), place)
        if block.role != "residual" or not block.label.startswith("add"):
            continue
        inside = [places[path] for path in reads if places.get(path, place) != place]
        if len(inside) > 1 and min(inside) < place - 1:
            before = blocks[min(inside)].id
        elif reads and all(read_first[path] == place for path in reads - places.keys()):
            continue
        elif reads:
            before = INPUT
        found.append((before, block.id))
        before = block.id
    return tuple(found)


def _reads(stages: Iterable[StageRef]) -> set[str]:
    """The paths of what stages read."""
    return {path for stage in stages for path in stage.reads}


def _links(tracks: Sequence[Track]) -> tuple[tuple[str, str], ...]:
    """The encoder's last block feeds every cross-attention of the decoder, and what else reads it."""
    if [track.title for track in tracks] != list(_TITLES.values()):
        return ()
    encoder, decoder = tracks
    source = encoder.blocks[-1]
    paths = {stage.path for stage in source.stages}
    return tuple(
        (source.id, block.id)
        for layer in decoder.layers
        for block in layer.blocks
        if block.id.endswith(".cross_attention") or paths & _reads(block.stages)
    )
