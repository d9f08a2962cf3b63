"""A Transformer in NumPy, written from the papers for the tests alone.

It shares no line with the model, and goes other ways where it can: loops over batch and heads, a softmax over the
allowed keys alone, positions from ``math.sin``. Weights are the arrays of a ``state_dict`` under their names there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Weights = Mapping[str, Array]
Stages = dict[str, Array]


def under(weights: Weights, prefix: str) -> Weights:
    """The weights whose names start with a prefix, under the rest of their names."""
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}


def linear(weights: Weights, name: str, x: Array) -> Array:
    """x W^T + b over the last axis; without a bias where there is none."""
    return np.einsum("...i,oi->...o", x, weights[f"{name}.weight"]) + weights.get(f"{name}.bias", 0.0)


def apart(weights: Weights) -> Weights:
    """The weights of an attention with a fused projection cut into those of the three that it stands for."""
    found = dict(weights)
    for kind in ("weight", "bias"):
        if f"w_qkv.{kind}" in weights:
            fused = weights[f"w_qkv.{kind}"]
            found |= {f"w_{name}.{kind}": part for name, part in zip("qkv", np.split(fused, 3), strict=True)}
    return found


def softmax(scores: Array, allowed: Mask) -> Array:
    """Each row's softmax over its allowed cells; zero elsewhere."""
    weights = np.zeros_like(scores)
    for row, keys in enumerate(allowed):
        if keys.any():
            exponentials = np.exp(scores[row, keys] - scores[row, keys].max())
            weights[row, keys] = exponentials / exponentials.sum()
    return weights


def multi_head_attention(
    weights: Weights,
    query: Array,
    key: Array,
    value: Array,
    mask: Mask | None,
    *,
    n_heads: int,
    scale_scores: bool = True,
) -> Stages:
    """The weights (B, H, Tq, Tk), the context (B, H, Tq, Dh) and the output (B, Tq, d_out) of an attention."""
    weights = apart(weights)
    q, k, v = linear(weights, "w_q", query), linear(weights, "w_k", key), linear(weights, "w_v", value)
    n_batch, n_queries, n_keys = len(query), query.shape[1], key.shape[1]
    allowed = np.broadcast_to(True if mask is None else mask, (n_batch, n_heads, n_queries, n_keys))
    head_dim = q.shape[-1] // n_heads
    attention = np.zeros((n_batch, n_heads, n_queries, n_keys))
    context = np.zeros((n_batch, n_heads, n_queries, head_dim))
    for batch in range(n_batch):
        for head in range(n_heads):
            columns = slice(head * head_dim, (head + 1) * head_dim)
            scores = q[batch, :, columns] @ k[batch, :, columns].T
            if scale_scores:
                scores = scores / math.sqrt(head_dim)
            attention[batch, head] = softmax(scores, allowed[batch, head])
            context[batch, head] = attention[batch, head] @ v[batch, :, columns]
    concat = np.concatenate([context[:, head] for head in range(n_heads)], axis=-1)
    output = linear(weights, "w_o", concat) if "w_o.weight" in weights else concat
    return {"weights": attention, "context": context, "output": output}


def activate(x: Array, activation: str) -> Array:
    """ReLU, or GELU by the error function (Hendrycks and Gimpel 2016)."""
    if activation == "relu":
        return np.where(x > 0, x, 0.0)
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def feed_forward(weights: Weights, x: Array, activation: str) -> Array:
    """Two linear layers around an activation."""
    return linear(weights, "w_2", activate(linear(weights, "w_1", x), activation))


def layer_norm(weights: Weights, name: str, x: Array, epsilon: float) -> Array:
    """Each token to mean 0 and variance 1, then scaled and shifted."""
    centred = x - x.mean(-1, keepdims=True)
    normalised = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return weights[f"{name}.weight"] * normalised + weights[f"{name}.bias"]


def sinusoidal_encoding(length: int, d_model: int) -> Array:
    """Sines in the even columns, cosines in the odd ones ("Attention Is All You Need", section 3.5)."""

    def cell(position: int, column: int) -> float:
        angle = position / 10000 ** ((column - column % 2) / d_model)
        return math.cos(angle) if column % 2 else math.sin(angle)

    return np.array([[cell(position, column) for column in range(d_model)] for position in range(length)])


