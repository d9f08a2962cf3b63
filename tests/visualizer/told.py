"""What a picture tells the script, without a browser."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.test_app import assert_healthy
from tests.visualizer.session.test_late_events import say


def tell(app: AppTest, key: str, event: str, /, **value: object) -> None:
    """Run the script with an event of the picture with this key."""
    (component,) = (one.proto.id for one in app.get("bidi_component") if one.proto.id.endswith(f"-{key}"))
    say(app, component, event, {"seq": 1, **value})
    assert_healthy(app)
