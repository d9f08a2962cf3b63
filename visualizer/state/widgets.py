"""Controls that several rooms draw, and the one way to make the control of a field."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from visualizer.safe_text import markdown_safe
from visualizer.settings.settings import FIELDS
from visualizer.settings.training_settings import TRAINING
from visualizer.settings.watched_settings import WATCHED
from visualizer.state import state, widget_values


def notices(sentences: Sequence[str]) -> None:
    """Say what was changed in the link, in one box."""
    if sentences:
        st.warning("\n\n".join(map(markdown_safe, sentences)), icon=":material/edit_note:")


def menu(title: str, offered: Mapping[str, Callable[[], None]], *, key: str, **more: Any) -> None:  # noqa: ANN401
    """A menu that does what is chosen, and is empty again."""

    def act(chosen: str | None) -> None:
        if chosen is not None:
            widget_values.give(key, None)
            offered[chosen]()

    heard = state.on_change(key, act)
    st.selectbox(title, list(offered), index=None, key=widget_values.give(key, None), on_change=heard, **more)


def following(name: str, value: object, choose: Callable[[Any], None]) -> dict[str, Any]:
    """Arguments for a control that shows a value that may be chosen elsewhere too, and hands on a choice.

    Raises:
        ValueError: a field of the link has this name, and would take the value too.
    """
    if name in _FIELDS:
        raise ValueError(f"{name} is a field of the link: its control is drawn by its name")
    return {"key": widget_values.give(name, value), "on_change": state.on_change(name, choose)}


def text(name: str, **more: object) -> None:
    """A field for text of several lines.

    This and the following draw the control of a field with its label, help, bounds and choices. ``more`` are
    arguments of Streamlit's widget, further ones or other than the usual ones.
    """
    st.text_area(**{"label": _FIELDS[name].label, "value": state.value_of(name), **_usual(name, more)})


def line(name: str, **more: object) -> str:
    """A field for text of one line; what is written there."""
    text: str = st.text_input(**{"label": _FIELDS[name].label, "value": state.value_of(name), **_usual(name, more)})
    return text


def choice(name: str, offered: Sequence[Any] | None = None, **more: object) -> None:
    """A menu of the field's choices, or of those offered."""
    options = _options(name, offered)
    _labelled(st.selectbox, name, options, index=options.index(state.value_of(name)), **more)


def named(field: str, offered: Mapping[str, int], chosen: int, *, key: str, **more: Any) -> int:  # noqa: ANN401
    """A menu of values of a field by names that tell them apart; the one that is shown.

    Under another text the same number stands for something else: then it has another name, and is another choice.
    """
    shown = next(name for name, value in offered.items() if value == chosen)
    name = st.selectbox(
        _FIELDS[field].label,
        list(offered),
        index=list(offered).index(shown),
        **more,
        **following(key, shown, lambda name: state.select(**{field: offered[name]})),
    )
    return offered.get(name, chosen)


def segments(name: str, offered: Sequence[Any] | None = None, **more: object) -> None:
    """The field's choices, or those offered, side by side."""
    _labelled(st.segmented_control, name, _options(name, offered), default=state.value_of(name), **more)


def slider(name: str, step: float = 1, **more: object) -> None:
    """A slider from the least to the most."""
    st.slider(_FIELDS[name].label, *_bounds(name), step=step, **_usual(name, more))


def number(name: str, step: float = 1, most: float = math.inf, **more: object) -> None:
    """A field for a number from the least to the most, or to what there is ``most`` of."""
    least, largest, value = _bounds(name)
    shown = min(value, most)
    st.number_input(_FIELDS[name].label, least, min(largest, most), shown, step=step, **_usual(name, more, shown))


def option(name: str, options: Sequence[float], zero: str = "0", **more: object) -> None:
    """A slider over some numbers; ``zero`` says what 0 stands for."""
    st.select_slider(
        _FIELDS[name].label,
        options,
        value=state.value_of(name),
        format_func=lambda value: f"{value:g}" if value else zero,
        **_usual(name, more),
    )


def switch(name: str, **more: object) -> None:
    """On or off."""
    st.toggle(_FIELDS[name].label, value=state.value_of(name), **_usual(name, more))


def table(columns: Mapping[str, Sequence[object]], **more: Any) -> None:  # noqa: ANN401
    """A table of named columns, NaN an empty cell: as Arrow, which Streamlit would make by way of pandas."""
    import pyarrow  # not needed for the first picture

    cells = {name: pyarrow.array(values, from_pandas=True) for name, values in columns.items()}
    st.dataframe(pyarrow.table(cells), hide_index=True, **more)


_FIELDS = {**FIELDS, **TRAINING, **WATCHED}


def _usual(name: str, more: Mapping[str, object], shown: object = None) -> dict[str, Any]:
    """The arguments of every control; what it shows is the field's value where nothing else is said."""
    shown = state.value_of(name) if shown is None else shown
    return {"key": widget_values.give(name, shown), "help": _FIELDS[name].help, **more}


def _bounds(name: str) -> tuple[float, float, float]:
    """The least, the most and what is shown, in the type that makes Streamlit give numbers of that type."""
    field = _FIELDS[name]
    kind = int if field.kind == "integer" else float
    return kind(field.least), kind(field.most), kind(state.value_of(name))


def _options(name: str, offered: Sequence[Any] | None) -> list[Any]:
    return list(_FIELDS[name].choices if offered is None else offered)


def _labelled(widget: Callable[..., Any], name: str, options: Sequence[Any], **more: object) -> None:
    field = _FIELDS[name]
    widget(field.label, options, **{"format_func": field.choices.__getitem__, **_usual(name, more)})


def mask_pills(name: str, **more: Any) -> None:  # noqa: ANN401 - arguments of Streamlit's widget
    """One pill per mask."""
    shown = list(state.value_of(name))
    _labelled(st.pills, name, _options(name, None), selection_mode="multi", default=shown, **more)
