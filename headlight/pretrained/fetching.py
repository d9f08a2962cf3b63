"""Slow work in a process of its own: fetching a checkpoint, and converting a GGUF file to safetensors.

A process can be ended at any moment, whatever library is at work in it, and leaves the interpreter to the page.
``fetch`` starts this module as a program: it is given a task as JSON, and writes a line of JSON for each report.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal

from headlight.pretrained.places import (
    Place,
    cache_folder,
    repository_of,
    wanted,
    without_weights,
)

UNREACHED = (
    "The hub cannot be reached from here: take a checkpoint that is on this machine, a folder, or a GGUF file."
)
"""The sentence where there is no network."""

_logger = logging.getLogger(__name__)
_COMMAND = (sys.executable, "-m", "headlight.pretrained.fetching")
_ROOT = Path(__file__).parents[2]
_EVERY_BYTES = 2**20
_TRIED_SECONDS = 10
_BEAT_SECONDS = 0.5


@dataclass(frozen=True)
class Task:
    """The task of a process.

    Attributes:
        kind: fetch from the hub, or convert.
        source: a repository, or a GGUF file.
        target: the folder that it goes to; of the hub, which has its own, "".
        revision: of a repository, its exact state; else "".
        files: of a repository, the files to fetch and their sizes in bytes.
    """

    kind: Literal["hub", "convert"]
    source: str
    target: str = ""
    revision: str = ""
    files: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Report:
    """The progress of a process.

    Attributes:
        text: what it is doing.
        fraction: how much is done, from 0 to 1.
        path: at the end, the folder or the file that it made.
    """

    text: str
    fraction: float
    path: Path | None = None


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
        Task("hub", repository, "", str(about.sha or "main"), chosen),
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
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TQDM_DISABLE": "1"}
    with subprocess.Popen(
        _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as process:
        try:
            given, lines = process.stdin, process.stdout
            if given is None or lines is None:
                raise ValueError("The process that fetches has no pipes.")
            given.write(json.dumps(asdict(task)).encode())
            given.close()
            last = Report("Starting", 0.0)
            for line in _lines_and_beats(lines):
                if line:
                    report = json.loads(line)
                    if "failure" in report:
                        raise ValueError(report["failure"])
                    path = Path(report["path"]) if "path" in report else None
                    last = Report(report["text"], report["fraction"], path)
                yield last
            if process.wait() != 0:
                raise ValueError(f"The process that fetches ended with {process.returncode}.")
        finally:
            if process.poll() is None:
                _end(process)
                if task.target:
                    shutil.rmtree(_rough(Path(task.target), process.pid), ignore_errors=True)


def _lines_and_beats(stream: IO[bytes]) -> Generator[bytes]:
    """Each line of a stream, and nothing twice a second where none comes, so that whoever waits can end it."""
    waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            waiting.put(line)
        waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = waiting.get(timeout=_BEAT_SECONDS)
        except queue.Empty:
            yield b""
            continue
        if line is None:
            return
        yield line


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


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
def _folder_in_place_of(target: Path) -> Generator[Path]:
    """A folder beside the target, which becomes it once all is done: half of a checkpoint is never found."""
    rough = _rough(target, os.getpid())
    rough.mkdir(parents=True)
    try:
        yield rough
        if target.exists():
            shutil.rmtree(target)
        rough.rename(target)
    finally:
        shutil.rmtree(rough, ignore_errors=True)


def _rough(target: Path, process: int) -> Path:
    """Return the path of a target while a process writes it."""
    return target.with_name(f".{target.name}-{process}")


def _convert(task: Task, say: Say) -> Path:
    """Write the weights of a GGUF file as safetensors in float32, with its configuration and tokenizer."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging as messages

    messages.disable_progress_bar()  # type: ignore[no-untyped-call]
    source, target = Path(task.source), Path(task.target)
    say("Reading the tokenizer", 0.02)
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
    say("Converting the weights", 0.3)
    model = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32, local_files_only=True
    )
    say("Writing them down", 0.95)
    with _folder_in_place_of(target) as folder:
        tokenizer.save_pretrained(folder)
        config = model.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config  # the numbers are plain ones now
        config.architectures = [type(model).__name__]
        config.save_pretrained(folder)
        tied = set(model.all_tied_weights_keys)
        weights = {name: value.contiguous() for name, value in model.state_dict().items() if name not in tied}
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return target


_TASKS: Mapping[str, Callable[[Task, Say], Path]] = {"hub": _from_hub, "convert": _convert}


def main() -> None:
    """Do the task that is given, and write how far it is."""
    task = Task(**json.load(sys.stdin))
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere

    def write(**report: object) -> None:
        print(json.dumps(report), file=output, flush=True)

    try:
        path = _TASKS[task.kind](task, lambda text, fraction: write(text=text, fraction=fraction))
        write(text="Done", fraction=1.0, path=str(path))
    except Exception as error:
        _logger.exception("A task failed")
        write(failure=_sentence_of(error, task))


def _sentence_of(error: Exception, task: Task) -> str:
    if isinstance(error, ValueError) and task.kind != "convert":
        return str(error)
    reason = (str(error) or type(error).__name__).strip().splitlines()[0]
    if task.kind == "convert":
        return f"{Path(task.source).name} cannot be converted: {reason}"
    return f"{task.source} cannot be fetched: {reason}"


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # whoever asked has gone
        os._exit(1)
