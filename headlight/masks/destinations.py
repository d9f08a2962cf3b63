"""The meaning of an array for each function that it is passed to as a mask.

The same array means opposite things in different places: True may attend in one library and is blocked in another,
numbers are added to the scores in one, taken for flags in another, refused in a third. So the place is asked for,
and its reading alone is judged. Nothing is transposed and nothing is guessed. The statements on PyTorch are tested
against it; the others follow the documentation of their libraries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from headlight.masks.mask_case import NUMBER_TYPES
from headlight.masks.planes import BOTH, Axes, Passed, Remark, of_queries, of_sequences, refused
from model.texts import texts_of

say = texts_of(__name__)

Rows = Literal["queries", "sequences"]

HIGHEST_FILL = -100.0
"""The largest number that blocks: nothing of it is left by a float32 softmax among usual scores."""


ZERO = Remark("note", say("zero"))
"""The outcome of a row without a key in most functions."""


@dataclass(frozen=True)
class Destination:
    """A place that takes a mask.

    Attributes:
        title: the function and its argument.
        note: what it takes, in one sentence.
        read: what it makes of an array.
        rows: what the rows of a matrix are to it.
        leading: what the axes before the last two can be.
        keyless: what a row without a key comes to.
    """

    title: str
    note: str
    read: Callable[[Tensor], Passed]
    rows: Rows = "queries"
    leading: tuple[Axes, ...] = ((), ("head",), ("sequence", "head"))
    keyless: Remark = ZERO

    @property
    def takes_heads_of_batch(self) -> bool:
        """True if one axis holds the heads of all sequences."""
        return (BOTH,) in self.leading


def passed_to(array: Tensor, destination: str, n_heads: int = 1) -> Passed:
    """Read an array of booleans, integers or floats, of one axis or more, as a function takes it.

    Args:
        array: as it is passed.
        destination: a name in ``DESTINATIONS``.
        n_heads: how many heads the attention has, where an axis is both sequences and heads.

    Raises:
        ValueError: the destination is unknown, or the array has no entries or no axis.
    """
    if destination not in DESTINATIONS:
        raise ValueError(f"destination ({destination!r}) must be one of: {', '.join(DESTINATIONS)}")
    if array.dim() == 0 or array.numel() == 0:
        raise ValueError(f"the array has shape {tuple(array.shape)}: a mask has one entry for each query and key")
    chosen = DESTINATIONS[destination]
    found = chosen.read(array)
    if found.allowed is None:
        return found
    if chosen.rows == "sequences":
        return of_sequences(found)
    rows = found.allowed if found.allowed.dim() > 1 else found.allowed[None]
    return of_queries(replace(found, allowed=rows), rows, chosen.leading, n_heads)


# What functions do.


def _true_attends(array: Tensor) -> Passed:
    return Passed(array)


def _true_is_blocked(array: Tensor) -> Passed:
    return Passed(~array)


def _added(array: Tensor) -> Passed:
    """Added to the scores before the softmax."""
    numbers = array.to(torch.float64)
    if bool(numbers.isnan().any()):
        return _with_nan(array)
    blocked = numbers <= HIGHEST_FILL
    keyless = blocked.all(-1)
    pool = numbers[keyless] if bool(keyless.any()) else numbers[blocked]
    fill = float(pool.max()) if len(pool) else None
    dtype = array.dtype if array.dtype in NUMBER_TYPES[1:] else torch.float32
    return Passed(~blocked, tuple(_remarks(numbers, blocked, dtype)), fill, dtype)


def _with_nan(array: Tensor) -> Passed:
    where = ", ".join(str(index) for index in array.isnan().nonzero()[0].tolist())
    return refused(say("nan", n=int(array.isnan().sum()), where=where))


def _remarks(numbers: Tensor, blocked: Tensor, dtype: torch.dtype) -> list[Remark]:
    remarks = []
    values = set(numbers.flatten().tolist())
    added = numbers[~blocked]
    if values <= {0.0, 1.0} and len(values) == 2:
        remarks.append(Remark("error", say("ones_and_zeros")))
    elif added.numel() and bool((added != 0).any()):
        remarks.append(Remark("note", _about_bias(added)))
    if bool(blocked.any()):
        remarks += _about_fill(numbers, blocked, dtype)
    return remarks


def _about_bias(added: Tensor) -> str:
    """Describe numbers that are added to scores and do not block."""
    lowest, highest = float(added.min()) + 0.0, float(added.max()) + 0.0  # no -0
    same = lowest == highest
    numbers = say("one_number", number=lowest) if same else say("numbers", lowest=lowest, highest=highest)
    return say("bias", numbers=numbers, highest=HIGHEST_FILL)


def _about_fill(numbers: Tensor, blocked: Tensor, dtype: torch.dtype) -> list[Remark]:
    fills = sorted(set(numbers[blocked].tolist()))
    finite = [fill for fill in fills if fill > -math.inf]
    name, lowest = str(dtype).removeprefix("torch."), torch.finfo(dtype).min
    if not finite:
        return []
    if len(fills) > 1:
        listed = " and ".join(f"{fill:g}" for fill in fills[:3])
        text = say("two_fills", listed=listed, lowest=lowest, name=name)
        return [Remark("warning", text)]
    if finite[0] < lowest / 2:
        return []
    margin = _log_of_smallest(dtype) - finite[0]
    where = say("less_than", margin=margin) if margin > 0 else say("more_than", margin=-margin)
    text = say("fill", fill=finite[0], name=name, where=where)
    return [Remark("note", text)]


def _log_of_smallest(dtype: torch.dtype) -> float:
    """The logarithm of half the smallest positive number: weights below that become zero."""
    return math.log(torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps / 2)


def _flags(array: Tensor) -> Passed:
    """Flags as numbers: 1 may attend, 0 is blocked, and everything else is taken for 1."""
    numbers = array.to(torch.float64)
    odd = (numbers != 0) & (numbers != 1)
    remarks: tuple[Remark, ...] = ()
    if bool(odd.any()):
        value = float(numbers[odd][0])
        remarks = (Remark("error", say("not_flags", value=value)),)
    return Passed(numbers != 0, remarks)


# By the array's own number type.


def _by_type(
    boolean: Callable[[Tensor], Passed], floating: Callable[[Tensor], Passed], integer: Callable[[Tensor], Passed]
) -> Callable[[Tensor], Passed]:
    def read(array: Tensor) -> Passed:
        if array.dtype is torch.bool:
            return boolean(array)
        return floating(array) if array.is_floating_point() else integer(array)

    return read


def _refused(reason: str) -> Callable[[Tensor], Passed]:
    def read(array: Tensor) -> Passed:
        name = str(array.dtype).removeprefix("torch.")
        return refused(say("refused", name=name, reason=reason))

    return read


_booleans_or_floats = say("booleans_or_floats")
_mask_of_flags = _by_type(_true_attends, _flags, _flags)
_torch_module = _by_type(_true_is_blocked, _added, _refused(_booleans_or_floats))


def _added_to_scores(array: Tensor) -> Passed:
    """By hand: booleans become 1 and 0."""
    if array.dtype is not torch.bool:
        return _added(array)
    return Passed(torch.ones_like(array), (Remark("error", say("booleans_added")),))


_NAN = Remark("error", say("nan_in_mha"))
_NAN_IN_LAYERS = Remark("error", say("nan_in_layers"))
_EAGER = Remark("warning", say("eager"))
_EVEN = Remark("warning", say("even"))

DESTINATIONS: Mapping[str, Destination] = {
    "sdpa": Destination(
        say("sdpa"), say("sdpa_takes"), _by_type(_true_attends, _added, _refused(_booleans_or_floats))
    ),
    "mha_attn_mask": Destination(
        say("mha_attn_mask"), say("mha_attn_mask_takes"), _torch_module, leading=((), (BOTH,)), keyless=_NAN
    ),
    "mha_key_padding": Destination(
        say("mha_key_padding"), say("mha_key_padding_takes"), _torch_module, rows="sequences", keyless=_NAN
    ),
    "transformer": Destination(
        say("transformer"), say("transformer_takes"), _torch_module, leading=((), (BOTH,)), keyless=_NAN_IN_LAYERS
    ),
    "hugging_face_2d": Destination(
        say("hugging_face_2d"), say("hugging_face_2d_takes"), _mask_of_flags, rows="sequences", keyless=_EAGER
    ),
    "hugging_face_4d": Destination(
        say("hugging_face_4d"),
        say("hugging_face_4d_takes"),
        _by_type(_true_attends, _added, _added),
        leading=((), ("sequence",), ("sequence", "head")),
        keyless=_EAGER,
    ),
    "flex": Destination(
        say("flex"),
        say("flex_takes"),
        _by_type(_true_attends, _refused(say("flex_floats")), _refused(say("flex_integers"))),
    ),
    "keras": Destination(
        say("keras"),
        say("keras_takes"),
        _mask_of_flags,
        leading=((), ("sequence",), ("sequence", "head")),
        keyless=_EVEN,
    ),
    "jax": Destination(say("jax"), say("jax_takes"), _mask_of_flags, keyless=_EVEN),
    "added": Destination(
        say("added"), say("added_takes"), _added_to_scores, keyless=Remark("error", say("nan_everywhere"))
    ),
}
"""Every place by name, the most usual first."""
