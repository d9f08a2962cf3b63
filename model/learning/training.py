"""Train a Transformer on a toy task: the same modules that are traced, from explicit seeds alone.

Training twice from one recipe gives bitwise the same weights, whatever else the process does meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from model.config import Norm, Positions, TransformerConfig
from model.learning.adam import Adam
from model.learning.tasks import (
    PAD,
    TASKS,
    Batch,
    Task,
    allowed_words,
    held_out_texts,
    make_batch,
    training_texts,
)
from model.randomness import named_generator
from model.sources.weights import build_model
from model.texts import texts_of
from model.transformer import Transformer

say = texts_of(__name__)

Weights = Mapping[str, Tensor]
"""Every parameter of a model by its name."""

LIMITS: Mapping[str, tuple[int, int]] = {
    "d_model": (2, 128),
    "n_heads": (1, 16),
    "n_layers": (1, 4),
    "d_ff": (1, 512),
    "batch_size": (1, 256),
    "steps": (1, 20_000),
    "warmup": (0, 20_000),
    "seed": (0, 2**32 - 1),
}
"""The least and the greatest value of each whole number of a recipe: what trains in minutes."""

HIGHEST_RATE = 0.1

MAX_LEN = 64
"""The positions that a trained model has; the longest sequence of a task has 22."""

REPORT_EVERY = 10
"""A report comes after so many steps, and at each milestone."""

_MILESTONES = 20
_TEXTS = "training texts"
_HELD_OUT_TEXTS = 256
_LEAST_PROBABILITY = 1e-30


@dataclass(frozen=True)
class Recipe:
    """All that a training run depends on.

    Attributes:
        task: a name in ``TASKS``.
        d_model: width of the residual stream.
        n_heads: attention heads per layer; must divide ``d_model``.
        n_layers: layers of the encoder and of the decoder.
        d_ff: width of the hidden feed-forward layer.
        norm: ``post`` or ``pre``.
        positions: how positions enter.
        scale_scores: divide the scores by sqrt(head_dim).
        is_causal: whether the decoder's self-attention sees no later token while it is trained. When it writes,
            there is none yet.
        learning_rate: the highest, reached after the warm-up.
        warmup: steps over which the learning rate rises.
        batch_size: texts per step.
        steps: how often the weights are changed.
        seed: of the first weights and of the texts.

    Raises:
        ValueError: a value is out of its range; the message names it and what would do.
    """

    task: str
    d_model: int = 64
    n_heads: int = 4
    n_layers: int = 1
    d_ff: int = 128
    norm: Norm = "post"
    positions: Positions = "sinusoidal"
    scale_scores: bool = True
    is_causal: bool = True
    learning_rate: float = 1e-2
    warmup: int = 100
    batch_size: int = 32
    steps: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(say("unknown_task", task=self.task, names=", ".join(TASKS)))
        for name, (least, greatest) in LIMITS.items():
            if not least <= getattr(self, name) <= greatest:
                raise ValueError(
                    say("out_of_limits", name=name, value=getattr(self, name), least=least, greatest=greatest)
                )
        if not 0.0 < self.learning_rate <= HIGHEST_RATE:
            raise ValueError(say("learning_rate", learning_rate=self.learning_rate, highest=HIGHEST_RATE))
        _ = self.config

    @property
    def config(self) -> TransformerConfig:
        """The architecture. The final linear layer is its own: tied to the embeddings, it learns more slowly."""
        task = TASKS[self.task]
        return TransformerConfig(
            task.architecture,
            vocab_size=len(task.vocabulary),
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=self.d_ff,
            n_layers=self.n_layers,
            norm=self.norm,
            positions=self.positions,
            scale_scores=self.scale_scores,
            max_len=MAX_LEN,
            tied_embeddings=False,
        )


RECIPES: dict[str, Recipe] = {
    recipe.task: recipe
    for recipe in (
        Recipe("reverse"),
        Recipe("reverse_digits", d_model=32, d_ff=64, batch_size=64),
        Recipe("copy", d_model=32, d_ff=64, batch_size=64, steps=1500),
        Recipe("sort", d_model=32, d_ff=64, batch_size=64, steps=1500),
        Recipe("add", n_layers=2, learning_rate=5e-3, batch_size=64, steps=2500),
        Recipe("remove_vowels", d_model=32, d_ff=64, batch_size=64, steps=1500),
        Recipe("repeat_block", n_layers=2, learning_rate=5e-3),
        Recipe("match_brackets", d_model=32, d_ff=64, n_layers=2, learning_rate=5e-3, batch_size=64, steps=1500),
        Recipe("mark_repeats", d_model=32, d_ff=64, learning_rate=5e-3, batch_size=64, steps=1500),
        Recipe("small_english", n_layers=2, norm="pre", learning_rate=3e-3, batch_size=64, steps=2500),
        Recipe("small_translator", n_layers=2, norm="pre", learning_rate=3e-3, batch_size=64),
    )
}
"""For each task a recipe that answers nearly all held-out texts, by the name of the task.

