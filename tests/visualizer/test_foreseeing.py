"""What the browser may foresee of the controls, written as in a link."""

from __future__ import annotations

import pytest

from tests.visualizer.test_surroundings import CHOICES
from visualizer.components.ask_ahead.element import Control
from visualizer.page.foreseeing import foreseeable
from visualizer.page.sidebar import lines_for
from visualizer.session.state import Choices
from visualizer.settings.settings import FIELDS, Selection, Settings
from visualizer.settings.trained_models import TRAINED_MODELS


def controls_of(choices: Choices) -> dict[str, Control]:
    return foreseeable(lines_for(choices.settings, choices.selection), choices.settings)


@pytest.mark.parametrize(
    ("name", "values", "usual"),
    [
        ("text", (), Settings().text),
        ("seed", (), "0"),
        ("dropout", (), "0"),
        ("scale_scores", ("off", "on"), "on"),
        ("positions", tuple(FIELDS["positions"].choices), "sinusoidal"),
        ("mask", tuple(FIELDS["mask"].choices), "causal"),
        ("head_dim", tuple(map(str, (0, *FIELDS["head_dim"].offered[1:]))), "0"),
    ],
)
def test_a_control_has_its_places_and_what_links_leave_out(name, values, usual):
    assert controls_of(CHOICES)[name] == Control(f".st-key-{name}", values, usual)


def test_controls_that_change_more_than_their_own_value_are_left_to_the_server():
    assert not {"weights", "architecture", "n_heads", "n_layers"} & controls_of(CHOICES).keys()
    task = next(iter(TRAINED_MODELS))
    trained = Choices(Settings(text="a b", weights="trained", task=task), Selection(view="heads"))
    assert "mask" in controls_of(trained)
    assert not {"text", "pad"} & controls_of(trained).keys()