class NumpyTransformer:
    """A whole Transformer.

    Args:
        weights: every array of the ``state_dict``.
        config: the values of the ``TransformerConfig``, by name.
    """

    def __init__(self, weights: Weights, config: Mapping[str, object]) -> None:
        self.weights, self.config = weights, config
        self.pre_norm = config["norm"] == "pre"
        self.epsilon = float(str(config["layer_norm_eps"]))

    def run(
        self,
        source: NDArray[np.int64],
        target: NDArray[np.int64] | None = None,
        *,
        source_mask: Mask | None = None,
        target_mask: Mask | None = None,
        memory_mask: Mask | None = None,
    ) -> Stages:
        """The main stages by the paths of the trace, from the embeddings to the probabilities."""
        stages: Stages = {}
        if self.config["architecture"] == "encoder-decoder":
            memory = self._stack("encoder", source, source_mask, None, None, stages)
            x = self._stack("decoder", target, target_mask, memory, memory_mask, stages)
        else:
            x = self._stack(str(self.config["architecture"]), source, source_mask, None, None, stages)
        stages["logits"] = linear(self.weights, "unembedding", x)
        exponentials = np.exp(stages["logits"])
        stages["probabilities"] = exponentials / exponentials.sum(-1, keepdims=True)
        return stages

    def _stack(self, part, ids, mask, memory, memory_mask, stages) -> Array:
        x = stages[f"{part}.inputs.embedded"] = self._embedded(under(self.weights, f"{part}.inputs."), ids)
        n_layers = self.config["n_decoder_layers" if part == "decoder" else "n_layers"] or self.config["n_layers"]
        for layer in range(n_layers):
            x = self._layer(f"{part}.layers.{layer}", x, mask, memory, memory_mask, stages)
        if self.pre_norm or self.config["final_norm"]:
            x = stages[f"{part}.norm"] = layer_norm(self.weights, f"{part}.norm", x, self.epsilon)
        return x

    def _embedded(self, weights: Weights, ids: NDArray[np.int64]) -> Array:
        length, d_model = ids.shape[1], self.config["d_model"]
        x = weights["tokens.weight"][ids] * math.sqrt(d_model)
        if self.config["positions"] == "none":
            return x
        learned = self.config["positions"] == "learned"
        return x + (weights["positions.table"][:length] if learned else sinusoidal_encoding(length, d_model))

    def _layer(self, path, x, mask, memory, memory_mask, stages) -> Array:
        """One layer: each sub-layer between its norm and its residual connection."""
        sublayers = [lambda y: self._attention(f"{path}.self_attention", y, y, mask, stages)]
        if memory is not None:
            sublayers.append(lambda y: self._attention(f"{path}.cross_attention", y, memory, memory_mask, stages))
        sublayers.append(lambda y: self._feed_forward(f"{path}.feed_forward", y, stages))
        for number, sublayer in enumerate(sublayers, start=1):
            norm = f"{path}.norm{number}"
            if self.pre_norm:
                stages[norm] = layer_norm(self.weights, norm, x, self.epsilon)
                x = stages[f"{path}.residual{number}"] = x + sublayer(stages[norm])
            else:
                stages[f"{path}.residual{number}"] = x + sublayer(x)
                x = stages[norm] = layer_norm(self.weights, norm, stages[f"{path}.residual{number}"], self.epsilon)
        return x

    def _attention(self, path, query, memory, mask, stages) -> Array:
        found = multi_head_attention(
            under(self.weights, f"{path}."),
            query,
            memory,
            memory,
            mask,
            n_heads=self.config["n_heads"],
            scale_scores=self.config["scale_scores"],
        )
        stages.update({f"{path}.{name}": value for name, value in found.items()})
        return found["output"]

    def _feed_forward(self, path, x, stages) -> Array:
        output = stages[f"{path}.output"] = feed_forward(
            under(self.weights, f"{path}."), x, self.config["activation"]
        )
        return output
