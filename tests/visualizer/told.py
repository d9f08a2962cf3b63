"""The events of a picture, sent to the script without a browser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from visualizer.components.packing import header_of

_NOTHING: Mapping[str, object] = {}


def tell(app: AppTest, key: str, event: str, value: object = _NOTHING, /, **facts: object) -> None:
    """Run the script with an event of the picture with this key: with ``value``, or with facts and a number."""
    (component,) = (one.proto.id for one in app.get("bidi_component") if one.proto.id.endswith(f"-{key}"))
    say(app, component, event, {"seq": 1, **facts} if value is _NOTHING else value)


def dials_in(app: AppTest, key: str) -> dict[str, object]:
    """Return the values of the dials in the picture with this key, by their names."""
    (drawn,) = (one.proto.bytes for one in app.get("bidi_component") if one.proto.id.endswith(f"-{key}"))
    return {dial["name"]: dial["value"] for dial in header_of(drawn)["dials"]}


def say(app: AppTest, component: str, event: str, value: object) -> None:
    """The same of a component with this id, which may have left the page."""
    states = app._tree.get_widget_states()
    said = json.dumps([{"event": event, "value": value}])
    states.widgets.append(WidgetState(id=f"$$STREAMLIT_INTERNAL_KEY_{component}__events", json_trigger_value=said))
    app._run(states)


def drawn_on_map(header: Mapping[str, Any]) -> dict[str, tuple[str, list[Any]]]:
    """The label of its block and the rest of its row, for every stage on the map of the model."""
    model = header["model"]
    tracks = [
        [track["inputs"], *(block for layer in track["layers"] for block in layer["blocks"]), track["end"]]
        for track in model["tracks"]
    ]
    blocks = [*(block for track in tracks for block in track), model["output"]]
    return {
        path if not path.startswith(".") else f"{block['id']}{path}": (block["label"], rest)
        for block in blocks
        if block is not None
        for path, *rest in block["stages"]
    }
