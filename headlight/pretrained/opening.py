"""From a name to a checkpoint in memory: what it takes is known before, and every step says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from headlight.pretrained.checkpoint import DTYPES, SHELF, Checkpoint, Key, Shelf, load, memory_of, refuse_above
from headlight.pretrained.checkpoint_places import Place, place_of
from headlight.pretrained.fetching import OnHub, Task, ask_hub, converted_folder, fetch
from headlight.pretrained.memory_needed import in_words, n_weights_of_gguf

Say = Callable[[str, float], None]
"""Takes what is being done, and the fraction done. It raises where the work is to end."""

_SHARES = {"fetch": 0.8, "convert": 0.7}


@dataclass(frozen=True)
class Cost:
    """The cost of opening a checkpoint.

    Attributes:
        place: where it is.
        download: bytes to be fetched first.
        memory: bytes of its weights in the chosen number type; None where that is known only once it is here.
        converts: whether a GGUF file has to be converted first.
        task: what fetches it; None where it is here.
    """

    place: Place
    download: int = 0
    memory: int | None = None
    converts: bool = False
    task: Task | None = None

    @property
    def in_words(self) -> str:
        """One sentence."""
        parts = [f"{in_words(self.download)} to download"] if self.download else []
        if self.memory is not None:
            parts.append(f"{in_words(self.memory)} of memory")
        if self.converts:
            parts.append("converted once, which takes up to half a minute for 100 MB")
        return (
            f"{self.place.name}: {', '.join(parts)}." if parts else f"{self.place.name}: its size is not known yet."
        )


def cost_of(name: str | Place, dtype: str = "float32") -> Cost:
    """Return the cost of opening a checkpoint; asks the hub where it is not on this machine.

    Args:
        name: of the hub, a folder, a GGUF file, or a package; or its place, where that is known.
        dtype: the number type to load it in.

    Raises:
        ValueError: there is no such checkpoint, it cannot be read, or it takes too much memory; one sentence.
    """
    place = name if isinstance(name, Place) else place_of(name)
    cost = _cost(place, dtype)
    if cost.memory is not None:
        refuse_above(cost.memory, place.name)
    return cost


def _cost(place: Place, dtype: str) -> Cost:
    if place.path is None:
        asked: OnHub = ask_hub(place)
        memory = None if asked.n_weights is None else asked.n_weights * DTYPES[dtype].itemsize
        return Cost(place, sum((asked.task.files or {}).values()), memory, bool(place.file), asked.task)
    if place.path.suffix == ".gguf":
        memory = n_weights_of_gguf(place.path) * DTYPES[dtype].itemsize
        return Cost(place, memory=memory, converts=not converted_folder(place.path).exists())
    return Cost(place, memory=memory_of(place.path, dtype))


def open_checkpoint(
    cost: Cost, say: Say, *, dtype: str = "float32", device: str = "cpu", shelf: Shelf = SHELF
) -> Checkpoint:
    """Fetch, convert and load a checkpoint, as far as that is needed, and put it on the shelf.

    Args:
        cost: what it takes, which a person has seen.
        say: told how far it is.
        dtype: the number type.
        device: where to.
        shelf: where it is kept.

    Raises:
        ValueError: one of the steps failed; one sentence.
    """
    key: Key = (cost.place.name, dtype, device)
    if (found := shelf.get(key)) is not None:
        return found
    path, done = cost.place.path, 0.0
    if path is None and cost.task is not None:
        path = _do(cost.task, say, 0.0, _SHARES["fetch"])
        done = _SHARES["fetch"]
    if path is None:
        raise ValueError(f"{cost.place.name} holds no checkpoint.")
    if path.suffix == ".gguf":
        refuse_above(n_weights_of_gguf(path) * DTYPES["float32"].itemsize, cost.place.name)
        target = converted_folder(path)
        if not (target / "config.json").exists():
            task = Task("convert", str(path), str(target))
            path, done = _do(task, say, done, done + _SHARES["convert"] * (1 - done)), 0.9
        else:
            path = target
    say(f"Loading {cost.place.name}", max(done, 0.5))
    shelf.make_room(memory_of(path, dtype))
    checkpoint = load(cost.place.name, path, dtype=dtype, device=device)
    say(f"Loading {cost.place.name}", 1.0)  # where it was ended meanwhile, it is not kept
    return shelf.put(key, checkpoint)


def _do(task: Task, say: Say, start: float, end: float) -> Path:
    path = Path()
    with closing(fetch(task)) as reports:
        for report in reports:
            path = report.path
            if path == Path():  # else this task alone is done
                say(report.text, start + (end - start) * report.fraction)
    if path == Path():
        raise ValueError(f"{task.source} was not fetched.")
    return path
