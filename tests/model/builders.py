"""Small random models and inputs that the tests of the model share."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from model import Transformer, TransformerConfig

N_SOURCE, N_TARGET, VOCAB_SIZE = 6, 5, 13
ARCHITECTURES = ("encoder", "decoder", "encoder-decoder")


def generator(seed: int) -> torch.Generator:
    """A source of randomness of its own."""
    return torch.Generator().manual_seed(seed)


def randomized(module, seed: int = 0):
    """Fill every parameter, norms and biases too, so that none is left at a value that hides a mistake."""
    source = generator(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.4, generator=source)
    return module.eval()


def random_tensor(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64).to(dtype)


def random_mask(*shape: int, seed: int = 0) -> Tensor:
    """True = may attend, in about two cells of three; every query keeps its first key."""
    mask = torch.rand(shape, generator=generator(seed)) < 0.65
    mask[..., 0] = True
    return mask


def keyless(mask: Tensor, query: int) -> Tensor:
    """The mask with every key of one query blocked."""
    blocked = mask.clone()
    blocked[..., query, :] = False
    return blocked


def small_transformer(
    architecture: str = "encoder", *, dtype: torch.dtype = torch.float32, **choices
) -> Transformer:
    """Two layers of two heads, every parameter random."""
    sizes = {"vocab_size": VOCAB_SIZE, "d_model": 8, "n_heads": 2, "d_ff": 12, "n_layers": 2, "max_len": 16}
    config = TransformerConfig(architecture=architecture, **(sizes | choices))
    return randomized(Transformer(config)).to(dtype)


def small_inputs(architecture: str = "encoder", *, n_batch: int = 2) -> tuple[Tensor, ...]:
    """Token ids: the source, and the target where the architecture has one."""
    lengths = (N_SOURCE, N_TARGET) if architecture == "encoder-decoder" else (N_SOURCE,)
    return tuple(torch.randint(VOCAB_SIZE, (n_batch, length), generator=generator(length)) for length in lengths)


def small_masks(architecture: str = "encoder", *, n_batch: int = 2) -> dict[str, Tensor]:
    """A random mask for every attention of the architecture."""
    masks = {"source_mask": random_mask(n_batch, 1, N_SOURCE, N_SOURCE, seed=1)}
    if architecture == "encoder-decoder":
        masks["target_mask"] = torch.ones(N_TARGET, N_TARGET, dtype=torch.bool).tril()
        masks["memory_mask"] = random_mask(n_batch, 1, 1, N_SOURCE, seed=2)
    return masks


def as_arrays(module: nn.Module) -> dict[str, np.ndarray]:
    """Every array of a module's ``state_dict``."""
    return {name: value.numpy() for name, value in module.state_dict().items()}
