"""Slow work in a process of its own: fetching a checkpoint, and converting a GGUF file to safetensors.

``fetch`` starts this module as a program, which reads a task and writes a frame of JSON for each report.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import shutil
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from headlight.pretrained.checkpoint_places import (
    Place,
    cache_folder,
    reason_in_words,
    repository_of,
    wanted,
    without_weights,
)
from headlight.process import frames_of, work

UNREACHED = (
    "The hub cannot be reached from here: take a checkpoint that is on this machine, a folder, or a GGUF file."
)
"""The sentence where there is no network."""

_logger = logging.getLogger(__name__)
_COMMAND = (sys.executable, "-m", "headlight.pretrained.fetching")
_EVERY_BYTES = 2**20
_TRIED_SECONDS = 10


@dataclass(frozen=True)
class Task:
    """The task of a process.

    Attributes:
        kind: fetch from the hub, or convert.
        source: a repository, or a GGUF file.
        target: the folder that it goes to; of the hub, which has its own, "".
        rough: of a file, the folder that is written first.
        revision: of a repository, its exact state; else "".
        files: of a repository, the files to fetch and their sizes in bytes.
    """

    kind: Literal["hub", "convert"]
    source: str
    target: str = ""
    rough: str = ""
    revision: str = ""
    files: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Report:
    """The progress of a process.

    Attributes:
        text: what it is doing.
        fraction: how much is done, from 0 to 1.
        path: the folder or the file that it made; at the end alone there is one.
    """

    text: str
    fraction: float
    path: Path = Path()


@dataclass(frozen=True)
class OnHub:
    """The hub's description of a repository.

    Attributes:
        task: what fetches it.
        n_weights: how many numbers it holds; None where the hub does not say.
    """

    task: Task
    n_weights: int | None


def ask_hub(place: Place) -> OnHub:
    """Ask the hub what there is to fetch from a repository.

    Raises:
        ValueError: the hub cannot be reached, has no such repository, or has no weights in it that are read.
    """
    from huggingface_hub import HfApi

    repository = repository_of(place)
    with _sentences(repository):
        about = HfApi().model_info(repository, files_metadata=True, timeout=_TRIED_SECONDS)
    files = {file.rfilename: file.size or 0 for file in about.siblings or ()}
    if place.file:
        if place.file not in files:
            raise ValueError(f"{repository} has no file {place.file} on the hub.")
        chosen = {place.file: files[place.file]}
    else:
        chosen = wanted(files)
        if not any(file.endswith(".safetensors") for file in chosen):
            ggufs = [file for file in files if file.endswith(".gguf")]
            if ggufs:
                raise ValueError(
                    f"{repository} holds GGUF files: name one of them, such as {repository}/{ggufs[0]}."
                )
            raise ValueError(without_weights(repository, iter(files)))
    numbers = getattr(about, "safetensors", None)
    return OnHub(
        Task("hub", repository, revision=str(about.sha or "main"), files=chosen),
        None if numbers is None or place.file else numbers.total,
    )


def converted_folder(file: Path) -> Path:
    """Return the folder of a GGUF file's safetensors: named by its path, size and time, so a changed one is new."""
    state = file.stat()
    text = f"{file.resolve()} {state.st_size} {state.st_mtime_ns}"
    return cache_folder() / "converted" / f"{file.stem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def fetch(task: Task) -> Generator[Report]:
    """Do a task in a process of its own, which ends with the last report or when no more is asked for.

    Raises:
        ValueError: it cannot be done; one sentence says why.
    """
    last = Report("Starting", 0.0)
    if task.target:
        task = replace(task, rough=str(_rough(Path(task.target))))
    try:
        for frame in frames_of(_COMMAND, asdict(task)):
            if frame:
                report = json.loads(frame)
                if "failure" in report:
                    raise ValueError(report["failure"])
                last = Report(report["text"], report["fraction"], Path(report["path"]))
            yield last
    except RuntimeError as error:
        raise ValueError(f"It was not fetched: {error}.") from error
    finally:
        if task.rough:
            shutil.rmtree(task.rough, ignore_errors=True)


@contextmanager
def _sentences(name: str) -> Generator[None]:
    """Turn errors between here and the hub into one sentence."""
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise ValueError(f"{name} is given out on the hub only to those who agreed to its terms there.") from error
    except errors.RepositoryNotFoundError as error:
        raise ValueError(f"The hub has no model {name}, or it is private.") from error
    except (errors.OfflineModeIsEnabled, httpx2.TransportError, ConnectionError, TimeoutError) as error:
        raise ValueError(UNREACHED) from error
    except errors.LocalEntryNotFoundError as error:
        raise ValueError(UNREACHED) from error
    except errors.HfHubHTTPError as error:
        raise ValueError(f"The hub refused {name}: {str(error).splitlines()[0]}") from error


