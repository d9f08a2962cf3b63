"""The behaviour of a model on one text at one moment of its training: its answer, and where it looks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.analysis.metrics import Attention, expected_token
from model.decoding import Reader, decode
from model.learning.grammar import END, NOWHERE, next_words
from model.learning.tasks import (
    EOS,
    LONGEST_SENTENCE,
    PAD,
    TASKS,
    Ids,
    Task,
    expected_keys,
    make_batch,
    prompt,
    sequences,
)
from model.learning.training import Recipe, Weights, model_with
from model.texts import texts_of
from model.tracing import record
from model.transformer import Transformer
from visualizer.components.axis import Axis
from visualizer.runs.tokens import read_then_predicted
from visualizer.settings.training_settings import ATTENTIONS

say = texts_of(__name__)

_TOKENS_TOO_MANY = 2


@dataclass(frozen=True)
class Answer:
    """The answer of a model, and the right one.

    Attributes:
        symbols: its tokens.
        judged: of each of them whether it is right at its place.
        is_right: whether it is right as a whole, no more and no less.
        ended: whether it ended by itself.
        note: one sentence on it.
    """

    symbols: tuple[str, ...]
    judged: tuple[bool, ...]
    is_right: bool
    ended: bool
    note: str


@dataclass(frozen=True, eq=False)
class Heads:
    """Every head of one attention.

    Attributes:
        weights: (H, Tq, Tk).
        blocked: (Tq, Tk), 1 where the causal mask blocks; None without one.
        rows: the queries, each with the token that is right there: ``<sos> → t``.
        columns: the keys.
        expected: of each head the mean weight on the key that the task asks for; None where it asks for none.
    """

    weights: NDArray[np.float32]
    blocked: NDArray[np.uint8] | None
    rows: Axis
    columns: Axis
    expected: tuple[float, ...] | None


def trained_model(recipe: Recipe, weights: Weights) -> Transformer:
    """The model at one moment.

    Raises:
        ValueError: its weights are no numbers any more.
    """
    if not all(bool(weight.isfinite().all()) for weight in weights.values()):
        raise ValueError(say("no_numbers"))
    return model_with(recipe, weights)


def answer(model: Transformer, task: Task, text: str) -> Answer:
    """The answer of a model to a text, written greedily."""
    sequence = sequences(task, text)
    if task.architecture == "encoder":
        with torch.inference_mode():
            ids = model(torch.tensor([sequence.source])).argmax(-1)[0, : len(task.split(text))].tolist()
        return compared(task, text, tuple(task.vocabulary[index] for index in ids), ended=True)
    reader = Reader(model, sequence.source if task.architecture == "encoder-decoder" else ())
    limit = LONGEST_SENTENCE if task.answer is None else len(task.right_tokens(text)) + 1 + _TOKENS_TOO_MANY
    tokens = [step.token for step in decode(reader, prompt(task, text), end=EOS, limit=limit)]
    symbols = tuple(task.vocabulary[index] for index in tokens if index != EOS)
    ended = tokens[-1] == EOS
    return continued(task, text, symbols, ended) if task.answer is None else compared(task, text, symbols, ended)


def compared(task: Task, text: str, symbols: tuple[str, ...], ended: bool) -> Answer:
    """An answer beside the right one."""
    right = task.right_tokens(text)
    judged = tuple(right[place : place + 1] == (token,) for place, token in enumerate(symbols))
    is_right = ended and symbols == right
    note = say("right") if is_right else say("right_is", right=task.joined(right))
    return Answer(symbols, judged, is_right, ended, note)


def continued(task: Task, text: str, symbols: tuple[str, ...], ended: bool) -> Answer:
    """A continuation, each word of which is right where some sentence of the grammar goes on so."""
    words = (*task.split(text), *symbols)
    first = len(words) - len(symbols)
    judged = tuple(words[place] in next_words(words[:place]) for place in range(first, len(words)))
    is_right = ended and all(judged) and END in next_words(words)
    return Answer(symbols, judged, is_right, ended, say("sentence") if is_right else say("no_sentence"))


def heads(model: Transformer, recipe: Recipe, text: str, kind: str, layer: int) -> Heads:
    """One attention while the model reads a text and its right answer, as it does in training.

    Args:
        model: of the recipe.
        recipe: what it was trained by.
        text: one of its task.
        kind: the attention, one of ``ATTENTIONS``.
        layer: of the attention.
    """
    task = TASKS[recipe.task]
    batch = make_batch(task, [text], is_causal=recipe.is_causal)
    with torch.inference_mode(), record(model) as trace:
        model(*batch.inputs, **batch.masks)
    stack, _, attention = kind.partition(".")
    weights = trace[f"{stack}.layers.{layer}.{attention}.weights"].value
    rows, columns = _axes(task, text, kind)
    return Heads(
        weights=weights[0].numpy(),
        blocked=_later(len(rows.labels)) if kind == "decoder.self_attention" and recipe.is_causal else None,
        rows=rows,
        columns=columns,
        expected=_expected(task, text, weights) if kind == ATTENTIONS[task.architecture][0] else None,
    )


def _later(n_tokens: int) -> NDArray[np.uint8]:
    later: NDArray[np.uint8] = np.triu(np.ones((n_tokens, n_tokens), np.uint8), 1)
    return later


def _axes(task: Task, text: str, kind: str) -> tuple[Axis, Axis]:
    sequence = sequences(task, text)
    source = _labels(task, sequence.source)
    if sequence.target is not None and kind == "encoder.self_attention":
        return Axis("query", source), Axis("key", source)
    read = source if sequence.target is None else _labels(task, sequence.target)
    right = ["" if label == PAD else task.vocabulary[label] for label in sequence.labels]
    rows = Axis("query", read_then_predicted(read, right))
    return rows, Axis("key", source if kind == "decoder.cross_attention" else read)


def _labels(task: Task, ids: Ids) -> tuple[str, ...]:
    return tuple(task.vocabulary[index] for index in ids)


def _expected(task: Task, text: str, weights: Tensor) -> tuple[float, ...] | None:
    """The share of each head's weight that lies on the expected keys; None where no key is expected."""
    keys = torch.tensor([expected_keys(task, text)])
    if bool((keys == NOWHERE).all()):
        return None
    n_queries, n_keys = weights.shape[-2:]
    queries, read = torch.zeros(1, n_queries, dtype=torch.long), torch.zeros(1, n_keys, dtype=torch.long)
    attention = Attention(
        weights, queries, read, queries > 0, read > 0, is_self_attention=False, expected_keys=keys
    )
    return tuple(expected_token(attention).tolist())
