"""The settings' fields: type, default, bounds, label and help in one place, which link and controls follow."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from visualizer.settings.published import PUBLISHED

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WORKED_EXAMPLES = tuple(PUBLISHED)
"""The published examples whose numbers can be loaded in place of a model, in the order of their menu."""


UNSAID = "unsaid"
"""The intention while nobody has said what a mask should be: the mask is then described, and not judged."""


EXPRESSION = "expression:"
"""The beginning of an intention in a link, where it is an expression."""


TRAINED = "trained"
"""The weights of a model that was trained on a task."""


RECORDED = "recorded"
"""Weights that nobody has here: of the model that a recording is of."""


PRETRAINED = "pretrained"
"""The weights, and with them the architecture, of a checkpoint."""


FAULTS_OF_MASKS = ("after_softmax", "before_softmax", "left_out")
"""The mask bugs that are nothing without a mask; the other one is in how positions count the padding."""


MAX_TOKENS = 1_024
"""The longest sequence that is drawn."""


USUAL_POSITIONS = 512
"""The number of positions of a model for sequences that need no more; hand-built heads are made for as many."""


MAX_TEXT = 20_000
"""The most characters of a text: any that is longer has more than can be drawn, or next to no spaces."""


MAX_TYPED: Mapping[str, int] = {"pasted_mask": 2**22, "pretrained_expression": 2_000, "train_text": 80}
"""The most characters of a field by its key, where it takes another number of them than ``MAX_TEXT``."""

MAX_ORDER = 99
"""The orders that the tokens of a text can be put in, besides the one that was typed."""


MAX_SEQUENCES = 64
"""The most lines of a text, each of them a sequence of the batch."""


MOST_LAYERS, MOST_HEADS = 256, 256
"""The most layers, and heads of one, that can be looked at: checkpoints have more than what is built here."""


NO_MASK = "none"
"""The word of a link for no mask."""


NO_CHART = "none"
"""The word of a link for no open chart."""


NARROWEST, WIDEST = 8, 768


Kind = Literal[
    "integer",
    "fraction",
    "choice",
    "switch",
    "names",
    "text",
    "cells",
    "stage",
    "identifier",
    "places",
    "intent",
    "interventions",
]


@dataclass(frozen=True)
class Field:
    """One parameter.

    Attributes:
        name: the field of the frozen value.
        default: its value where none is given.
        kind: how it is read and written.
        label: what its control is called.
        help: one or two sentences for its control.
        choices: for ``choice`` and ``names``, each value and what it is called.
        least: for ``integer`` and ``fraction``, the least good value.
        most: the greatest good value.
        offered: the usual numbers between, where not all are offered.
        holder: the field whose value has it, where it is no field of the dataclass itself.
    """

    name: str
    default: Any
    kind: Kind
    label: str
    help: str
    choices: Mapping[str, str]
    least: float
    most: float
    offered: tuple[float, ...]
    holder: str = ""

    @property
    def parameter(self) -> str:
        """The name in the link: ``lab.panel`` for the choices of a view. Those of before are the name alone."""
        return f"{self.holder}.{self.name}" if self.holder else self.name


Value = TypeVar("Value")
_Part = TypeVar("_Part", bound="DataclassInstance")

_NONE: Mapping[str, str] = MappingProxyType({})

_KINDS: Mapping[type, Kind] = {int: "integer", float: "fraction", bool: "switch", str: "text", tuple: "names"}


def setting(
    default: Value,
    *,
    kind: Kind | None = None,
    choices: Sequence[str] | Mapping[str, str] = (),
    least: float = 0,
    most: float = 0,
    offered: tuple[float, ...] = (),
) -> Value:
    """A field of a dataclass that is a parameter of the link. Its words stand in ``texts.toml``.

    Its kind follows from the default and the choices, unless given. Choices with computed names are a mapping; a
    field that is a ``Literal`` offers that.
    """
    follows: Kind = "choice" if choices and isinstance(default, str) else _KINDS[type(default)]
    described = {"kind": kind or follows, "choices": choices}
    return field(default=default, metadata={**described, "least": least, "most": most, "offered": offered})


@cache
def fields_of(kind: type[DataclassInstance]) -> Mapping[str, Field]:
    """The parameters of a dataclass by name: its settings, and those of the values in it, in their order."""
    types = get_type_hints(kind)
    found: dict[str, Field] = {}
    for each in fields(kind):
        if dataclasses.is_dataclass(types[each.name]):
            inner = fields_of(types[each.name])
            found |= {name: replace(of_it, holder=each.name) for name, of_it in inner.items()}
        else:
            texts = TEXTS[kind.__name__][each.name]
            found[each.name] = _described(each, types[each.name], **texts)
    return found


def by_any_name(fields: Iterable[Field]) -> Mapping[str, Field]:
    """The parameters by their names in a link, those of before too."""
    return {name: field for field in fields for name in (field.name, field.parameter)}


def value_in(part: DataclassInstance, name: str) -> Any:  # noqa: ANN401 - whatever the field holds
    """The value of a parameter, which may be a field of a value in the dataclass."""
    holder = fields_of(type(part))[name].holder
    return getattr(getattr(part, holder) if holder else part, name)


def changed(part: _Part, **changes: Any) -> _Part:  # noqa: ANN401
    """The same with other values of some parameters.

    Raises:
        KeyError: there is no parameter of a name.
    """
    by_holder: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        by_holder.setdefault(fields_of(type(part))[name].holder, {})[name] = value
    own = by_holder.pop("", {})
    inner = {holder: replace(getattr(part, holder), **of_it) for holder, of_it in by_holder.items()}
    return replace(part, **own, **inner)


def _described(
    each: dataclasses.Field[Any], type_: object, label: str, help: str, choices: Mapping[str, str] = _NONE
) -> Field:
    texts = {**each.metadata, "label": label, "help": help}
    if get_origin(type_) is Literal and not texts["choices"]:
        texts |= {"kind": "choice", "choices": get_args(type_)}
    if not isinstance(texts["choices"], Mapping):
        texts["choices"] = {value: choices[value] for value in texts["choices"]}
    return Field(each.name, each.default, **texts)


_FILE = Path(__file__).with_name("texts.toml")
TEXTS: Mapping[str, Mapping[str, Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
"""The words of every setting, by the class and the name of its field."""
