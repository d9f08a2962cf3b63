"""The model as blocks, residual connections and tracks, read off the ordered paths of its stages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

INPUT = "input"
"""The start of the first residual connection of a layer: what the layer was given."""

_PATH = re.compile(r"(?:(encoder|decoder)\.)?(?:(inputs|layers\.(\d+))\.)?(?:(.+)\.)?([^.]+)")
_TITLES = {"encoder": "Encoder", "decoder": "Decoder"}
_NO_LAYERS = frozenset({"inputs", "end", "output"})
_MODULE_LABELS = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward",
}


@dataclass(frozen=True)
class StageRef:
    """One stage.

    path: where it stands in the trace. label: its short name. role: its colour. shape: in words, where it is known.
    block: the box that it is drawn in where no module of its own says so: "inputs", "attention", "feed_forward",
        "add" (with the norm straight after), "norm" or "output"; a box of its own where it is empty.
    is_telling: whether it is the one to open when its whole box is chosen.
    title: what a person calls it; its label where there is none.
    is_detail: whether it stands among the stages of its block only where all of them do.
    also: the paths of other stages that are the very same tensor, and stand for it here.
    """

    path: str
    label: str
    role: str = "neutral"
    shape: str = ""
    block: str = ""
    is_telling: bool = False
    title: str = ""
    is_detail: bool = False
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A part of the model that a person would draw as one box, with its stages in computing order."""

    id: str
    label: str
    stages: tuple[StageRef, ...]

    @property
    def telling(self) -> StageRef:
        """The stage to open when the whole block is chosen: an attention's weights, an add & norm's norm."""
        return next((stage for stage in self.stages if stage.is_telling), self.stages[-1])

    @property
    def telling_path(self) -> str:
        """Its path."""
        return self.telling.path

    @property
    def role(self) -> str:
        """The colour of the block: that of its most telling stage."""
        return self.telling.role


@dataclass(frozen=True)
class Layer:
    """Blocks in computing order; ``residuals`` are pairs (block id or ``INPUT``, block id that adds it)."""

    id: str
    label: str
    blocks: tuple[Block, ...]
    residuals: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Track:
    """An encoder, a decoder, or the one nameless row of a part that is traced on its own."""

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


@dataclass(frozen=True)
class _Place:
    """The place of a stage: its track, the section of the track, its module there.

    A section is ``inputs``, ``end``, ``output``, or a layer: ``layers.N``, the name of a layer traced on its
    own, or ``part`` for everything else.
    """

    stage: StageRef
    track: str
    section: str
    module: str


def model_map(stages: Sequence[StageRef]) -> ModelMap:
    """Draw up the map of a model from the stages of its trace.

    Args:
        stages: in computing order, with paths such as ``encoder.layers.0.self_attention.scores``; a part traced
            on its own has shorter ones, down to a bare ``scores``.

    Returns:
        The map. Blocks keep the order of their first stages.
    """
    places = _in_layers_of_their_own([_place(stage) for stage in stages])
    names = dict.fromkeys(place.track for place in places if place.section != "output")
    tracks = tuple(_track(name, [place for place in places if place.track == name]) for name in names)
    output = _block("output", [place for place in places if place.section == "output"])
    return ModelMap(tracks, output, _links(tracks))


def _place(stage: StageRef) -> _Place:
    match = _PATH.fullmatch(stage.path)
    if match is None:
        raise ValueError(f"path ({stage.path!r}) must be names joined by dots")
    track, section, _, module, _ = match.groups(default="")
    if not section and not module and stage.block == "output":
        return _Place(stage, track, "output", module)
    return _Place(stage, track, section or ("end" if track else "part"), module)


def _in_layers_of_their_own(places: Sequence[_Place]) -> list[_Place]:
    """The places with a module that holds other modules, such as a layer traced on its own, as their section."""
    modules = {place.module for place in places if place.section == "part"}
    holders = sorted(
        module for module in modules if module and any(one.startswith(f"{module}.") for one in modules)
    )
    moved = []
    for place in places:
        holder = next((one for one in holders if f"{place.module}.".startswith(f"{one}.")), None)
        if place.section == "part" and holder is not None:
            place = replace(place, section=holder, module=place.module.removeprefix(holder).removeprefix("."))
        moved.append(place)
    return moved


def _track(name: str, places: Sequence[_Place]) -> Track:
    prefix = f"{name}." if name else ""
    sections: dict[str, list[_Place]] = {}
    for place in places:
        sections.setdefault(place.section, []).append(place)
    return Track(
        name,
        _TITLES.get(name, ""),
        _block(f"{prefix}inputs", sections.get("inputs", [])),
        tuple(_layer(prefix, section, inside) for section, inside in sections.items() if section not in _NO_LAYERS),
        _block(f"{prefix}norm", sections.get("end", [])),
    )


def _layer(prefix: str, section: str, places: Sequence[_Place]) -> Layer:
    inside = f"{prefix}{section}." if section != "part" else prefix
    members: dict[str, list[_Place]] = {}
    for place in places:
        members.setdefault(_block_key(place, list(members)[-1] if members else ""), []).append(place)
    blocks = tuple(block for key, of_key in members.items() if (block := _block(f"{inside}{key}", of_key)))
    return Layer(f"{inside}*", _layer_label(section), blocks, _residuals(blocks))


def _block(block_id: str, places: Sequence[_Place]) -> Block | None:
    """One block; None when it has no stages."""
    if not places:
        return None
    return Block(block_id, _block_label(block_id, places), tuple(place.stage for place in places))


def _layer_label(section: str) -> str:
    if section == "part":
        return ""
    return section.replace("layers.", "layer ").replace("_", " ")


def _block_key(place: _Place, previous: str) -> str:
    """Name the block of its layer that a stage is of; dropout's result and a norm right after are their sum's."""
    stage = place.stage
    if place.module:
        return place.module
    number = stage.label[len(stage.label.rstrip("0123456789")) :]
    if stage.block == "add" or (stage.block == "norm" and previous == f"residual{number}"):
        return f"residual{number}"
    return stage.label if stage.block in ("", "norm") else stage.block


def _block_label(block_id: str, places: Sequence[_Place]) -> str:
    first, last = places[0].stage, places[-1].stage
    if places[0].module or first.block not in ("add", "norm"):
        key = block_id.rpartition(".")[2]
        return _MODULE_LABELS.get(key, key.replace("_", " "))
    if first.block == "norm":
        return "norm"
    return "add & norm" if last.block == "norm" else "add"


def _residuals(blocks: Sequence[Block]) -> tuple[tuple[str, str], ...]:
    """The stream goes from the layer's input to its first sum, and from each sum to the next."""
    sums = [block.id for block in blocks if block.role == "residual" and block.label.startswith("add")]
    return tuple(zip([INPUT, *sums], sums, strict=False))


def _links(tracks: Sequence[Track]) -> tuple[tuple[str, str], ...]:
    """The encoder's last block feeds every cross-attention of the decoder."""
    by_name = {track.name: track for track in tracks}
    encoder, decoder = by_name.get("encoder"), by_name.get("decoder")
    if encoder is None or decoder is None:
        return ()
    source = encoder.blocks[-1].id
    return tuple((source, block.id) for block in decoder.blocks if block.id.endswith(".cross_attention"))
