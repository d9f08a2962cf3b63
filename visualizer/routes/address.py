"""The address of numbers: what a link chooses, which array of it, and how it is to be written."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlencode

from model.texts import texts_of
from visualizer.runs.paths import layer_of, without_layer
from visualizer.settings.fields import MOST_LAYERS, RECORDED, changed, fields_of, setting, value_in
from visualizer.settings.fitting import as_asked
from visualizer.settings.link import read_part, read_query, read_unchanged, write_query
from visualizer.settings.settings import FIELDS, Selection, Settings
from visualizer.settings.sources import renewed
from visualizer.settings.training_settings import TRAINING
from visualizer.settings.watched_settings import WATCHED

say = texts_of(__name__)

Format = Literal["npy", "csv", "packed", "headlight", "npz", "safetensors", "numpy", "torch", "ipynb"]

OF_RUN: tuple[Format, ...] = ("headlight", "npz", "safetensors")
"""Forms of all stages of a sequence, under the name ``run``."""

SCRIPTS: tuple[Format, ...] = ("numpy", "torch", "ipynb")
"""Forms that compute a stage again."""
StepsOrExact = Literal["exact", "16", "8"]

_MOST_AXES = 5
_AT = re.compile(rf"\d{{1,6}}(,\d{{1,6}}){{0,{_MOST_AXES - 1}}}")
_NAME = re.compile(rf"([A-Za-z_0-9.]{{1,200}})\.({'|'.join(get_args(Format))})")


def file_name(file: str) -> str:
    """The name on the disk of what stands at the end of an address: a script is a file of Python."""
    stem, _, ending = file.rpartition(".")
    return f"{stem}_{ending}.py" if ending in ("numpy", "torch") else file


@dataclass(frozen=True)
class Part:
    """The part of an array, and its form: the parameters of an address beside those of the link."""

    layers: tuple[int, ...] = setting((), kind="places", most=MOST_LAYERS - 1)
    precision: StepsOrExact = setting("exact")
    at: str = setting("")
    recorded: str = setting("", kind="identifier")
    version: str = setting("", kind="identifier")

    @property
    def places(self) -> tuple[int, ...]:
        """One place for each of the first axes."""
        return tuple(int(place) for place in self.at.split(",")) if self.at else ()


_FIELDS = (*FIELDS.values(), *TRAINING.values(), *WATCHED.values(), *fields_of(Part).values())


@dataclass(frozen=True)
class Address:
    """Numbers that are asked for.

    Attributes:
        name: the stage's path, with or without its layer, or the view whose picture it is.
        format: how they are written.
        settings: what they are computed from.
        selection: what is looked at.
        part: which of them.
    """

    name: str
    format: Format
    settings: Settings
    selection: Selection
    part: Part

    @property
    def tag(self) -> str:
        """The same for the same bytes, and for no others: a hash of all that they depend on."""
        wanted = (self.name, self.format, self.settings, self.selection, replace(self.part, version=""))
        return hashlib.sha256(repr((version_here(), *wanted)).encode()).hexdigest()[:32]


def read_stage_address(file: str, query: Mapping[str, Sequence[str]]) -> Address:
    """The numbers of a stage, by the last part of the path, such as ``encoder.self_attention.weights.npy``.

    All stages of a sequence are ``run.npz``, ``run.safetensors`` or ``run.headlight``; the forms ``numpy``,
    ``torch`` and ``ipynb`` are scripts that compute one again.

    Raises:
        ValueError: one sentence on what is wrong with it.
    """
    found = _NAME.fullmatch(file)
    if found is None or (found[2] in OF_RUN) != (found[1] == "run"):
        raise ValueError(say("stage", formats=", ".join(get_args(Format))))
    return _read(found[1], found[2], query)


def read_picture_address(view: str, query: Mapping[str, Sequence[str]]) -> Address:
    """Read the address of a view's picture.

    Raises:
        ValueError: one sentence on what is wrong with it.
    """
    if view not in _COUNTS:
        raise ValueError(say("pictures", names=", ".join(_COUNTS)))
    return _read(view, "packed", query)


@lru_cache(maxsize=256)  # it is asked for before a run, after it, and for the dials
def picture_address(
    view: str,
    settings: Settings,
    selection: Selection,
    n_numbers: int = 0,
    *,
    for_colors: bool = False,
    at: str = "",
    recorded: str = "",
) -> str | None:
    """The address of what a picture draws, from the page's own; None where no link carries the settings.

    Args:
        view: the view.
        settings: what is run.
        selection: what is looked at; what the numbers do not depend on is left out.
        n_numbers: how many numbers from 0 to 1 it has; many travel in steps of 16 bits.
        for_colors: whether they are seen as colours alone, as while something is dragged: in steps of 8 bits.
        at: the row and the column around which a large stage of another model is drawn, such as ``8,1400``.
        recorded: the token of a recorded run, whose settings no link carries.
    """
    shown = changed(Selection(), **{name: value_in(selection, name) for name in _COUNTS[view]})
    precision = "8" if for_colors else "16" if n_numbers > MOST_EXACT else ""
    part = {"precision": precision, "at": at, "recorded": recorded}
    return _address(f"pictures/{view}", settings, shown, {name: value for name, value in part.items() if value})


@lru_cache(maxsize=256)
def file_address(name: str, settings: Settings, batch: int) -> str | None:
    """The address of a file of numbers, such as ``run.npz``, from the page's own; None where no link carries it."""
    return _address(f"numbers/{name}", settings, Selection(batch=batch), {})


