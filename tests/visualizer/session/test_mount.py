"""What puts pictures on the page."""

import pytest

from visualizer.components.picture import Picture
from visualizer.session.mount import mount


def test_an_event_that_a_picture_does_not_have_is_refused():
    picture = Picture("tensor_grid/element.js", b"", "key", ("select",))
    with pytest.raises(TypeError, match="no event selected: select"):
        mount(picture, selected=lambda: None)
