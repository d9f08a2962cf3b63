"""The keys of the page: what was pressed is told, also where their picture ends before it has told."""

from __future__ import annotations

from tests.pictures.static_page import heard
from visualizer.components.page_keys.element import page_keys


def test_a_key_that_is_not_told_yet_is_told_at_the_end(show):
    page = show([page_keys(longest={"": 10}, seq=0, key="keys")])
    page.evaluate(
        """() => {
          document.dispatchEvent(new KeyboardEvent("keydown", { key: "L" }));
          drawn.get("keys").destroy();
        }"""
    )
    [(name, told)] = heard(page, "keys")
    assert name == "act"
    assert told["seq"] == 1
    assert len(told["acts"]) == 1
