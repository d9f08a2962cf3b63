"""Decoding with a key/value cache: what was computed of earlier tokens is not computed again.

Under a causal mask the keys and values of a token never change once it has been read. So the cache is the trace of
the pass before: its ``k`` and ``v`` go before the rows of the new tokens, which are all that the model is given.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from model.attention import MultiHeadAttention
from model.decoding import Reader, Tokens
from model.tracing import Trace
from model.transformer import Transformer

_OF_NEW_TOKENS = ("key_input", "value_input", "kv", "k_proj", "v_proj")


class CachedReader(Reader):
    """Runs the model over the new tokens only: the stages have the rows of these, and ``k`` and ``v`` those of all.

    The keys and values of the encoder's output are computed by the first pass and all cached by the later ones, in
    which the encoder does not run.
    """

    def __call__(self, tokens: Tokens, before: Trace | None = None) -> Trace:
        """Record a pass over the tokens that ``before``, a trace of any reader of this model, has not read.

        Raises:
            ValueError: as ``Reader``; or the mask lets a token see a later one, which would change its values.
        """
        for mask in self.target_mask_of(0, len(tokens)):
            if mask is None or mask.triu(1).any():
                raise ValueError("target_mask lets a token see a later one: a key/value cache needs a causal mask")
        if before is None:
            return super().__call__(tokens)
        n_read = before["decoder.layers.0.self_attention.k"].value.shape[-2]
        return self.run(reading_on(self.model, before), tokens, n_read)


def computed_rows(trace: Trace, attention: str) -> range:
    """Return the rows of K and V that one pass computed, the others being cached; without a cache, all.

    Args:
        trace: of any reader.
        attention: the path, such as ``decoder.layers.0.self_attention``.
    """
    n_keys, n_computed = (trace[f"{attention}.{name}"].value.shape[-2] for name in ("k", "k_proj"))
    return range(n_keys - n_computed, n_keys)


def reading_on(model: Transformer, before: Trace) -> Transformer:
    """The model as it is after a pass: given further tokens and where they stand, it goes on as if given all.

    It has the same parameters; the model itself stays as it is.
    """
    decoder = model.get_submodule("decoder")
    replacements: dict[str, nn.Module] = {}
    for path, module in decoder.named_modules(prefix="decoder"):
        if isinstance(module, MultiHeadAttention):
            cached = {name: before[f"{path}.{name}"].value for name in ("k", "v")}
            replacements[path] = CachedAttention(module, cached)
    if model.encoder is not None:
        replacements["encoder"] = _EncoderThatHasRun(model.unembedding.weight.new_empty(1, 0, model.config.d_model))
    return cast(Transformer, _with(replacements, model))


class CachedAttention(MultiHeadAttention):
    """An attention that is given the keys and values of new tokens alone, and has those of the others in a cache.

    Args:
        attention: whose parameters it uses.
        cached: ``k`` and ``v`` of the tokens before, (B, H, T, Dh).
    """

    def __init__(self, attention: MultiHeadAttention, cached: Mapping[str, Tensor]) -> None:
        nn.Module.__init__(self)  # its parent's would make parameters of its own
        vars(self).update(vars(attention))
        self.cached = cached

    def tap(self, name: str, value: Tensor, shape: str) -> Tensor:
        """As ever, but ``k`` and ``v`` begin with the cached rows; what comes before has rows for Tn new tokens."""
        if name in self.cached:
            return super().tap(name, torch.cat([self.cached[name], value], dim=2), shape)
        if name in _OF_NEW_TOKENS:
            shape = shape.replace("Tk", "Tn")
        return super().tap(name, value, shape)


class _EncoderThatHasRun(nn.Module):
    """In the encoder's place: (1, S) token ids -> (1, 0, d_model), for no row of its output is new."""

    def __init__(self, no_rows: Tensor) -> None:
        super().__init__()
        self.no_rows = no_rows

    def forward(self, ids: Tensor, mask: object, positions: object) -> Tensor:
        return self.no_rows


def _with(replacements: Mapping[str, nn.Module], module: nn.Module, path: str = "") -> nn.Module:
    """A copy of ``module`` with other modules at some paths, which shares everything else with it."""
    if path in replacements:
        return replacements[path]
    twin = copy.copy(module)
    twin._modules = {
        name: child and _with(replacements, child, f"{path}.{name}" if path else name)
        for name, child in module._modules.items()
    }
    return twin
