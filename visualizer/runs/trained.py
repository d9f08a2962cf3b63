"""Models that were trained on a task: the shipped ones, and those that were trained while the server runs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

from model.decoding import GREEDY, Reader, decode
from model.learning.checkpoints import Checkpoint, dump, load, shipped
from model.learning.tasks import EOS, LONGEST_SENTENCE, NEVER_WRITTEN, SPECIALS, TASKS, Ids, Task, prompt, sequences
from model.learning.training import MAX_LEN, model_with
from model.texts import texts_of
from visualizer import store
from visualizer.runs.refusals import RefusedError, WayOut
from visualizer.runs.tokens import Encoded, Vocabulary, padded_batch
from visualizer.settings.fitting import PLAIN
from visualizer.settings.lines import lines_of
from visualizer.settings.settings import Settings
from visualizer.settings.trained_models import TRAINED_MODELS

say = texts_of(__name__)

KEPT = 32
"""The most models that the process keeps at hand."""

LONGEST_ANSWER = LONGEST_SENTENCE
"""Tokens after which a model that does not end is stopped."""

_ENDING = ".safetensors"
_SHAPE = ("n_heads", "n_layers", "d_model", "d_ff", "norm", "positions", "scale_scores", "seed")


def keep(checkpoint: Checkpoint) -> str:
    """Put a model into the store, and give the name under which ``Settings.checkpoint`` finds it."""
    return store.put(dump(checkpoint), _ENDING)


def checkpoint_of(settings: Settings) -> Checkpoint:
    """The trained model that the settings name.

    Raises:
        ValueError: it is no longer in the store.
    """
    if not settings.checkpoint:
        return _shipped(settings.task)
    found = _kept(settings.checkpoint)
    if found.recipe.task != settings.task:
        raise ValueError(say("forgotten"))
    return found


@lru_cache(maxsize=KEPT)
def _kept(name: str) -> Checkpoint:
    content = store.get(name, _ENDING)
    if content is None:
        raise ValueError(say("forgotten"))
    return load(content)


def shape_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The settings that a training fixes."""
    recipe = checkpoint.recipe
    shape = {name: getattr(recipe, name) for name in _SHAPE}
    return {**shape, **PLAIN, "architecture": TASKS[recipe.task].architecture}


def masks_of_training(settings: Settings) -> tuple[str, ...]:
    """The masks that the trained model of some settings learned its task with; training hides what is padded.

    Raises:
        ValueError: it is no longer in the store.
    """
    recipe = checkpoint_of(settings).recipe
    is_padded = settings.pad > 0 or len(lines_of(settings.text)) > 1
    masks = TRAINED_MODELS[recipe.task].masks(is_padded)
    return masks if recipe.is_causal else tuple(name for name in masks if name != "causal")


def encode_trained(settings: Settings) -> Encoded:
    """The tokens of a task's texts, one per line, and what the model itself writes after each.

    Beside an encoder that is the target, ``<sos>`` and the answer; a decoder alone goes on from ``<sos>``, the text
    and ``<eos>``. It is written under the masks that the model was trained for, whatever masks are then looked at.

    Raises:
        ValueError: the model is no longer in the store.
        RefusedError: a text is none of the task, or has more positions with its padding than the model was trained
            with.
    """
    checkpoint = checkpoint_of(settings)
    task = TASKS[checkpoint.recipe.task]
    vocabulary = Vocabulary(tuple(task.symbols), SPECIALS)
    pairs = [_sequences(checkpoint, task, _read(task, line)) for line in lines_of(settings.text)]
    targets = [target for _, target in pairs if target is not None]
    pad, side = settings.pad, settings.pad_side
    _check_positions(settings, max(len(content) for content in chain([source for source, _ in pairs], targets)))
    return Encoded(
        vocabulary,
        padded_batch(vocabulary, [source for source, _ in pairs], pad, side),
        padded_batch(vocabulary, targets, pad, side) if targets else None,
    )


def _read(task: Task, line: str) -> str:
    try:
        return task.read(line)
    except ValueError as error:
        raise RefusedError(str(error), WayOut(say("by_hand"), {"weights": "hand_built"})) from error


def _check_positions(settings: Settings, longest: int) -> None:
    """Refuse more padding than there are positions for. On the left it takes none, unless a fault counts it."""
    room = MAX_LEN - longest
    takes_positions = settings.pad_side == "right" or settings.fault == "padding_counted"
    if settings.pad <= room or not takes_positions:
        return
    raise RefusedError(
        say("positions", n_positions=MAX_LEN, n_taken=longest, pad=settings.pad, room=room),
        WayOut(say("lower", room=room), {"pad": room}),
    )


def _sequences(checkpoint: Checkpoint, task: Task, text: str) -> tuple[Ids, Ids | None]:
    """The source and, beside an encoder, the target."""
    source = sequences(task, text).source
    if task.architecture == "encoder" or task.answer is None:
        return source, None
    model = model_with(checkpoint.recipe, checkpoint.weights)
    if task.architecture == "decoder":
        return _written(Reader(model), prompt(task, text)), None
    return source, _written(Reader(model, source), prompt(task, text))


def _written(reader: Reader, start: Ids) -> Ids:
    """The start with what the model writes after it, up to its ``<eos>``."""
    sampling = replace(GREEDY, never=NEVER_WRITTEN)
    steps = decode(reader, start, sampling, end=EOS, limit=LONGEST_ANSWER)
    return (*start, *(step.token for step in steps if step.token != EOS))


@lru_cache(maxsize=len(TASKS))
def _shipped(task: str) -> Checkpoint:
    return shipped(task)
