"""The pieces that put pictures on the page."""

import pytest

from tests.test_app import open_app
from visualizer.components.picture import Picture
from visualizer.server.mount import mount, script


def test_an_event_that_a_picture_does_not_have_is_refused():
    picture = Picture("tensor_grid/element.js", b"", "key", ("select",))
    with pytest.raises(TypeError, match="no event selected: select"):
        mount(picture, selected=lambda: None)


def test_a_message_names_the_script_of_the_pictures_and_does_not_carry_it():
    sent = [each.proto for each in open_app(text="a b").get("bidi_component")]
    assert len(sent) > 5
    for each in sent:
        assert script().address in each.js_content
        assert len(each.js_content) + len(each.css_content) + len(each.html_content) < 300
    # imports of a module that is being loaded keep no order: there is one for all, which the first picture loads
    assert len({each.component_name for each in sent}) > 4
    assert len({each.js_content for each in sent}) == 1
