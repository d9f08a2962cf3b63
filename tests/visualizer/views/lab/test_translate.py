"""The text of a mask for other libraries."""

import pytest

from tests.test_app import open_app
from visualizer.views.lab import translate


@pytest.mark.parametrize("mask", ["custom", "none"])
def test_code_is_written_for_a_mask_that_blocks_something(mask):
    app = open_app(view="lab", text="a b c d", mask=mask, custom="k <= q")
    assert [code.value.count("allowed = ") for code in app.code] == ([1] if mask == "custom" else [])
    assert ("Nothing is blocked: leave the mask out." in [info.value for info in app.info]) is (mask == "none")


def test_code_that_no_page_can_hold_is_named_and_not_shown(monkeypatch):
    """A browser stands still for seconds over the million cells of a mask of 1,024 by 1,024."""
    monkeypatch.setattr(translate, "MOST_SHOWN", 40)
    app = open_app(view="lab", text="a b c d", mask="custom", custom="k <= q")
    assert not app.code
    assert any("too many to be shown" in info.value for info in app.info)