The models that come with the program were trained by these. They are narrow where that is enough, to be small.
"""


@dataclass(frozen=True)
class Experiment:
    """Two recipes that differ in one thing, to be set side by side.

    Attributes:
        name: what code calls it.
        title: what a person reads.
        question: what to ask of the two results.
        intact: the recipe as it should be.
        changed: the same with one thing changed.
    """

    name: str
    title: str
    question: str
    intact: Recipe
    changed: Recipe


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "no_causal_mask",
            say("no_causal_mask"),
            say("no_causal_mask_question"),
            RECIPES["reverse"],
            replace(RECIPES["reverse"], is_causal=False),
        ),
        Experiment(
            "no_positions",
            say("no_positions"),
            say("no_positions_question"),
            RECIPES["reverse"],
            replace(RECIPES["reverse"], positions="none"),
        ),
        Experiment(
            "no_positions_sort",
            say("no_positions_sort"),
            say("no_positions_sort_question"),
            RECIPES["sort"],
            replace(RECIPES["sort"], positions="none"),
        ),
        Experiment(
            "no_scaling",
            say("no_scaling"),
            say("no_scaling_question"),
            RECIPES["reverse"],
            replace(RECIPES["reverse"], scale_scores=False),
        ),
        Experiment(
            "heads",
            say("heads"),
            say("heads_question"),
            replace(RECIPES["add"], n_heads=8, steps=1200),
            replace(RECIPES["add"], n_heads=1, steps=1200),
        ),
    )
}
"""The experiments on what a model can do without and what it cannot, by name."""


@dataclass(frozen=True, eq=False)
class Progress:
    """A training run at one moment.

    Attributes:
        step: how often the weights have been changed.
        loss: cross-entropy of these weights on new texts, in nats per token.
        exact_match: share of the held-out texts that these weights answer without a mistake; None except at
            ``milestones``.
        weights: a copy of every parameter.
    """

    step: int
    loss: float
    exact_match: float | None
    weights: Weights


def train(recipe: Recipe) -> Generator[Progress, None, None]:
    """Train a model, reporting from before the first step to after the last.

    To stop, ask for no more: each report holds all there is to keep. No global state of PyTorch is set or depended
    on, so that many can train at once.
    """
    task, held_out = TASKS[recipe.task], held_out_batch(TASKS[recipe.task])
    model = build_model(recipe.config, "random", recipe.seed)
    optimizer = Adam(model.parameters())
    generator = named_generator(recipe.seed, _TEXTS)
    evaluated = set(milestones(recipe.steps))
    for step in range(recipe.steps + 1):
        batch = make_batch(task, training_texts(task, recipe.batch_size, generator), is_causal=recipe.is_causal)
        with torch.enable_grad():
            loss = cross_entropy(model(*batch.inputs, **batch.masks), batch.labels)
        if step in evaluated or step % REPORT_EVERY == 0:
            matched = exact_match(model, held_out) if step in evaluated else None
            yield Progress(step, loss.item(), matched, copied_weights(model))
        if step < recipe.steps:
            optimizer.step(loss, learning_rate(recipe, step))


def milestones(steps: int) -> tuple[int, ...]:
    """The steps after which the held-out texts are asked, from 0 to the last; denser where it begins."""
    return tuple(sorted({round(steps * (i / _MILESTONES) ** 1.5) for i in range(_MILESTONES + 1)}))


def learning_rate(recipe: Recipe, step: int) -> float:
    """A linear warm-up times a decay along half a cosine (Loshchilov and Hutter 2017, equation 5, one cycle)."""
    warming = min(1.0, (step + 1) / (recipe.warmup + 1))
    return recipe.learning_rate * warming * (1 + math.cos(math.pi * step / recipe.steps)) / 2


def cross_entropy(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Mean of -log p over the right tokens; positions labelled ``PAD`` do not count.

    Args:
        probabilities: (B, T, V).
        labels: (B, T).
    """
    return F.nll_loss(_logarithms(probabilities), labels.flatten(), ignore_index=PAD)


