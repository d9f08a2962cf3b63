"""The model as blocks, residual connections and tracks, read off the ordered paths of its stages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

INPUT = "input"
"""Where the first residual connection of a layer starts: what the layer was given."""

_PATH = re.compile(r"(?:(encoder|decoder)\.)?(?:(inputs|layers\.(\d+))\.)?(?:(.+)\.)?([^.]+)")
_TITLES = {"encoder": "Encoder", "decoder": "Decoder"}
_OUTPUT_STAGES = frozenset({"logits", "probabilities"})
_NO_LAYERS = frozenset({"inputs", "end", "output"})
_TELLING_STAGES = frozenset({"weights", "activation", "embedded", "probabilities"})

# In an attention: what enters and what leaves is the residual stream.
_ATTENTION_ROLES = {
    **dict.fromkeys(("query_input", "key_input", "value_input", "output"), "residual"),
    **dict.fromkeys(("qkv", "kv"), "neutral"),
    **dict.fromkeys(("q_proj", "q"), "query"),
    **dict.fromkeys(("k_proj", "k"), "key"),
    **dict.fromkeys(("v_proj", "v", "context", "concat"), "value"),
    **dict.fromkeys(("scores", "scaled_scores", "mask", "masked_scores"), "weights"),
    **dict.fromkeys(("weights", "dropped_weights"), "weights"),
}
_STAGE_MODULES = {
    **dict.fromkeys(_ATTENTION_ROLES.keys() - {"output"}, "attention"),
    **dict.fromkeys(("hidden", "activation", "dropped_activation"), "feed_forward"),
    **dict.fromkeys(("embedding", "scaled_embedding", "positional_encoding", "embedded"), "inputs"),
}
_MODULE_LABELS = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward",
}


@dataclass(frozen=True)
class StageRef:
    """One stage: its trace path, its short name, its colour role and, if known, its shape in words."""

    path: str
    label: str
    role: str = "neutral"
    shape: str = ""


@dataclass(frozen=True)
class Block:
    """A part of the model that a person would draw as one box, with its stages in computing order."""

    id: str
    label: str
    role: str
    stages: tuple[StageRef, ...]

    @property
    def telling_path(self) -> str:
        """The stage to open when the whole block is chosen: an attention's weights, an add & norm's norm."""
        return next((stage.path for stage in self.stages if stage.label in _TELLING_STAGES), self.stages[-1].path)


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
        return tuple(stage.path for block in self.blocks for stage in block.stages)


@dataclass(frozen=True)
class _Place:
    """Where a stage belongs: its track, the section of the track, its module there, its own name.

    A section is ``inputs``, ``end``, ``output``, or a layer: ``layers.N``, the name of a layer traced on its
    own, or ``part`` for everything else.
    """

    path: str
    track: str
    section: str
    module: str
    stage: str


def model_map(paths: Sequence[str], shapes: Mapping[str, str] | None = None) -> ModelMap:
    """Draw up the map of a model from the paths of its trace.

    Args:
        paths: trace paths in computing order, such as ``encoder.layers.0.self_attention.scores``; a part traced
            on its own has shorter ones, down to a bare ``scores``.
        shapes: by path, the stage's shape in words, such as ``B H Tq Tk = 1 4 9 9``.

    Returns:
        The map. Blocks keep the order of their first stages.
    """
    places = _in_layers_of_their_own([_place(path) for path in paths])
    build = _Builder(shapes or {})
    names = dict.fromkeys(place.track for place in places if place.section != "output")
    tracks = tuple(build.track(name, [place for place in places if place.track == name]) for name in names)
    output = build.block("output", "output", [place for place in places if place.section == "output"])
    return ModelMap(tracks, output, _links(tracks))


def _place(path: str) -> _Place:
    match = _PATH.fullmatch(path)
    if match is None:
        raise ValueError(f"path ({path!r}) must be names joined by dots")
    track, section, _, module, stage = match.groups(default="")
    if not section and not module and stage in _OUTPUT_STAGES:
        return _Place(path, track, "output", module, stage)
    if not section:
        section = "end" if track else "part"
    return _Place(path, track, section, module, stage)


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


@dataclass(frozen=True)
class _Builder:
    """Builds blocks, layers and tracks; holds the shapes that stages are labelled with."""

    shapes: Mapping[str, str]

    def track(self, name: str, places: Sequence[_Place]) -> Track:
        prefix = f"{name}." if name else ""
        sections: dict[str, list[_Place]] = {}
        for place in places:
            sections.setdefault(place.section, []).append(place)
        layers = tuple(
            self.layer(prefix, section, inside) for section, inside in sections.items() if section not in _NO_LAYERS
        )
        return Track(
            name,
            _TITLES.get(name, ""),
            self.block(f"{prefix}inputs", "inputs", sections.get("inputs", [])),
            layers,
            self.block(f"{prefix}norm", "norm", sections.get("end", [])),
        )

    def layer(self, prefix: str, section: str, places: Sequence[_Place]) -> Layer:
        keys = _block_keys(places)
        inside = f"{prefix}{section}." if section != "part" else prefix
        blocks = []
        for key in dict.fromkeys(keys):
            members = [place for place, its_key in zip(places, keys, strict=True) if its_key == key]
            block = self.block(f"{inside}{key}", key, members)
            if block is not None:
                blocks.append(block)
        return Layer(f"{inside}*", _layer_label(section), tuple(blocks), _residuals(blocks))

    def block(self, block_id: str, key: str, places: Sequence[_Place]) -> Block | None:
        """One block; None when it has no stages."""
        if not places:
            return None
        role = _block_role(key)
        stages = tuple(
            StageRef(place.path, place.stage, _stage_role(place.stage, role), self.shapes.get(place.path, ""))
            for place in places
        )
        return Block(block_id, _block_label(key, places), role, stages)


def _layer_label(section: str) -> str:
    if section == "part":
        return ""
    return section.replace("layers.", "layer ").replace("_", " ")


def _block_keys(places: Sequence[_Place]) -> list[str]:
    """For each stage the key of its block; what dropout leaves and a norm straight after share their sum's."""
    keys: list[str] = []
    for place in places:
        previous = keys[-1] if keys else place.stage
        keys.append(_block_key(place, previous))
    return keys


def _block_key(place: _Place, previous: str) -> str:
    if place.module:
        return place.module
    number = place.stage.removeprefix("norm")
    if place.stage != number and previous == f"residual{number}":
        return previous
    if place.stage == "output":
        return previous
    if place.stage.startswith("dropped_output"):
        return place.stage.replace("dropped_output", "residual")
    return _STAGE_MODULES.get(place.stage, place.stage)


def _block_label(key: str, places: Sequence[_Place]) -> str:
    if key.startswith("residual"):
        return "add & norm" if places[-1].stage.startswith("norm") else "add"
    if key.startswith("norm"):
        return "norm"
    return _MODULE_LABELS.get(key, key.rpartition(".")[2].replace("_", " "))


def _block_role(key: str) -> str:
    if key.startswith(("residual", "norm")) or key == "inputs":
        return "residual"
    if key.endswith("attention"):
        return "weights"
    return "feed_forward" if key.endswith("feed_forward") else "neutral"


def _stage_role(stage: str, block_role: str) -> str:
    if stage == "input":
        return "residual"
    return _ATTENTION_ROLES.get(stage, "neutral") if block_role == "weights" else block_role


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
