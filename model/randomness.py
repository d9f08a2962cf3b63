"""Random generators of their own for everything that is drawn."""

from __future__ import annotations

import hashlib

import torch


def named_generator(seed: int, name: str) -> torch.Generator:
    """A generator that depends on nothing but a seed and the name of what is drawn from it.

    One generator per tensor, so that a model of another size keeps the numbers of all other tensors.

    >>> one, same, other = (named_generator(0, name).initial_seed() for name in ("w_q", "w_q", "w_k"))
    >>> one == same, one == other
    (True, False)
    """
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
