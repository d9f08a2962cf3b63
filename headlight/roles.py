"""The part that an attention plays: that of the only stack, of an encoder, of a decoder, or between the two.

Told by the names of modules where they say it, and else by what its queries and keys were computed from.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import replace

from headlight.attentions import Attention, Role
from headlight.origins import UNKNOWN, Origins

_CROSS = re.compile(
    r"cross|encdec|(enc(oder)?|enc_dec|encoder_decoder|src|memory)_att|multihead_attn", re.IGNORECASE
)
_SELF = re.compile(r"self_?att", re.IGNORECASE)
_BESIDE_SELF = "multihead_attn"
"""The cross-attention of ``nn.TransformerDecoderLayer``, which stands beside its ``self_attn``."""

_OF_ENCODER = re.compile(r"(^|[._])encoder(\.|$)", re.IGNORECASE)
_OF_DECODER = re.compile(r"(^|[._])decoder(\.|$)", re.IGNORECASE)


def roles_of(modules: Sequence[str], origins: Sequence[Origins], paths: Container[str]) -> list[Role]:
    """The role of each attention of a pass (section 3.2.3 of the paper).

    Args:
        modules: the path of the module of each.
        origins: what the queries and keys of each were computed from.
        paths: those of all modules of the model.
    """
    crossing = _crossing_layers(modules, paths)
    own = _reading_themselves(modules, origins, paths)
    has_self = not all(each.differ for each in origins)
    crosses = [
        (is_named_cross(module, paths) and module not in own)
        or (each.differ and (has_self or not each.query & each.key) and not _SELF.search(module))
        for module, each in zip(modules, origins, strict=True)
    ]
    has_both = any(crosses) or (any(map(is_of_encoder, modules)) and any(map(is_of_decoder, modules)))
    source = 0
    for each, is_crossing in zip(origins, crosses, strict=True):
        source |= each.key if each.differ and is_crossing else 0

    def role(module: str, each: Origins) -> Role:
        of_encoder, of_decoder = is_of_encoder(module), is_of_decoder(module) or module.startswith(crossing)
        if of_encoder is of_decoder and each.query and source:
            return "decoder" if each.query & ~source else "encoder"
        return "encoder" if of_encoder and not of_decoder else "decoder"

    return [
        "cross" if is_crossing else role(module, each) if has_both else "self"
        for module, each, is_crossing in zip(modules, origins, crosses, strict=True)
    ]


def _reading_themselves(modules: Sequence[str], origins: Sequence[Origins], paths: Container[str]) -> set[str]:
    """The modules that are called cross-attention and whose keys are of the same tokens as their queries.

    Where an encoder stands beside their layers nothing is said: it may have been given the same tokens. Nor is it
    where one of them reads other tokens: the next has read them through it, as the latents of a Perceiver.
    """
    layers = _crossing_layers(modules, paths)
    if not all(module.startswith(layers) for module in modules):
        return set()
    crossing = [(module, of) for module, of in zip(modules, origins, strict=True) if is_named_cross(module, paths)]
    if any(of.differ for _, of in crossing):
        return set()
    return {module for module, of in crossing if of.query and of.query == of.key}


def _crossing_layers(modules: Sequence[str], paths: Container[str]) -> tuple[str, ...]:
    """The beginnings of the paths in layers with a cross-attention, which are a decoder's."""
    named = (_CROSS.search(module) for module in modules if is_named_cross(module, paths))
    return tuple(found.string[: found.start()] for found in named if found and found.start())


def with_named_roles(attentions: Sequence[Attention]) -> list[Attention]:
    """Attentions of which nothing but the names of their modules is known."""
    modules = [attention.module for attention in attentions]
    roles = roles_of(modules, [UNKNOWN] * len(modules), modules)
    return [replace(attention, role=role) for attention, role in zip(attentions, roles, strict=True)]


def is_named_cross(module: str, paths: Container[str]) -> bool:
    """True if the path of a module says that it is a cross-attention."""
    parent, _, name = module.rpartition(".")
    is_named = bool(_CROSS.search(module))
    return is_named and (name != _BESIDE_SELF or f"{parent}.self_attn".lstrip(".") in paths)


def is_of_encoder(path: str) -> bool:
    """True if the path of a module says that it is an encoder's."""
    return bool(_OF_ENCODER.search(path))


def is_of_decoder(path: str) -> bool:
    """True if the path of a module says that it is a decoder's."""
    return bool(_OF_DECODER.search(path))