Say = Callable[[str, float], None]


def _from_hub(task: Task, say: Say) -> Path:
    """Fetch the files of a repository one after the other into the hub's cache; begun ones are continued."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import tqdm

    files = dict(task.files or {})
    total, done = sum(files.values()) or 1, 0
    most_said = 0

    class Bar(tqdm):
        """Tells how many bytes there are, in place of drawing it."""

        def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **{**more, "disable": True})  # type: ignore[no-untyped-call]
            self.here = more.get("initial") or 0

        def update(self, n: float | None = 1) -> None:
            nonlocal most_said
            self.here += n or 0
            reached = done + min(int(self.here), size)
            if reached - most_said >= _EVERY_BYTES:
                most_said = reached
                say(f"Fetching {task.source}", reached / total)

    say(f"Fetching {task.source}", 0.0)
    path = Path()
    for name, size in sorted(files.items(), key=lambda file: file[1]):
        with _sentences(task.source):
            path = Path(hf_hub_download(task.source, name, revision=task.revision, tqdm_class=Bar))
        done += size
    _note_main(path.parent)
    return path if path.suffix == ".gguf" else path.parent


def _note_main(snapshot: Path) -> None:
    """Have the cache know this state of a repository as its main one, as if it had been asked for by that name."""
    main = snapshot.parent.parent / "refs" / "main"
    main.parent.mkdir(exist_ok=True)
    main.write_text(snapshot.name)


@contextmanager
def _folder_in_place_of(target: Path, rough: Path) -> Generator[Path]:
    """A folder beside the target, which becomes it once all is done: half of a checkpoint is never found."""
    rough.mkdir(parents=True)
    try:
        yield rough
        if target.exists():
            shutil.rmtree(target)
        rough.rename(target)
    finally:
        shutil.rmtree(rough, ignore_errors=True)


def _rough(target: Path) -> Path:
    """A path of its own for a target while it is written."""
    return target.with_name(f".{target.name}-{secrets.token_hex(8)}")


def _convert(task: Task, say: Say) -> Path:
    """Write the weights of a GGUF file as safetensors in float32, with its configuration and tokenizer."""
    import gguf
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer, modeling_gguf_pytorch_utils
    from transformers.utils import logging as messages

    messages.disable_progress_bar()  # type: ignore[no-untyped-call]
    source, target = Path(task.source), Path(task.target)
    # The file would be read three times, and the names of its tensors listed again for every module.
    gguf.GGUFReader = cache(gguf.GGUFReader)  # type: ignore[misc, assignment]
    gguf.get_tensor_name_map = cache(gguf.get_tensor_name_map)
    say("Reading the tokenizer", 0.02)
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
    say("Converting the weights", 0.5)

    def told(tensors: Sequence[Any], **_: object) -> Generator[Any]:
        for done, tensor in enumerate(tensors):
            say("Converting the weights", 0.6 + 0.3 * done / len(tensors))
            yield tensor

    modeling_gguf_pytorch_utils.tqdm = told  # its progress bar, which this process has no other use for
    kind: Any = AutoModelForCausalLM
    model, info = kind.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32, local_files_only=True, output_loading_info=True
    )
    say("Writing them down", 0.95)
    with _folder_in_place_of(target, Path(task.rough)) as folder:
        tokenizer.save_pretrained(folder)
        config = model.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config  # the numbers are plain ones now
        config.architectures = [type(model).__name__]
        config.save_pretrained(folder)
        left_out = {*model.all_tied_weights_keys, *info["missing_keys"]}  # what is random is no weight of the file
        weights = {name: value.contiguous() for name, value in model.state_dict().items() if name not in left_out}
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return target


_TASKS: Mapping[str, Callable[[Task, Say], Path]] = {"hub": _from_hub, "convert": _convert}


def main(fields: Mapping[str, Any], write: Callable[[bytes], None]) -> None:
    """Do the task that is given, and write how far it is."""
    task = Task(**fields)

    def say(text: str, fraction: float, path: Path = Path()) -> None:
        write(json.dumps({"text": text, "fraction": fraction, "path": str(path)}).encode())

    try:
        say("Done", 1.0, _TASKS[task.kind](task, say))
    except Exception as error:
        _logger.exception("A task failed")
        write(json.dumps({"failure": _sentence_of(error, task)}).encode())


def _sentence_of(error: Exception, task: Task) -> str:
    if isinstance(error, ValueError) and task.kind != "convert":
        return str(error)
    reason = reason_in_words(error)
    if task.kind == "convert":
        return f"{Path(task.source).name} cannot be converted: {reason}"
    return f"{task.source} cannot be fetched: {reason}"


if __name__ == "__main__":
    work(main)
