"""One module per view, which draws what its record in ``visualizer/settings/views.py`` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from visualizer.settings.views import VIEWS

RENDER: Mapping[str, Callable[..., None]] = {
    name: import_module(f"{__package__}.{view.module}").render for name, view in VIEWS.items()
}
"""The function that draws each view: ``render(run, selection)``, or ``render(choices)`` where it has no run."""
