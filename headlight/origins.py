"""The sequences that tensors were computed from, followed while a model runs: they tell self- from cross-attention.

A sequence begins where a model is given vectors, or looks up ids that it is given. What is made on the way, such as
positions and masks, begins none, and of what was lost on the way, as in compiled code, nothing is said.
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

from torch import Tensor, nn

from headlight.modules import Arguments, Function, Keywords, RunningModules
from headlight.passes import LOOK_UPS, tensors_in
from model.dataflow import name_of


class Origins(NamedTuple):
    """The sequences that the queries and the keys of an attention were computed from, one bit for each."""

    query: int = 0
    key: int = 0

    @property
    def differ(self) -> bool:
        """True where the queries come from a sequence that the keys do not, or from none and the keys from one."""
        return bool(self.query & ~self.key) or (not self.query and bool(self.key))


UNKNOWN = Origins()
"""Those of queries and keys that were not followed."""


class FollowedOrigins:
    """Knows of each tensor what it was computed from: one bit for each tensor met first, and for each look-up."""

    def __init__(self, modules: RunningModules, *, is_needed: bool) -> None:
        self._modules = modules
        self._is_needed = is_needed
        self._known: dict[int, tuple[weakref.ref[Tensor], int]] = {}
        self._n_bits = 0
        self._met_first: dict[int, weakref.ref[Tensor]] = {}
        self._looked_up: dict[int, int] = {}
        self._given = 0
        for module in modules.named.values() if is_needed else ():
            for value in (*vars(module).values(), *module._buffers.values()):
                if isinstance(value, Tensor):
                    self._keep(value, 0)

    def of(self, tensor: object) -> int:
        """The bits of what a tensor was computed from."""
        known = self._known.get(id(tensor))
        if known is not None and known[0]() is tensor:
            return known[1]
        if not isinstance(tensor, Tensor) or isinstance(tensor, nn.Parameter):
            return 0
        bit = self._next()
        self._met_first[bit] = weakref.ref(tensor)
        if not self._modules.are_running:
            self._given |= bit
        return self._keep(tensor, bit)

    def of_both(self, query: Tensor, key: Tensor) -> Origins:
        """The bits of the queries and the keys of an attention."""
        return Origins(self.of(query), self.of(key)) if self._is_needed and self._modules.are_running else UNKNOWN

    def given(self, values: object) -> None:
        """Take note of what a model was given."""
        for tensor in tensors_in(values):
            bits = self.of(tensor)
            if bits in self._met_first and self._met_first[bits]() is tensor:
                self._given |= bits

    def take_over(self, old: object, new: object) -> None:
        """Count what stands in the place of an output as computed from the same."""
        for before, after in zip(tensors_in(old), tensors_in(new), strict=False):
            self._keep(after, self.of(before))

    def see(self, function: Function, args: Arguments, kwargs: Keywords, output: object) -> None:
        """Take note of one call of a function. What is made outside of the model comes in from there."""
        if not self._is_needed:
            return
        inputs = tensors_in((args, kwargs))
        if not inputs and not self._modules.are_running:
            return
        of_vectors = of_ids = 0
        for tensor in inputs:
            if tensor.dtype.is_floating_point:
                of_vectors |= self.of(tensor)
            else:
                of_ids |= self.of(tensor)
        name = name_of(function)
        if of_ids and name in LOOK_UPS and any(isinstance(tensor, nn.Parameter) for tensor in inputs):
            bit = self._next()
            self._looked_up[bit] = of_ids
            of_vectors |= bit
        for tensor in inputs[:1] if name == "setitem" else tensors_in(output):
            self._keep(tensor, of_vectors if tensor.dtype.is_floating_point else of_ids)

    def settled(self, origins: Origins) -> Origins:
        """The sequences of queries and keys, once all that the model was given is known."""
        lost = sum(self._met_first) & ~self._given
        lost |= sum(bit for bit, of_ids in self._looked_up.items() if of_ids & lost)
        return UNKNOWN if (origins.query | origins.key) & lost else origins

    def _next(self) -> int:
        self._n_bits += 1
        return 1 << self._n_bits

    def _keep(self, tensor: Tensor, bits: int) -> int:
        self._known[id(tensor)] = (weakref.ref(tensor), bits)
        return bits
