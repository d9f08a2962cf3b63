import pytest

from visualizer.state.state import has_index, index_in


@pytest.mark.parametrize(
    "event", [None, "text", 3, [], {}, {"row": None}, {"row": -1}, {"row": True}, {"row": "1"}]
)
def test_a_browser_can_send_anything(event):
    assert not has_index(event, "row")
    assert index_in(event, "row") == 0


def test_an_index_is_read():
    assert has_index({"row": 7}, "row")
    assert index_in({"row": 7}, "row") == 7
