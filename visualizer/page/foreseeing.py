"""Which controls of the sidebar the browser may read, so that it asks for the next numbers before the server does.

What it foresees is a link with one other value. Left out are controls that change more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from visualizer.components.ask_ahead.element import Control
from visualizer.page.sidebar import Line, Lines
from visualizer.session import widgets
from visualizer.settings.fields import TRAINED
from visualizer.settings.link import left_out_value, written
from visualizer.settings.settings import FIELDS, Settings

_VALUES: Mapping[Callable[..., None], Callable[[Line], tuple[object, ...]]] = {
    widgets.text: lambda _: (),
    widgets.number: lambda _: (),
    widgets.slider: lambda _: (),
    widgets.switch: lambda _: (False, True),
    widgets.option: lambda line: tuple(line.given[1]),  # type: ignore[arg-type]
    widgets.segments: lambda line: tuple(FIELDS[line.field].choices),
    widgets.mask_pills: lambda line: tuple((mask,) for mask in FIELDS[line.field].choices),
}
"""What the places of a control stand for, by what draws it; nothing for a number or a text."""

_CHANGE_MORE = ("n_heads", "n_layers", "target")
"""Settings that change the width, or the picture as a whole."""

_CHANGE_THE_USUAL_MASK = ("text", "pad")
"""Settings that change which masks a link of trained weights leaves out."""


def foreseeable(lines: Lines, settings: Settings) -> dict[str, Control]:
    """The controls whose next value the browser can turn into the address of numbers, by their settings."""
    left_out = (*_CHANGE_MORE, *(_CHANGE_THE_USUAL_MASK if settings.weights == TRAINED else ()))
    return {
        line.field: _control(settings, line.field, _VALUES[line.draw](line))
        for line in (*lines.always, *lines.more)
        if line.draw in _VALUES and line.field not in left_out
    }


def _control(settings: Settings, name: str, values: tuple[object, ...]) -> Control:
    return Control(
        f".st-key-{name}", tuple(written(name, value) for value in values), left_out_value(settings, name)
    )
