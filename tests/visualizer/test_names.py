"""What can be pressed has a name of its own, and what needs words has them."""

from __future__ import annotations

from tests.test_app import open_app, open_examples
from visualizer.settings.examples import EXAMPLES


def test_no_two_buttons_have_one_name():
    app = open_examples(open_app())
    choices = [name for kind in ("segmented_control", "pills") for one in app.get(kind) for name in one.options]
    names = [button.label for button in app.button] + choices
    assert {"Padding", *(example.title for example in EXAMPLES)} <= set(names)
    assert len(names) == len(set(names)), sorted(names)
    assert app.slider(key="n_heads").help