def token_losses(probabilities: Tensor, labels: Tensor) -> Tensor:
    """-log p of each right token, (B, T), of which ``cross_entropy`` is the mean; 0 where the label is ``PAD``."""
    losses = F.nll_loss(_logarithms(probabilities), labels.flatten(), ignore_index=PAD, reduction="none")
    return losses.reshape(labels.shape)


def _logarithms(probabilities: Tensor) -> Tensor:
    """(B, T, V) -> (B T, V)."""
    return probabilities.clamp_min(_LEAST_PROBABILITY).log().flatten(0, 1)


def texts_of_step(recipe: Recipe, step: int) -> list[str]:
    """The texts whose loss ``train`` reports for a step, and from whose gradient the next step is taken."""
    generator = named_generator(recipe.seed, _TEXTS)
    for _ in range(step):
        training_texts(TASKS[recipe.task], recipe.batch_size, generator)
    return training_texts(TASKS[recipe.task], recipe.batch_size, generator)


def held_out_batch(task: Task, n: int = _HELD_OUT_TEXTS) -> Batch:
    """Held-out texts of a task, the same ones every time."""
    texts = held_out_texts(task, n, named_generator(0, f"held-out {task.name}"))
    batch = make_batch(task, texts)
    return replace(batch, allowed=allowed_words(task, texts)) if task.answer is None else batch


def exact_match(model: Transformer, batch: Batch) -> float:
    """Share of the texts that greedy decoding answers without a mistake, the ``EOS`` after the answer included.

    Where a text is continued, of those at each of whose words the most likely next one is one that may come there.

    One pass over the right answers decides it: decoding goes wrong exactly if somewhere, after nothing but right
    tokens, another one than the right one is the most likely. Later tokens are hidden by the causal mask.

    Args:
        model: what is asked.
        batch: with a causal mask, whatever the model was trained with.
    """
    with torch.no_grad():
        chosen = model(*batch.inputs, **batch.masks).argmax(-1)
    right = chosen == batch.labels
    if batch.allowed is not None:
        right |= batch.allowed.gather(-1, chosen[..., None])[..., 0]
    return float((right | (batch.labels == PAD)).all(-1).double().mean())


def copied_weights(model: Transformer) -> Weights:
    """A copy of every parameter."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def model_with(recipe: Recipe, weights: Weights) -> Transformer:
    """The model of a recipe with given weights, in evaluation mode.

    Raises:
        ValueError: the weights are not those of such a model.
    """
    model = Transformer(recipe.config).eval()
    parameters = dict(model.named_parameters())
    if unmatched := sorted(parameters.keys() ^ weights.keys()):
        raise ValueError(say("other_weights", name=unmatched[0]))
    with torch.no_grad():
        for name, parameter in parameters.items():
            if weights[name].shape != parameter.shape:
                shape, needed = tuple(weights[name].shape), tuple(parameter.shape)
                raise ValueError(say("other_shape", name=name, shape=shape, needed=needed))
            parameter.copy_(weights[name])
    return model
