"""``headlight.show`` and ``headlight.attention``: the pictures of the app for a run, a trace, or any weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import NoneType
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from headlight.attentions import Attention
from headlight.recording import Texts
from headlight.roles import with_named_roles
from headlight.trace import Tokens, Trace, texts_of_tokens
from model import Trace as Recorded
from model.texts import texts_of
from visualizer.components.looks import Looks
from visualizer.components.packing import Precision
from visualizer.components.picture import Picture
from visualizer.components.tensor_grid.element import tensor_grid
from visualizer.components.token_way.element import token_way
from visualizer.notebook.shown import Shown
from visualizer.pictures.compare import ComparePicture, compared_settings, draw_compared, title_of_side
from visualizer.pictures.heads import HeadsPicture, draw_heads, heads_picture, kinds_of
from visualizer.pictures.step import equation, first_drawn, place_in
from visualizer.pictures.token_way import stack_of, taken_at
from visualizer.runs.compute import compute_run
from visualizer.runs.operations_run import run_of_operations
from visualizer.runs.paths import attention_modules, in_layer
from visualizer.runs.recording_run import run_recording
from visualizer.runs.run import Run
from visualizer.runs.saved import as_trace, attention_in
from visualizer.runs.watched import WatchedRun
from visualizer.settings.fields import Field, by_any_name
from visualizer.settings.link import as_text, read_unchanged
from visualizer.settings.settings import FIELDS, Selection, Settings
from visualizer.stages.informative import cell_at

say = texts_of(__name__)

Pictures = list[tuple[str, Picture]]

MANY, VERY_MANY, MOST = 2**18, 2**23, 2**25
"""More weights travel in steps of 16 bits, in steps of 8, or are refused: a notebook keeps what it shows."""

_FIELDS = by_any_name(FIELDS.values())
_SHORT = {"heads": "n_heads", "layers": "n_layers"}


def show(
    seen: Trace | Recorded | None = None,
    *,
    view: str = "heads",
    title: str = "",
    **chosen: Any,  # noqa: ANN401 - the fields of settings and selection
) -> Shown:
    """Show a trace, or the run of a model that is built for it, as the app would.

    Args:
        seen: what ``headlight.watch``, ``headlight.load`` or ``model.record`` gave; None runs a model of the
            settings.
        view: "heads"; where every operation was kept also "step" and "way", and of a model that is built "compare".
        title: what stands above the pictures.
        chosen: settings and places of a link of the app by their names, such as ``text="a b c"``, ``heads=4``,
            ``mask="causal"``, ``stage="encoder.self_attention.scores"``; of a trace its places alone, such as
            ``layer=3`` or ``stage="layers.0.linear1.linear"``.

    Raises:
        ValueError: a name or a value is none that there is, or nothing can be run; the message is one sentence.
    """
    if not isinstance(seen, (Trace, Recorded, NoneType)):
        raise ValueError(say("no_trace", kind=type(seen).__name__))
    settings, selection = _read(chosen)
    views = _VIEWS if seen is None else _VIEWS_OF_TRACE
    if view not in views:
        raise ValueError(say("no_view", view=view, views=", ".join(views)))
    if seen is not None:
        if settings != Settings():
            raise ValueError(say("of_trace"))
        trace = seen if isinstance(seen, Trace) else _attentions_of(seen)
        if view == "heads":
            return _of_trace(trace, title, selection)
        run = _operations_of(trace, title, selection.batch)
        if "stage" not in chosen:
            selection = replace(selection, stage=next(iter(run.trace)))
        return Shown(title, _VIEWS[view](run, selection), tuple(trace), trace.tokens)
    run = compute_run(settings)
    if run.complaints:
        raise ValueError(run.complaints[0])
    if "stage" in chosen:
        place_in(run, selection)  # refuses one that the run has not
    pictures = _VIEWS[view](run, run.nearest(selection))
    trace = as_trace(run)
    return Shown(title, pictures, tuple(trace), run.tokens["source"].tokens)


def attention(
    weights: Any,  # noqa: ANN401 - arrays of any library, or what a model returned
    tokens: Tokens = (),
    *,
    keys: Tokens = (),
    mask: ArrayLike | Tensor | None = None,
    title: str = "",
) -> Shown:
    """Show attention weights, wherever they come from.

    Args:
        weights: (Tq, Tk), (H, Tq, Tk) or (L, H, Tq, Tk), each from 0 to 1, or NaN in a row that has no key left; or
            one (1, H, Tq, Tk) or (H, Tq, Tk) for each layer, as Transformers' ``output_attentions`` gives them; or
            the output itself that has them.
        tokens: the text or the id of each query, and of each key where ``keys`` are not given; (Tq) or (1, Tq).
        keys: the text or the id of each key.
        mask: bool, True = may attend, broadcastable to (L, H, Tq, Tk); what it blocks is hatched.
        title: what stands above the picture.

    Raises:
        ValueError: shapes or numbers do not agree; the message is one sentence.
    """
    layers = _layers(getattr(weights, "attentions", weights))
    n_layers, n_heads, n_queries, n_keys = layers.shape
    queries = texts_of_tokens(tokens)
    names = texts_of_tokens(keys) or queries
    for said, texts, size in (("queries", queries, n_queries), ("keys", names, n_keys)):
        if texts and len(texts) != size:
            raise ValueError(say("texts", what=said, n_texts=len(texts), size=size))
    allowed = None if mask is None else _mask(mask, layers.shape)
    is_self = queries == names
    kind = "encoder.self_attention" if is_self else "decoder.cross_attention"
    found = [
        Attention(
            path=in_layer(kind, layer),
            module=in_layer(kind, layer),
            kind="softmax",
            query_shape=(),
            key_shape=(),
            value_shape=(),
            shape=(1, n_heads, n_queries, n_keys),
            key_heads=n_heads,
            dtype=layers.dtype,
            scale=1.0,
            is_causal=False,
            dropout=0.0,
            allowed=None if allowed is None else allowed[layer][None],
            weights=layers[layer][None],
            role="self" if is_self else "cross",
        )
        for layer in range(n_layers)
    ]
    trace = Trace(found)
    trace.texts = Texts((names,), (queries,))
    return _of_trace(trace, title, Selection(), are_named=False)


def _layers(weights: ArrayLike | Tensor | Sequence[Tensor]) -> Tensor:
    """(L, H, Tq, Tk), float32."""
    if isinstance(weights, (list, tuple)) and all(isinstance(layer, Tensor) for layer in weights):
        if n_sequences := max((len(layer) for layer in weights if layer.dim() == 4 and len(layer) > 1), default=0):
            raise ValueError(say("sequences", n_sequences=n_sequences))
        each = [layer[0] if layer.dim() == 4 else layer for layer in weights]
        if len({layer.shape for layer in each}) > 1 or not each:
            raise ValueError(say("layers_differ"))
        values = torch.stack(list(map(_tensor, each)))
    else:
        values = _tensor(weights)
    if values.is_complex():
        raise ValueError(say("complex"))
    values = values.float()
    if not 2 <= values.dim() <= 4 or 0 in values.shape:
        raise ValueError(say("shape", shape=tuple(values.shape)))
    values = values[(None,) * (4 - values.dim())]
    known = values[~values.isnan()]
    if not bool((known >= 0).all() and (known <= 1 + 1e-4).all()):
        raise ValueError(say("not_weights", least=float(known.min()), greatest=float(known.max())))
    return values.clamp(max=1.0)


def _tensor(values: ArrayLike | Tensor) -> Tensor:
    try:
        if isinstance(values, Tensor):
            return values.detach().cpu().to_dense()
        return torch.from_numpy(np.array(values))
    except (TypeError, ValueError, NotImplementedError):
        raise ValueError(say("no_numbers", kind=type(values).__name__)) from None


def _mask(mask: ArrayLike | Tensor, shape: torch.Size) -> Tensor:
    allowed = _tensor(mask)
    if allowed.dtype != torch.bool:
        raise ValueError(say("mask_of", kind=str(allowed.dtype).removeprefix("torch.")))
    try:
        return allowed.expand(shape)
    except RuntimeError:
        raise ValueError(say("mask_shape", shape=tuple(allowed.shape), weights=tuple(shape))) from None


def _read(chosen: Mapping[str, Any]) -> tuple[Settings, Selection]:
    """The settings and the places that are named.

    Raises:
        ValueError: a name or a value is none that there is.
    """
    query: dict[str, list[str]] = {}
    for name, value in chosen.items():
        field = _FIELDS.get(_SHORT.get(name, name))
        if field is None:
            raise ValueError(say("no_setting", name=name))
        query[field.name] = [_as_in_link(field, value)]
    return read_unchanged(query, FIELDS.values())


def _as_in_link(field: Field, value: Any) -> str:  # noqa: ANN401
    if isinstance(value, str):
        return value
    if field.kind == "text":
        raise ValueError(say("no_text", name=field.name, kind=type(value).__name__))
    try:
        return as_text(field, () if value is None and field.kind == "names" else value)
    except TypeError:
        raise ValueError(say("no_names", name=field.name, kind=type(value).__name__)) from None


def _of_trace(trace: Trace, title: str, selection: Selection, *, are_named: bool = True) -> Shown:
    """Show every kind of attention in a trace, with its layers, by their names or by their numbers."""
    watched = WatchedRun(trace, title)
    kinds = [kind for kind in watched.kinds if kind[0].weights is not None]
    if not kinds:
        raise ValueError(say("no_weights") if watched.kinds else " ".join((say("no_attention"), *trace.notes)))
    n_weights = sum(prod(each.shape[1:]) for kind in kinds for each in kind)
    if n_weights > MOST:
        raise ValueError(say("too_many", n_weights=n_weights, most=MOST))
    pictures: Pictures = []
    for number, kind in enumerate(kinds):
        run = run_recording(watched, kind[0], selection.batch)
        (name,) = kinds_of(attention_modules(run.trace))
        layer_names = [each.module or each.path for each in kind] if are_named else ()
        heading = "" if len(kinds) == 1 else kind[0].path
        picture = heads_picture(run, name, selection)
        pictures.append((heading, _heads(picture, selection, f"heads_{number}", layer_names)))
    return Shown(title, pictures, tuple(trace), trace.tokens)


def _heads(picture: HeadsPicture, selection: Selection, key: str, layer_names: Sequence[str] = ()) -> Picture:
    return draw_heads(
        picture,
        selection,
        looks=Looks(drawn=selection.heads.drawn, shown=selection.heads.shown),
        key=key,
        layer_names=layer_names,
        precision=_precision(picture.n_weights),
    )


def _precision(n_weights: int) -> Precision:
    return "exact" if n_weights <= MANY else "16" if n_weights <= VERY_MANY else "8"


def _every_kind(run: Run, selection: Selection) -> Pictures:
    kinds = kinds_of(attention_modules(run.trace))
    return [
        ("" if len(kinds) == 1 else kind, _heads(heads_picture(run, kind, selection), selection, f"heads_{number}"))
        for number, kind in enumerate(kinds)
    ]


def _attentions_of(recorded: Recorded) -> Trace:
    """The attentions in what ``model.record`` gave, as those of any model."""
    return Trace(with_named_roles([attention_in(recorded, module) for module in attention_modules(recorded)]))


def _operations_of(trace: Trace, title: str, item: int) -> Run:
    """Every operation of a trace.

    Raises:
        ValueError: its attentions alone were kept.
    """
    if not trace.stages:
        raise ValueError(say("no_operations"))
    return run_of_operations(WatchedRun(trace, title), item)


def _step(run: Run, selection: Selection) -> Pictures:
    place = place_in(run, selection)
    cell = cell_at(run, place.path, replace(selection, cell=True))
    panels = equation(run, replace(place, cell=(cell.row, cell.column))).panels
    first_row, first_column = first_drawn(panels[-1])
    selected = (panels[-1].name, cell.row - first_row, cell.column - first_column)
    return [("", tensor_grid(panels, selected=selected, key="step"))]


def _compare(run: Run, selection: Selection) -> Pictures:
    runs = [compute_run(settings) for settings in compared_settings(run.settings, selection)]
    pictures: Pictures = []
    kinds = kinds_of(attention_modules(run.trace))
    for number, kind in enumerate(kinds):
        picture = ComparePicture(*(heads_picture(each, kind, selection) for each in runs))
        titles = (title_of_side("a", picture.a.blocked_by), title_of_side("b", picture.b.blocked_by))
        drawn = draw_compared(picture, selection, titles, looks=Looks(), key=f"compare_{number}")
        pictures.append(("" if len(kinds) == 1 else kind, drawn))
    return pictures


def _way(run: Run, selection: Selection) -> Pictures:
    stack = stack_of(run, selection.stage)
    if stack is None:
        raise ValueError(say("no_way"))
    way = taken_at(run, stack, selection.query).way
    query = min(selection.query, len(way.tokens.labels) - 1)
    return [("", token_way(way, selected=query, seq=0, key="way", layer=selection.layer))]


_VIEWS: Mapping[str, Callable[[Run, Selection], Pictures]] = {
    "heads": _every_kind,
    "step": _step,
    "compare": _compare,
    "way": _way,
}
_VIEWS_OF_TRACE = ("heads", "step", "way")