def link_to_stage(settings: Settings, path: str, batch: int) -> str:
    """The link to a stage in Step through, from the page's own address."""
    at = Selection(view="step", stage=without_layer(path), layer=layer_of(path), batch=batch)
    return f"?{urlencode(write_query(settings, at))}"


def _address(path: str, settings: Settings, shown: Selection, part: Mapping[str, str]) -> str | None:
    if settings.weights == RECORDED:
        if "recorded" not in part:
            return None
        settings = Settings()  # the token says what it is of
    settings = as_asked(settings)
    link = write_query(settings, shown)
    if read_query({name: [value] for name, value in link.items()})[:2] != (settings, shown):
        return None
    return f"{path}?{urlencode(sorted({**link, **part, 'version': version_here()}.items()))}"


_COUNTS: Mapping[str, tuple[str, ...]] = {
    "heads": ("stage", "batch"),
    "compare": (
        *("stage", "batch", "mask_a", "mask_b", "against_intent", "baseline"),
        *("attention", "intent", "intent_encoder", "intent_cross", "keys_before"),
    ),
    "step": ("stage", "layer", "head", "batch"),
    "step_heads": ("stage", "layer", "batch"),
    "step_parts": ("stage", "layer", "batch"),
    "way": ("stage", "query", "batch"),
    "map": ("batch",),
}
"""The fields of a selection that the numbers of a picture depend on."""

MOST_EXACT = 2**20
"""The most numbers of a picture that travel as they are."""

MOST_IN_MESSAGE = 2**14
"""The most numbers of a picture that travel with the message that mounts it: to ask for them would take longer."""

MOST_WRITTEN = 2**11
"""The most cells of one matrix: in those of a larger one no numbers are written, they are colours alone."""


def _read(name: str, format_: str, query: Mapping[str, Sequence[str]]) -> Address:
    settings, selection = read_unchanged(renewed(query), _FIELDS)
    if selection.source == "recording":
        raise ValueError(say("recording"))
    part, _ = read_part(query, Part())
    if part.at and not _AT.fullmatch(part.at):
        raise ValueError(say("at", most=_MOST_AXES))
    chosen_format: Format = next(known for known in get_args(Format) if known == format_)
    if part.precision != "exact" and chosen_format != "packed":
        raise ValueError(say("exact", format=chosen_format, precision=part.precision))
    return Address(name, chosen_format, settings, selection, part)


@cache
def version_here() -> str:
    """A version of what computes the numbers: a hash of sources, texts, weights and libraries' versions."""
    found = hashlib.sha256(f"{version('torch')} {version('numpy')}".encode())
    root = Path(__file__).parents[2]
    for folder, kinds in (("model", ("py", "toml", "json", "safetensors")), ("visualizer", ("py", "toml"))):
        for kind in kinds:
            for file in sorted((root / folder).rglob(f"*.{kind}")):
                found.update(file.read_bytes())
    return found.hexdigest()[:16]
