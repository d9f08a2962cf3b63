"""The picture that is there before PyTorch is: it is the model's, and what comes after it is the same."""

from __future__ import annotations

from threading import Event

import numpy as np
from streamlit.testing.v1 import AppTest

from tests.test_app import APP, assert_healthy, components, open_app
from tests.visualizer.routes.test_routes import unpacked
from visualizer.components.packing import header_of
from visualizer.page import warming
from visualizer.page.opening_picture import FILE
from visualizer.page.remake_opening import opening_data


def test_the_file_holds_what_the_model_computes():
    of_file, of_model = FILE.read_bytes(), opening_data()
    assert header_of(of_file) == header_of(of_model), "run python -m visualizer.page.remake_opening"
    (_, kept), (_, computed) = unpacked(of_file), unpacked(of_model)
    for name, numbers in computed.items():
        # float32 through all layers: another processor adds in another order
        assert np.abs(kept[name] - numbers).max() <= 1e-5 * np.abs(numbers).max(), name


def test_who_comes_before_pytorch_gets_the_picture_and_then_the_page(monkeypatch):
    warmed, warming_up, visited = Event(), Event(), Event()
    warming_up.set()
    for name, event in (("_IS_WARM", warmed), ("_IS_WARMING", warming_up), ("_HAS_VISITOR", visited)):
        monkeypatch.setattr(warming, name, event)
    app = AppTest.from_file(APP, default_timeout=60).run()
    assert_healthy(app)
    assert "headlight_token_way" in components(app)
    assert not any("parts sum to" in caption.value for caption in app.caption)
    early = picture_in(app)
    assert early == FILE.read_bytes()
    assert visited.is_set(), "the server waits with PyTorch until the picture has left"
    assert {"headlight_token_strip", "headlight_glossary"} <= set(components(app))

    warmed.set()
    app.run()
    assert_healthy(app)
    assert any("parts sum to" in caption.value for caption in app.caption)
    assert header_of(picture_in(app)) == header_of(early)

    warmed.clear()
    other = open_app(view="way", text="a b")
    assert header_of(picture_in(other))["tokens"]["labels"] == ["a", "b"]


def picture_in(app):
    found = [one.proto.bytes for one in app.get("bidi_component") if "token_way" in one.proto.component_name]
    return found[0]
