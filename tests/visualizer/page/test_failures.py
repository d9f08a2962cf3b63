"""A part of the page that fails, and the rest of it, which stays."""

from __future__ import annotations

import pytest

from tests.test_app import open_app


@pytest.fixture(autouse=True)
def nothing_failed():
    """Failures are expected here."""


@pytest.mark.parametrize(
    "part", ["sidebar.masks_explained", "header.examples_menu", "header.note_on", "show.cached_run"]
)
def test_what_fails_is_a_sentence_and_the_rest_of_the_page_stays(part, monkeypatch):
    def fail(*_arguments, **_named):
        raise RuntimeError("<b>secret</b>")

    monkeypatch.setattr(f"visualizer.page.{part}", fail)
    app = open_app(view="step", architecture="decoder")
    assert not app.exception
    (error,) = app.error
    assert error.value.startswith("Headlight failed to do what you asked for.")
    assert bool(app.segmented_control(key="view"))
    assert bool(app.get("bidi_component")) == (part != "show.cached_run")
