"""What a model makes of one text at one moment of its training: its answer, and where it looks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.analysis.metrics import Attention, expected_token
from model.decoding import Reader, decode
from model.learning.tasks import EOS, NOWHERE, PAD, TASKS, Ids, Task, expected_keys, make_batch, prompt, sequences
from model.learning.training import Recipe, Weights, model_with
from model.tracing import record
from model.transformer import Transformer
from visualizer.components.axis import Axis
from visualizer.runs.tokens import read_then_predicted
from visualizer.settings.training_settings import ATTENTIONS

_TOKENS_TOO_MANY = 2


@dataclass(frozen=True)
class Answer:
    """What a model writes, and what it should.

    Attributes:
        written: its tokens.
        right: the tokens of the right answer.
        ended: whether it ended by itself.
    """

    written: tuple[str, ...]
    right: tuple[str, ...]
    ended: bool

    @property
    def is_right(self) -> bool:
        """Whether it is the right answer, no more and no less."""
        return self.ended and self.written == self.right

    @property
    def judged(self) -> tuple[tuple[str, bool], ...]:
        """Each token that was written, and whether it is the right one at its place."""
        return tuple((token, self.right[place : place + 1] == (token,)) for place, token in enumerate(self.written))


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
        raise ValueError("the weights grew beyond every number: choose a smaller learning rate")
    return model_with(recipe, weights)


def answer(model: Transformer, task: Task, text: str) -> Answer:
    """The answer of a model to a text, written greedily."""
    given, right = sequences(task, text), tuple(task.answer(text))
    if task.architecture == "encoder":
        with torch.inference_mode():
            ids = model(torch.tensor([given.source])).argmax(-1)[0, : len(text)].tolist()
        return Answer(tuple(task.vocabulary[index] for index in ids), right, ended=True)
    reader = Reader(model, given.source if task.architecture == "encoder-decoder" else ())
    limit = len(right) + 1 + _TOKENS_TOO_MANY
    tokens = [step.token for step in decode(reader, prompt(task, text), end=EOS, limit=limit)]
    written = tuple(task.vocabulary[index] for index in tokens if index != EOS)
    return Answer(written, right, ended=tokens[-1] == EOS)


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
    given = sequences(task, text)
    source = _labels(task, given.source)
    if given.target is not None and kind == "encoder.self_attention":
        return Axis("query", source), Axis("key", source)
    read = source if given.target is None else _labels(task, given.target)
    right = ["" if label == PAD else task.vocabulary[label] for label in given.labels]
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
