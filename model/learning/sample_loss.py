"""The loss of one text laid open: every token's share of it, and the gradient that it sends into every layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from model.learning.tasks import PAD, TASKS, Batch, Ids, make_batch
from model.learning.training import Recipe, Weights, cross_entropy, model_with, token_losses


@dataclass(frozen=True, eq=False)
class SampleLoss:
    """The loss of one text, position by position.

    Attributes:
        read: the token that stands at each position of the last sequence; beside an encoder that is the answer
            shifted right, from ``SOS`` on.
        labels: the token that is right there, ``PAD`` where none is asked for.
        probabilities: what the model gives to each label.
        losses: -log of that, in nats; 0 where the label is ``PAD``.
        mean: of the losses over the labels that are not ``PAD``: what is differentiated.
        gradient: the norm of the gradient of ``mean`` by the parameters of each part of the model, in its order.
    """

    read: Ids
    labels: Ids
    probabilities: tuple[float, ...]
    losses: tuple[float, ...]
    mean: float
    gradient: Mapping[str, float]

    @property
    def n_counted(self) -> int:
        """The number of labels that are not ``PAD``."""
        return sum(label != PAD for label in self.labels)

    @property
    def layers(self) -> Mapping[str, float]:
        """The norm of the gradient by the parameters of each layer, or of what stands before and after them."""
        squares: dict[str, float] = {}
        for part, norm in self.gradient.items():
            squares[layer_of(part)] = squares.get(layer_of(part), 0.0) + norm**2
        return {layer: math.sqrt(square) for layer, square in squares.items()}

    @property
    def whole_gradient(self) -> float:
        """The norm of the gradient by all parameters."""
        return math.hypot(*self.gradient.values())


def sample_loss(recipe: Recipe, weights: Weights, text: str, *, n_padding: int = 0) -> SampleLoss:
    """Lay the loss of a text open, on a model of its own with these weights.

    Args:
        recipe: of the model; it says whether the decoder sees later tokens.
        weights: every parameter.
        text: one of the task.
        n_padding: how many positions of padding follow, as in a batch with a longer text.
    """
    batch = make_batch(TASKS[recipe.task], [text], is_causal=recipe.is_causal, n_padding=n_padding)
    model = model_with(recipe, weights)
    with torch.enable_grad():
        probabilities = model(*batch.inputs, **batch.masks)
        mean = cross_entropy(probabilities, batch.labels)
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(mean, parameters)
    return _laid_open(batch, probabilities.detach(), mean.item(), dict(zip(names, gradients, strict=True)))


def _laid_open(batch: Batch, probabilities: Tensor, mean: float, gradients: Mapping[str, Tensor]) -> SampleLoss:
    labels = batch.labels[0]
    right = probabilities[0].gather(-1, labels[:, None])[:, 0]
    losses = token_losses(probabilities, batch.labels)[0]
    squares: dict[str, float] = {}
    for name, gradient in gradients.items():
        squares[part_of(name)] = squares.get(part_of(name), 0.0) + gradient.double().square().sum().item()
    return SampleLoss(
        read=tuple(batch.inputs[-1][0].tolist()),
        labels=tuple(labels.tolist()),
        probabilities=tuple(right.tolist()),
        losses=tuple(losses.tolist()),
        mean=mean,
        gradient={part: math.sqrt(square) for part, square in squares.items()},
    )


def part_of(parameter: str) -> str:
    """``encoder.layers.0.norm1.bias`` -> ``encoder.layers.0.norm1``; ``unembedding.weight`` -> ``unembedding``."""
    pieces = parameter.split(".")
    if "layers" in pieces:
        return ".".join(pieces[: pieces.index("layers") + 3])
    return ".".join(pieces[:2] if len(pieces) > 2 else pieces[:1])


def layer_of(part: str) -> str:
    """``encoder.layers.0.norm1`` -> ``encoder.layers.0``; what is in no layer stands for itself."""
    pieces = part.split(".")
    return ".".join(pieces[: pieces.index("layers") + 2]) if "layers" in pieces else part
