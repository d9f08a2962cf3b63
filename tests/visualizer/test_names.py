"""Everything that can be pressed has a name of its own, and everything that needs words has them."""

from __future__ import annotations

from tests.test_app import open_app, open_examples
from visualizer.page.sidebar import _MODELS
from visualizer.settings.examples import EXAMPLES


def test_no_two_buttons_have_one_name():
    app = open_examples(open_app())
    choices = [name for kind in ("segmented_control", "pills") for one in app.get(kind) for name in one.options]
    names = [button.label for button in app.button] + choices
    assert {"Padding", *(example.title for example in EXAMPLES)} <= set(names)
    assert len(names) == len(set(names)), sorted(names)
    assert app.slider(key="n_heads").help


def test_every_model_has_a_name_that_fits_the_menu():
    assert max(map(len, _MODELS.values())) <= 26, "the menu is a field of one line, which cannot break a longer one"
